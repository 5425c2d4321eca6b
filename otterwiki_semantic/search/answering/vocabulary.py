"""Words that count for more, or for less, than others when a statement is compared with its sources."""

from __future__ import annotations

import re
from functools import cache

from otterwiki_semantic.content.analysis import fold, function_words, stem
from otterwiki_semantic.core.languages import ENGLISH

_NEGATIONS = {
    "en": "not no never none nobody nothing neither nor nowhere hardly barely scarcely",
    "de": "nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden nichts weder nirgends kaum",
    "fr": "pas jamais aucun aucune rien guère nulle nullement",
    "es": "no nunca jamás nada nadie ningún ninguno ninguna tampoco",
    "it": "non mai niente nulla nessuno nessun nessuna",
    "pt": "não nunca jamais nada ninguém nenhum nenhuma",
    "nl": "niet geen nooit niemand niets nergens",
    "sv": "inte ej aldrig ingen inget inga ingenting",
    "da": "ikke ej aldrig ingen intet",
    "no": "ikke ei aldri ingen intet",
    "pl": "nie nigdy nikt nic żaden żadna",
}
_KEPT = {
    "en": {
        "only": "only solely exclusively merely",
        "if": "if when whenever",
        "unless": "unless except otherwise excluding",
        "must": "must shall mandatory",
        "may": "may might maybe perhaps possibly probably",
        "seldom": "seldom rarely",
        "sometimes": "sometimes occasionally",
        "usually": "usually mostly generally normally often",
        "nearly": "nearly almost",
        "about": "approximately roughly circa",
        "would": "would could",
        "formerly": "formerly previously obsolete planned proposed until",
        "claimed": "claimed alleged believed thought supposed supposedly assumed seemed pretended false wrong wrongly unlikely "
        "according myth myths doubts doubt doubted untrue impossible mistake mistakes",
        "forbidden": "avoid avoids avoided forbidden forbid forbids prohibited prohibits prohibit banned refrain blocked "
        "rejected deprecated",
        "refused": "refuse refuses refused refusing decline declines declined",
        "prevented": "prevent prevents prevented",
        "tried": "try tries tried trying attempt attempts attempted",
        "planned": "plan plans promise promises promised threaten threatens threatened intend intends",
        "too": "too",
        "twice": "twice",
        "failed": "fail fails failed failing",
        "forgotten": "forget forgets forgot forgotten",
        "stopped": "stop stops stopped stopping cease ceases ceased",
        "instead": "instead rather",
        "far": "far",
        "least": "least minimum",
        "most": "most maximum",
        "more": "more exceeds exceeding",
        "less": "less fewer",
        "without": "without",
        "before": "before",
        "after": "after",
        "off": "off",
        "lacking": "lack lacks lacked lacking",
        "per": "per",
        "second": "second",
        "third": "third",
        "beside": "beside near",
    },
    "de": {
        "without": "ohne",
        "before": "vor bevor",
        "after": "nachdem",
        "only": "nur lediglich ausschließlich bloß",
        "if": "wenn falls sobald sofern",
        "unless": "außer ausgenommen sonst",
        "must": "muss müssen musst müsst",
        "may": "darf dürfen vielleicht möglicherweise eventuell",
        "seldom": "selten",
        "sometimes": "manchmal gelegentlich",
        "usually": "meist meistens gewöhnlich normalerweise oft",
        "nearly": "fast beinahe nahezu knapp",
        "should": "soll sollen sollst sollt sollte sollten",
        "per": "pro je",
        "about": "ungefähr etwa circa ca",
        "would": "würde würden könnte könnten wäre wären",
        "formerly": "früher ehemals veraltet geplant bis",
        "claimed": "angeblich behauptet laut zufolge vermutet geglaubt falsch bezweifelt",
        "forbidden": "verboten untersagt vermeiden vermeide vermeidet",
        "refused": "weigert verweigert weigern",
        "forgotten": "vergisst vergaß vergessen",
        "instead": "statt anstatt stattdessen",
        "least": "mindestens wenigstens",
        "most": "höchstens maximal",
        "more": "mehr über",
        "less": "weniger unter",
    },
    "fr": {
        "without": "sans",
        "before": "avant",
        "after": "après",
        "only": "seulement uniquement exclusivement",
        "if": "si quand lorsque",
        "unless": "sauf excepté sinon",
        "must": "doit doivent devez",
        "may": "peut-être éventuellement",
        "seldom": "rarement",
        "usually": "généralement normalement souvent",
        "nearly": "presque",
        "about": "environ",
        "least": "moins",
        "most": "maximum",
        "forbidden": "interdit interdite interdits éviter évitez évite",
        "refused": "refuse refusent refusé",
        "forgotten": "oublie oublient oublié",
        "instead": "lieu plutôt",
        "hardly": "peine ni",
        "formerly": "jusqu'à jusqu'au jusqu'en jusque",
        "more": "plus",
    },
}
CONDITIONS = frozenset({"if", "unless", "only", "claimed", "formerly", "forbidden"})
"""Classes that restrict the whole sentence, wherever in it they stand."""
_IRREGULAR = (
    "be were been|begin began begun|break broke broken|bring brought|build built|buy bought|choose chose "
    "chosen|come came|cost|"
    "draw drew drawn|drive drove driven|fall fell fallen|feed fed|find found|forget forgot forgotten|get got "
    "gotten|give gave given|"
    "go goes went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|know knew "
    "known|lead led|leave left|"
    "lend lent|lose lost|make made|mean meant|meet met|pay paid|ride rode ridden|ring rang rung|rise rose "
    "risen|run ran|see saw seen|"
    "seek sought|sell sold|send sent|show shown|shut|sleep slept|speak spoke spoken|spend spent|stand "
    "stood|steal stole stolen|"
    "stick stuck|strike struck|take took taken|teach taught|tell told|think thought|throw threw thrown|understand understood|"
    "wear wore worn|win won|write wrote written"
)
_SUFFIXES = {
    "en": re.compile(r"(?!(?:[a-z]?(?:|ed|en|ings?)|e?s|ie[ds]|ying)$)(?P<suffix>.+?)(?:(?<!s)s|es|ed|ing|e)?"),
    "de": re.compile(r"\A.*?(?P<suffix>ung|[hk]eit|lich|ig|isch|ik)(?:e[mnrs]?|s)?"),
    "fr": re.compile(
        r"\A.*?(?P<suffix>[ae]nce|ique|is[mt]e|able|eu[xr]|euse|at(?:rice|eur|ion)|logie|[uo]tion|ment|ite|i[fv]e?)s?",
    ),
}
"""Of a language, what is not a mere form of a word after its stem."""
_LIGHT = (
    "also then next finally additionally furthermore moreover therefore thus hence here again further however "
    "overall "
    "he she him her his hers i me us ours myself itself themselves yourself yours mine am being having doing "
    "can will should need needs needed please simply just seem seems apparently likely appears such yes"
)
"""Words that a model adds to any answer, and that replace nothing."""
_LIGHT_VERBS = (
    "use uses used using called named located available exists ensure make provide provides provided allow "
    "allows run execute "
    "command type enter perform occurs include includes included contains follow follows following step steps "
    "information consist consists set sets require requires required"
)
"""Words that a model adds, but that may take the place of another."""
_NUMBERS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen "
    "nineteen twenty",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
    "siebzehn achtzehn "
    "neunzehn zwanzig",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
    "dix-huit dix-neuf vingt",
    "es": "cero un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince",
    "nl": "nul een twee drie vier vijf zes zeven acht negen tien elf twaalf",
}
_TENS = {
    "en": "thirty forty fifty sixty seventy eighty ninety",
    "de": "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "trente quarante cinquante soixante",
}
_AMBIGUOUS_NUMBERS = {"one", "ein", "un", "een"}


