"""What the check of answers knows about languages: one table per supported language."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from otterwiki_semantic.content.analysis import fold

_ARTICLES = frozenset({"one", "ein", "un", "neuf"})
_STOP = r"[,;:.!?()\u2013\u2014]\s+|\s-\s"
_NEVER = re.compile(r"(?!)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)?")


class Language:
    """The words of a language that change the meaning of a sentence; by default of a language without a table."""

    def __init__(
        self,
        markers: Mapping[str, str] = MappingProxyType({}),
        numbers: str = "",
        tens: str = "",
        joins: str = "",
        pronouns: str = "",
        agent: str = "",
        dates: str = "",
        endings: str = "",
        *,
        capitals_name: bool = True,
        is_ordered: bool = True,
    ) -> None:
        self.markers = {name: _whole_words(listed.split(", ")) for name, listed in markers.items()}
        """Patterns of negations, restrictions, obligations and permissions, by meaning."""
        self.negation = self.markers.get("not", _NEVER)
        digits = {word: str(number) for number, word in enumerate(numbers.split()) if word not in _ARTICLES}
        self._digits = digits | {word: str(number) for number, word in zip(range(30, 100, 10), tens.split(), strict=False)}
        words = rf"\b(?:{'|'.join(joins.split())})\b" if joins else "[、，；：]"
        self.joins = re.compile(f"{_STOP}|{words}", re.IGNORECASE)
        """The beginning of a clause."""
        self.pronouns = frozenset(fold(pronouns).split())
        """Pronouns that begin a sentence which continues the previous one."""
        self.agent = _whole_words(agent.split())
        """Prepositions that introduce the agent of a passive verb."""
        self.dates = re.compile(rf"(?<!\w)({'|'.join(fold(dates).split())})s?(?!\w)") if dates else _NEVER
        """Names of days and months, without endings."""
        self.endings = frozenset(("", *endings.split())) if endings else frozenset[str]()
        """Inflectional endings, if all other endings form a different word."""
        self.capitals_name = capitals_name
        """Whether a capitalised word within a sentence is a name."""
        self.is_ordered = is_ordered
        """Whether word order determines subject and object."""

    def with_digits(self, text: str) -> str:
        """Return a text with number words, except those that are also articles, replaced by digits."""
        return _WORD.sub(lambda match: self._digits.get(match[0].lower(), match[0]), text) if self._digits else text


def _whole_words(alternatives: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(fold, alternatives))})(?!\w)") if alternatives else _NEVER


LANGUAGES: Mapping[str, Language] = {
    "en": Language(
        {
            "not": r"not, no, never, none, nobody, nothing, neither, nor, cannot, \w+n't, hardly, barely",
            "deny": r"refus\w+, fail\w*, forg[eo]t\w*, lack\w*, avoid\w*, forbid\w*, prohibit\w*, declin\w+, reject\w*, "
            r"stop\w*, doubt\w*, far from, banned, untrue",
            "closed": r"closed",
            "without": r"without",
            "against": r"against, opposed, opposes",
            "only": r"only, solely, exclusively, merely",
            "if": r"if, when, whenever, in case, as long as, provided that, were the, had the",
            "while": r"while, during",
            "unless": r"unless, except, excluding, other than, apart from, aside from",
            "must": r"must, shall, should, ha(?:ve|s|d) to, needs? to, required, requires?, mandatory, obliged",
            "may": r"may, might, maybe, perhaps, possibly",
            "can": r"can, could, allowed, permitted, optional",
            "unreal": r"myths?, unlikely, claim\w*, promis\w+, plan(?:s|ned)? to, would, used to, tr(?:y|ies|ied) to, asked, "
            r"supposed\w*, alleged\w*, according to \w+, believed, formerly, (?:was|were) to be",
            "instead": r"instead of, rather than",
            "mostly": r"(?<!at )most, mostly, usually, generally, often, sometimes, normally, rarely, seldom",
            "about": r"about(?= \S*\d), around(?= \S*\d), approximately, roughly, circa, nearly, almost",
            "least": r"at least, minimum",
            "most": r"at most, maximum, up to, no more than",
            "before": r"before, prior to",
            "after": r"after, afterwards, since",
            "above": r"(?:above|over|more than|older than|longer than|exceed\w*|>)(?= \W?\d)",
            "below": r"(?:below|under|less than|younger than|shorter than|<)(?= \W?\d)",
            "more": r"more(?= \w+ than)",
            "fewer": r"fewer",
            "near": r"next to, near, beside",
            "or": r"or, either",
            "last": r"last",
            "per": r"per, for each, for every",
            "second": r"second, other(?= week)",
        },
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty",
        "thirty forty fifty sixty seventy eighty ninety",
        "and but whereas because so",
        "it they this these that those he she its their them",
        r"by(?!\s\w+sel)",
        "monday tuesday wednesday thursday friday saturday sunday january february march april june july august september "
        "october november december week month quarter year",
        "s es d ed ing e y ies ied er ers n en t ly",
    ),
    "de": Language(
        {
            "not": r"nicht, kein\w*, nie, niemals, niemand\w*, nichts, weder, kaum",
            "deny": r"verboten\w*, untersagt\w*, vermeid\w*, weiger\w*, verweiger\w*, vergisst, vergessen, vergaß, "
            r"un(?:gültig|zulässig|möglich)\w*, abgelehnt\w*",
            "closed": r"geschlossen\w*",
            "without": r"ohne",
            "against": r"gegen",
            "only": r"nur, lediglich, ausschließlich, bloß, erst",
            "if": r"wenn, falls, sobald, sofern, im falle, ^(?:hatte|ware|wurde|sollte|konnte)n?(?= \w), "
            r"^(?!mit|seit|statt|erst|jetzt|laut|nicht|dort)(?:\w+t|wird|werden|sind|haben) "
            r"(?:der|die|das|k?eine?r?|jemand|man|es|er|sie|ihr)",
            "while": r"während, solange",
            "unless": r"außer, ausgenommen, es sei denn",
            "must": r"muss, müssen, musst, müsst, soll\w*, hat zu, haben zu, erforderlich, nötig, verpflichtet, "
            r"\w{1,20}zu\w{1,20}en ist, (?:ist|sind) [^,.]{0,60}\b(?:zu \w{1,20}en|\w{1,20}zu\w{1,20}en)",
            "may": r"vielleicht, möglicherweise, eventuell",
            "can": r"darf, dürfen, kann, können, könnte\w*, erlaubt, gestattet, zulässig, lässt sich",
            "on": r"(?:ein|an|auf)(?=[.,;:!?]|$)",
            "off": r"(?:aus|ab|zu)(?=[.,;:!?]|$)",
            "per": r"pro, je, jede[nrs]?",
            "first": r"erste\w*",
            "last": r"letzte\w*",
            "unreal": r"angeblich, behauptet, laut, geplant, früher, ehemals, würde\w*, wäre\w*, hätte\w*, versucht",
            "instead": r"statt(?= \w), anstatt, anstelle",
            "mostly": r"meist\w*, gewöhnlich, normalerweise, oft, in der regel, manchmal, selten",
            "about": r"etwa, ungefähr, rund, circa, ca, knapp, fast, beinahe",
            "least": r"mindestens, wenigstens, frühestens",
            "most": r"höchstens, maximal, spätestens, bis zu",
            "before": r"vor, bevor",
            "after": r"nach, nachdem",
            "above": r"(?:über|mehr als|>)(?= \W?\d)",
            "below": r"(?:unter|weniger als|minus|<)(?= \W?\d)",
            "or": r"oder",
        },
        "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
        "achtzehn neunzehn zwanzig",
        "dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
        "und aber sondern jedoch sowie weil denn",
        "es sie er dies diese dieser",
        "von vom durch",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april mai juni juli august september "
        "oktober november dezember woche monat quartal jahr",
        capitals_name=False,
        is_ordered=False,
    ),
    "fr": Language(
        {
            "not": r"(?:ne|n'\w+)(?! [^.]{0,60}\bqu[e']), pas, jamais, aucune?, rien, nul\w*, ni, à peine",
            "deny": r"interdit\w*, évite\w*, éviter, refus\w+, oubli\w+",
            "closed": r"fermée?s?",
            "without": r"sans",
            "against": r"contre",
            "only": r"seul\w*, uniquement, exclusivement, (?:ne|n'\w+)(?= [^.]{0,60}\bqu[e'])",
            "if": r"si, quand, lorsqu\w*, en cas d\w*, tant que",
            "while": r"pendant",
            "unless": r"sauf, excepté, hormis, à moins qu\w*",
            "must": r"doit, doivent, devez, devra, il faut, obligatoire\w*, nécessaires?",
            "may": r"peut-être, éventuellement",
            "can": r"peut, peuvent, pouvez, permis\w*, autoris\w+, facultatif\w*",
            "first": r"premi\w+",
            "last": r"derni\w+",
            "per": r"par (?:mois|an|jour|semaine|trimestre|personne)",
            "unreal": r"prétend\w*, prévu\w*, autrefois, selon",
            "instead": r"au lieu d\w*, plutôt qu\w*",
            "mostly": r"en général, généralement, normalement, souvent, parfois, rarement",
            "about": r"environ, à peu près, presque",
            "least": r"au moins, au minimum",
            "most": r"au plus, au maximum, jusqu'à",
            "before": r"avant",
            "after": r"après, au bout d\w*, suivant\w*",
            "above": r"(?:plus de|>)(?= \W?\d)",
            "below": r"(?:moins de|<)(?= \W?\d)",
            "or": r"ou",
        },
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
        "dix-neuf vingt",
        "trente quarante cinquante soixante",
        "et mais car tandis puis",
        "il elle ils elles ce cela",
        "par",
        "lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août septembre "
        "octobre novembre décembre semaine mois trimestre",
    ),
}

_UNKNOWN = Language(capitals_name=False)


def vocabulary(language: str) -> Language:
    """Return the table of a language, or an empty one if there is none."""
    return LANGUAGES.get(language, _UNKNOWN)