def _words(listed: str) -> frozenset[str]:
    """Return words as they are compared, folded; *à* is left out of that, because it would be *a*."""
    return frozenset(word if word == "à" else fold(word) for word in listed.split())


CONTENT_PREPOSITIONS = _words("over under out up down above below since inside outside against gegen contre")
PREPOSITIONS = _words(
    "in on at of for from to into onto by with via through within during towards toward as between auf im am von "
    "vom für aus zu zum zur bei durch mit in innerhalb während nach sur dans en de du des pour par avec chez à au "
    "aux"
)
ORIGIN = _words("from aus von vom de du des")
GOAL = _words("to into onto towards toward zu zum zur nach à au aux")
AGENT = _words("by durch par von vom")
BE = _words("is are was were be been being wird werden wurde wurden worden ist sind est sont fut")
AUXILIARIES = BE | _words("has have had can will should does do did must may kann wird hat haben sind ist peut doit a") - {"a"}
OBLIGING = _words("should need needs needed")
ENABLING = _words("can may kann darf peut")
INFINITIVES = _words("to zu")
RANGES = _words("to bis a")
SUBORDINATORS = _words("that dass que whether ob")
ALTERNATIVES = _words("or oder ou")
ADDITIONS = _words("and und et")
PARTICLES = _words("ab an auf aus bei ein fest her hin los mit nach um vor weg zu zurück zusammen")
"""German words that end a clause as a part of its verb."""
RELATIVES = _words("which who whose welcher welche welches qui")
QUANTIFIERS = _words("all every each any some both always everybody everyone everything")
JOINS = _words(
    "and but while or because so which who whose whereas although though that where since however und aber "
    "während oder weil sodass sondern denn welche welcher welches wobei et mais ou car donc qui que dont tandis"
)
"""Words that a clause begins with."""
COORDINATORS = _words("and but while whereas although though und aber während et mais tandis")
"""Words that join what could be said apart."""
ESTIMATES = _words("about around")
"""Words that make the number after them an estimate."""
BOUNDS = _words("while whilst during for während für pendant durant pour")
"""Words that tell when, or for whom, a rule holds."""
PERMITTING = _words("allowed permitted erlaubt gestattet zulässig autorisé permis")
ARTICLES = _words("der den dem")
"""German articles that tell who does something from whom it is done to: *Den Hund beißt der Mann*."""
PRONOUNS = _words("it they this these that those he she its their them es sie er dies diese dieser il elle ils elles ce cela")
"""Words that a sentence begins with which continues the one before it."""


@cache
def negations(language: str) -> frozenset[str]:
    """Return the folded words that turn a statement of a language into its opposite."""
    return frozenset(map(fold, _NEGATIONS.get(language, _NEGATIONS[ENGLISH]).split()))


@cache
def kept_classes(language: str) -> dict[str, str]:
    """Return what may not be left out: folded words of a language, with the class of those that mean the same."""
    classes = _KEPT.get(language, _KEPT[ENGLISH])
    return {fold(word): name for name, listed in classes.items() for word in listed.split()}


@cache
def number_words(language: str) -> dict[str, str]:
    """Return the folded number words of a language, with their digits; without those that are also articles."""
    small = {fold(word): str(number) for number, word in enumerate(_NUMBERS.get(language, _NUMBERS[ENGLISH]).split())}
    tens = {fold(word): str(number) for number, word in zip(range(30, 100, 10), _TENS.get(language, "").split(), strict=False)}
    return {word: digits for word, digits in {**small, **tens}.items() if word not in _AMBIGUOUS_NUMBERS}


@cache
def joining_words(language: str) -> frozenset[str]:
    """Return the folded words that assert nothing by themselves."""
    small = function_words(language) | function_words(ENGLISH) if language in {ENGLISH, ""} else function_words(language)
    asserting = negations(language) | kept_classes(language).keys() | number_words(language).keys() | QUANTIFIERS
    return frozenset(map(fold, small)) - asserting - CONTENT_PREPOSITIONS


def word_key(word: str, stemmed: str, language: str) -> str:
    """Return what the forms of a folded word have in common: its stem, and the suffix that makes another word of that.

    So *authorities* is *authority*, but not *authors*.
    """
    pairs = zip(word, stemmed, strict=False)
    suffix = word[next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), len(stemmed)) :]
    derived = _SUFFIXES.get(language)
    if not suffix or not derived or not (match := derived.fullmatch(suffix)):
        return stemmed
    return f"{stemmed}+{match['suffix'].replace('y', 'i')}"


@cache
def light_words(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return keys of words that a model adds to any answer: those that replace nothing, and verbs that may."""

    def keys(listed: str) -> frozenset[str]:
        return frozenset(word_key(word, stem(word, language), language) for word in listed.split())

    return keys(_LIGHT), keys(_LIGHT_VERBS)


@cache
def irregular_stems() -> dict[str, str]:
    """Return the stems of irregular English forms, with that of the infinitive."""
    groups = (group.split() for group in _IRREGULAR.split("|"))
    return {stem(form): stem(group[0]) for group in groups for form in group[1:]}
