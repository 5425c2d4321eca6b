"""The unit of each passage that answers best (a sentence, list item, table row or line of code), and types of answers.

Longer units are preferred, as are units with the expected answer type, those with all the query's words, and those below a
heading that the query names; lines of code are penalised. The other evidence is the unit's similarity to the query if it is
embedded, and otherwise the share of the query's words in it, weighted by rarity. A row is read with its heading and the header
of its table. docs/quality.md has the accuracy.

The expected answer type is classic evidence in question answering (Li and Roth, 2002). Each language needs one table.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import groupby, takewhile
from typing import NamedTuple

from otterwiki_semantic.content.analysis import (
    ANNOUNCING,
    QUESTION_MARKS,
    UNFINISHED,
    Word,
    fold,
    function_words,
    name_key,
    words,
)
from otterwiki_semantic.content.markdown import MARKUP
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import StoredChunk, Unit, UnitKind
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.query import Query
from otterwiki_semantic.search.scoring import EXACT_POINTS, QueryWords
from otterwiki_semantic.search.similarity_scale import Scale

MAX_EMBEDDED = 40
"""Units embedded per answer; each takes about a millisecond."""
_MAX_EMBEDDED_OF_CHUNK = 6
"""Units embedded per chunk, best by words; more hardly improve the choice."""
_SIMILARITY_WEIGHT = 8.0
"""Values from 7 to 9 are equally good."""
_COVERAGE_WEIGHT = 3.0
_TYPE_WEIGHT = 1.0
_COMPLETE_WEIGHT = 1.0
"""For a unit that has all words of the query, together with the title and the headings above it."""
_CODE_WEIGHT = -2.0
_NAMES = frozenset({UnitKind.HEADING, UnitKind.HEADER})
"""Kinds of units that only label other units."""
_SAYING = frozenset({UnitKind.SENTENCE, UnitKind.ITEM})
_LEAST_WORDS = 3
"""Shorter sentences and items are mostly labels."""

Embed = Callable[[Sequence[str]], Matrix]
Range = tuple[int, int]

log = logging.getLogger(__name__)


class AnswerType(StrEnum):
    """Types of answers that can be recognised in a text."""

    NUMBER = "number"
    TIME = "time"
    PERSON = "person"
    PLACE = "place"
    COMMAND = "command"
    REASON = "reason"
    YES_NO = "yes or no"
    STEPS = "steps"


class _Language(NamedTuple):
    """What questions and answers look like in a language, as regular expressions of words."""

    interrogatives: str
    """Words that begin a question, besides those of yes-no questions."""
    questions: Mapping[AnswerType, str]
    """The first match in a question determines its type."""
    plurals: str
    """Parts of questions that several things answer."""
    answers: Mapping[AnswerType, str]
    """Words found in answers of a type. Numbers, places and commands are mostly recognised by their characters."""


_LANGUAGES = {
    "en": _Language(
        interrogatives=r"how|what|when|where|which|who|whom|whose|why",
        questions={
            AnswerType.NUMBER: r"how (?:many|much|long|often|big|large|far|old|fast|high|small)|limit|maximum|minimum|max|min"
            r"|size|length|number of|rate|cost|price|default|(?:which|what) (?:ports?|versions?) (?:is|are|do|does)",
            AnswerType.TIME: r"when|what time|date|deadline",
            AnswerType.PERSON: r"who|whom|whose|contact",
            AnswerType.PLACE: r"where|location|which (?:file|folder|directory|page|channel)",
            AnswerType.COMMAND: r"command|flag|option|setting|variable",
            AnswerType.REASON: r"why|reason",
            AnswerType.YES_NO: r"\A(?:is|are|can|could|do|does|did|may|must|should|will|has|have|am)",
            AnswerType.STEPS: r"how (?:do|to|can|should|does)|\Ahow",
        },
        plurals=r"(?:which|what) (?:(?!(?:is|do|does|has) )\w+ )?\w*[^\Wius]s"
        r" (?:are|do|does|can|must|should|have|will|were|need)|(?:which|what) are (?:the|our|its|all)|\Alist (?:of|all)",
        answers={
            AnswerType.NUMBER: r"one|two|three|four|five|six|seven|eight|nine|ten|once|twice|half|dozen|hundred|thousand",
            AnswerType.TIME: r"seconds?|minutes?|hours?|days?|weeks?|months?|years?|daily|weekly|monthly|yearly|annual"
            r"|quarters?|january|february|march|april|may|june|july|august|september|october|november|december|(?:mon|tues|wednes|thurs"
            r"|fri|satur|sun)days?|before|after|when|until|within|nights?|mornings?|evenings?|noon|midnight",
            AnswerType.PERSON: r"(?:team|manager|lead|head|officer|owner|admin|director|maintainer)s?|person|people",
            AnswerType.REASON: r"because|since|so that|due to|reason|as a result|otherwise|means",
            AnswerType.YES_NO: r"must|should|can|cannot|can't|need|required|allowed|only|never|always|not|don't",
            AnswerType.STEPS: r"\A\W*(?:\d+\W+)?(?:use|run|click|go|open|set|add|select|create|install|make|enable|disable"
            r"|contact|ask|tell|email|call|check|remove|delete|you (?:can|should|must|need|may)|to)",
        },
    ),
    "de": _Language(
        interrogatives=r"wie|was|wann|wo|wohin|woher|welche[mnrs]?|wer|wen|wem|wessen|warum|wieso|weshalb",
        questions={
            AnswerType.NUMBER: r"wie ?(?:viele?|lange?|oft|groß|weit|alt|schnell|hoch|klein)|grenze|maximal|minimal|größe|länge"
            r"|anzahl|preis|kosten|kostet|welche[nr]? (?:ports?|version(?:en)?) (?:ist|sind|hat|nutzt|braucht)",
            AnswerType.TIME: r"wann|um wie viel uhr|datum|termin|frist",
            AnswerType.PERSON: r"wer|wen|wem|wessen|ansprechpartner",
            AnswerType.PLACE: r"wo|wohin|woher|ort|welche[rsm]? (?:datei|ordner|verzeichnis|seite|kanal)",
            AnswerType.COMMAND: r"befehl|option|einstellung|variable",
            AnswerType.REASON: r"warum|wieso|weshalb|grund",
            AnswerType.YES_NO: r"\A(?:ist|sind|kann|können|darf|dürfen|muss|müssen|soll|sollen|wird|hat|haben|gibt)",
            AnswerType.STEPS: r"wie (?:kann|soll|geht|wird|muss)|\Awie",
        },
        plurals=r"welche (?:\w+ )?\w*(?:en|[^\Wius]s) (?:sind|werden|haben|können|müssen|gibt|braucht|nutzt|verwendet)",
        answers={
            AnswerType.NUMBER: r"eins?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|zwölf|einmal|zweimal|hundert|tausend",
            AnswerType.TIME: r"sekunden?|minuten?|stunden?|tage?n?|wochen?|monate?n?|jahre?n?|täglich|wöchentlich|monatlich"
            r"|jährlich|uhr|januar|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|montags?|dienstags?"
            r"|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|vor|nach|bis|wenn|nachts?|morgens?|abends?|mittags?|binnen|innerhalb",
            AnswerType.PERSON: r"team|leiter(?:in)?|leitung|chef(?:in)?|personen?|beauftragte[rn]?|verantwortliche[rn]?",
            AnswerType.REASON: r"weil|da|denn|damit|wegen|grund|deshalb|sonst",
            AnswerType.YES_NO: r"muss|müssen|kann|können|darf|dürfen|soll|sollen|nur|nie|immer|nicht|kein(?:e[nrms]?)?|nötig",
            AnswerType.STEPS: r"\A\W*(?:\d+\W+)?(?:klicken|öffnen|wählen|gehen|führen|setzen|starten|rufen|melden|um)",
        },
    ),
    "fr": _Language(
        interrogatives=r"combien|comment|où|pourquoi|quand|que|quel(?:le)?s?|qu'est-ce|qui|quoi",
        questions={
            AnswerType.NUMBER: r"combien|quelle (?:taille|longueur|durée|limite)|quels? ports? (?:est|sont|utilise)"
            r"|maximum|minimum|nombre|prix|coût",
            AnswerType.TIME: r"quand|à quelle heure|date|délai",
            AnswerType.PERSON: r"qui|à qui|contact",
            AnswerType.PLACE: r"où|lieu|quel(?:le)? (?:fichier|dossier|répertoire|page|canal)",
            AnswerType.COMMAND: r"commande|option|réglage|variable",
            AnswerType.REASON: r"pourquoi|raison",
            AnswerType.YES_NO: r"\A(?:est-ce|peut-on|puis-je|doit-on|faut-il|y a-t-il)",
            AnswerType.STEPS: r"comment",
        },
        plurals=r"quel(?:le)?s \w+",
        answers={
            AnswerType.NUMBER: r"une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|douze|demie?|cent|mille",
            AnswerType.TIME: r"secondes?|minutes?|heures?|jours?|semaines?|mois|ans?|années?|quotidien|hebdomadaire|mensuel"
            r"|annuel|janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|lundis?|mardis?"
            r"|mercredis?|jeudis?|vendredis?|samedis?|dimanches?|avant|après|quand|lorsque|nuit|matin|soir|midi",
            AnswerType.PERSON: r"équipe|responsable|chef|directeur|directrice|personnes?",
            AnswerType.REASON: r"parce que|car|afin|raison|sinon",
            AnswerType.YES_NO: r"doit|doivent|peut|peuvent|faut|seulement|jamais|toujours|pas|interdit|permis",
            AnswerType.STEPS: r"\A\W*(?:\d+\W+)?(?:cliquez|ouvrez|choisissez|allez|lancez|ajoutez|appelez|pour)",
        },
    ),
}
_AT_START, _EDGE = r"\A", r"\b"
_MOST_KEYWORDS = 4
_CODE = r"`[^`]+`|\$ |--\w"
_SIGNS = {
    AnswerType.NUMBER: re.compile(r"\d"),
    AnswerType.TIME: re.compile(r"\b\d{1,2}:\d\d\b|\b\d{4}\b"),
    AnswerType.PERSON: re.compile(r"@|\b[A-Z]\w+ [A-Z]\w"),
    AnswerType.PLACE: re.compile(rf"{_CODE}|\w/\w|\.\w{{2,4}}\b|\]\("),
    AnswerType.COMMAND: re.compile(rf"{_CODE}|\w/\w|\.\w{{2,4}}\b|\]\("),
    AnswerType.STEPS: re.compile(_CODE),
}


def _whole_words(pattern: str) -> str:
    return rf"{'' if pattern.startswith(_AT_START) else _EDGE}(?:{pattern}){_EDGE}"


_QUESTIONS = {
    language: {kind: re.compile(_whole_words(pattern), re.IGNORECASE) for kind, pattern in table.questions.items()}
    for language, table in _LANGUAGES.items()
}
_ANSWERS = {
    language: {kind: re.compile(_whole_words(pattern), re.IGNORECASE) for kind, pattern in table.answers.items()}
    for language, table in _LANGUAGES.items()
}
_PLURALS = {language: re.compile(_whole_words(table.plurals), re.IGNORECASE) for language, table in _LANGUAGES.items()}
_INTERROGATIVES = {
    language: re.compile(rf"\A(?:{table.interrogatives})\s", re.IGNORECASE) for language, table in _LANGUAGES.items()
}


def is_question(text: str, languages: Sequence[str]) -> bool:
    """Return whether a query is a question: by its ending, its first word in one of the languages, or more than four words."""
    count = len(text.split())
    if text.rstrip().endswith(QUESTION_MARKS) or count > _MOST_KEYWORDS:
        return True
    known = [each for each in languages if each in _LANGUAGES]
    beginnings = (pattern for each in known for pattern in (_INTERROGATIVES[each], _QUESTIONS[each][AnswerType.YES_NO]))
    return count > 1 and any(pattern.search(text) for pattern in beginnings)


def answer_type(question: str, languages: Sequence[str]) -> AnswerType | None:
    """Return the type of answer that a question asks for, or None if it asks for no particular type."""
    asked = (_QUESTIONS[each] for each in languages if each in _QUESTIONS)
    return next((kind for patterns in asked for kind, pattern in patterns.items() if pattern.search(question)), None)


def asks_for_several(question: str, languages: Sequence[str]) -> bool:
    """Return whether a question asks for several things, such as the items of a list."""
    return any(_PLURALS[each].search(question) for each in languages if each in _PLURALS)


def has_answer(kind: AnswerType, text: str, languages: Sequence[str]) -> bool:
    """Return whether a text contains an answer of a type, judged by characters or by words of the languages."""
    if (sign := _SIGNS.get(kind)) and sign.search(text):
        return True
    patterns = (_ANSWERS[each].get(kind) for each in languages if each in _ANSWERS)
    return any(pattern is not None and pattern.search(text) for pattern in patterns)


class ScoredUnit(NamedTuple):
    """A candidate unit for the answer."""

    unit: Unit
    text: str
    """The text to embed: the chunk's names, the table's header, and the unit."""
    prior: float
    """How likely such a unit is to answer, apart from its words and its meaning."""
    coverage: float
    """The weighted share of the query's words in the unit."""
    header: Range | None
    """The range of the table's header, if the unit is a row."""
    items: tuple[Range, ...]
    """The ranges of the items of the list that contains the unit or is announced by it."""
    code: Range | None
    """The range of the code that follows the unit, at once or after a sentence that announces it."""
    similarity: float | None = None
    """Similarity to the query, on the bundled model's scale; None if the unit is not embedded."""

    @property
    def score(self) -> float:
        """The score; comparable among embedded units, and among units that are not."""
        if self.similarity is None:
            return self.prior + _COVERAGE_WEIGHT * self.coverage
        return self.prior + _SIMILARITY_WEIGHT * self.similarity


class UnitChooser:
    """Choose the units that best answer a query.

    `vector` is the query's vector. Without it or `embed`, or after 40 embedded units, words alone decide. `scale` converts
    the model's similarities.
    """

    def __init__(
        self,
        query: Query,
        query_words: Sequence[QueryWords],
        vector: Matrix | None,
        embed: Embed | None,
        scale: Scale,
    ) -> None:
        self._languages = query.languages
        self._text = query.text
        self._name = query.name
        self._variants = [frozenset(each.names) for each in query_words]
        self._weights: dict[str, float] = {}
        for each in query_words:
            for word, weight in each.names.items():
                self._weights[word] = max(weight, self._weights.get(word, 0.0))
        self._whole = max((sum(each.names.values()) for each in query_words), default=0.0)
        self._vector = vector
        self._embed = embed
        self._scale = scale
        self._left = MAX_EMBEDDED
        self._stems: dict[str, frozenset[str]] = {}

    def rank(self, chunks: Sequence[StoredChunk], highlights: Sequence[Sequence[Range]]) -> list[list[ScoredUnit]]:
        """Return the units of each chunk that may answer, best first; none if no word matches and nothing is embedded.

        `highlights` are the ranges of each chunk's text that match the query's words. If some units are embedded, the rest
        are dropped.
        """
        ranked = [self._by_words(chunk, ranges) for chunk, ranges in zip(chunks, highlights, strict=True)]
        embedded: list[list[ScoredUnit]] = []
        for units in ranked:
            embedded.append(units[: min(self._left, _MAX_EMBEDDED_OF_CHUNK)])
            self._left -= len(embedded[-1])
        near = iter(self._similarities([unit.text for units in embedded for unit in units]))
        found = [
            [unit._replace(similarity=similarity) for unit, similarity in zip(units, near, strict=False)] for units in embedded
        ]
        by_words = [units if any(unit.coverage for unit in units) else [] for units in ranked]
        return [sorted(near, key=_best_first) or words for near, words in zip(found, by_words, strict=True)]

    def _by_words(self, chunk: StoredChunk, highlights: Sequence[Range]) -> list[ScoredUnit]:
        """Return the units of a chunk that may answer, those with most of the query's words first."""
        scored, sections, named = [], chunk.sections, self._named(chunk)
        names = chunk.text[: chunk.prefix_length].rstrip()
        above = [frozenset[str]().union(*map(self._words_in, (chunk.title, *section.path))) for section in sections]
        for unit, header, items, code in _candidates(chunk):
            own = chunk.text[unit.start : unit.end]
            columns = chunk.text[slice(*header)] if header else ""
            found = set[str]()
            if unit.kind is UnitKind.ROW:
                found |= self._words_in(f"{sections[unit.section].heading}, {columns}")
            for start, end in highlights:
                if unit.start <= start and end <= unit.end:
                    found |= self._words_in(chunk.text[start:end])
            covered = sum(self._weights[word] for word in found) / self._whole if self._whole else float(bool(found))
            text = f"{names} {columns}: {own}" if columns else f"{names} {own}"
            is_complete = any(wanted and wanted <= found | above[unit.section] for wanted in self._variants)
            prior = self._prior(unit, own) + EXACT_POINTS * (unit.section in named) + _COMPLETE_WEIGHT * is_complete
            scored.append(ScoredUnit(unit, text, prior, covered, header, items, code))
        return sorted(scored, key=_best_first)

    def _named(self, chunk: StoredChunk) -> set[int]:
        """Return the places of sections whose heading is the query, or else its part that is not in the page's title."""
        headings = [section.heading for section in chunk.sections]
        named = {place for place, heading in enumerate(headings) if self._name and name_key(heading) == self._name}
        left = [wanted - self._words_in(chunk.title) for wanted in self._variants]
        return named or {
            place
            for place, heading in enumerate(headings)
            if any(each and each <= self._words_in(heading) for each in left) and self._has_all_of(heading)
        }

    def _has_all_of(self, heading: str) -> bool:
        """Whether the query has all words of a heading, except for numbers and function words."""

        def is_known(word: Word, language: str) -> bool:
            has = not self._weights.keys().isdisjoint((*word.parts, word.whole))
            return has or word.whole.isdigit() or fold(heading[word.start : word.end]) in function_words(language)

        return any(all(is_known(word, each) for word in words(heading, each)) for each in self._languages)

    @cached_property
    def _answer_type(self) -> AnswerType | None:
        return answer_type(self._text, self._languages)

    def _prior(self, unit: Unit, text: str) -> float:
        is_answer = self._answer_type is not None and has_answer(self._answer_type, text, self._languages)
        return math.log1p(len(text.split())) + _TYPE_WEIGHT * is_answer + _CODE_WEIGHT * (unit.kind is UnitKind.CODE)

    def _words_in(self, text: str) -> frozenset[str]:
        """Return the words of the query that occur in a text."""
        stems = self._stems.get(text)
        if stems is None:
            parts = (part for each in self._languages for word in words(text, each) for part in (*word.parts, word.whole))
            stems = self._stems[text] = frozenset(self._weights.keys() & set(parts))
        return stems

    def _similarities(self, texts: Sequence[str]) -> Sequence[float]:
        """Return the similarities of texts to the query, or none if the texts cannot be embedded."""
        if self._embed is None or self._vector is None or not texts:
            return ()
        try:
            return [self._scale.to_bundled(float(each)) for each in self._embed(texts) @ self._vector]
        except SemanticError as error:
            log.info("the best units are found by words alone: %s", error)
            return ()


def _best_first(unit: ScoredUnit) -> tuple[float, int]:
    return -unit.score, unit.unit.start


def _candidates(chunk: StoredChunk) -> list[tuple[Unit, Range | None, tuple[Range, ...], Range | None]]:
    """Return the candidate units of a chunk, with their table's header, the list they belong to or announce, and their code.

    Markup is dropped, and units of a few words, which are mostly labels, if there are longer ones.
    """
    lists, codes = _lists(chunk), _codes(chunk)
    header: Range | None = None
    found, telling = [], []
    for unit in chunk.units:
        if unit.kind is UnitKind.HEADER:
            header = (unit.start, unit.end)
        text = chunk.text[unit.start : unit.end]
        if unit.kind in _NAMES or (unit.kind is UnitKind.SENTENCE and MARKUP.fullmatch(text)):
            continue
        is_row = unit.kind is UnitKind.ROW
        found.append((unit, header if is_row else None, lists.get(unit, ()), codes.get(unit)))
        if is_row or unit.kind is UnitKind.CODE or len(text.split()) >= _LEAST_WORDS:
            telling.append(found[-1])
    return telling or found


def _lists(chunk: StoredChunk) -> dict[Unit, tuple[Range, ...]]:
    """Return the ranges of a list's items, for each of them, the sentence or question above it, and a question before that."""
    lists: dict[Unit, tuple[Range, ...]] = {}
    before: list[Unit] = []
    for is_list, group in groupby(chunk.units, key=lambda unit: unit.section if unit.kind is UnitKind.ITEM else None):
        units = list(group)
        if is_list is not None:
            announcing = before if before and chunk.text[: before[-1].end].endswith(UNFINISHED) else []
            lists |= dict.fromkeys((*announcing, *units), tuple((unit.start, unit.end) for unit in units))
        asking = [unit for unit in units[-2:-1] if chunk.text[: unit.end].endswith(QUESTION_MARKS)]
        before = [*asking, units[-1]]
    return lists


def _codes(chunk: StoredChunk) -> dict[Unit, Range]:
    """Return the range of the code after each sentence or item that it follows, at once or after an announcing sentence."""
    codes: dict[Unit, Range] = {}
    before: list[Unit] = []
    for (section, is_code), group in groupby(chunk.units, key=lambda unit: (unit.section, unit.kind is UnitKind.CODE)):
        units = list(group)
        if is_code and before and before[0].section == section:
            count = 2 if chunk.text[: before[0].end].endswith(ANNOUNCING) else 1
            codes |= dict.fromkeys(before[:count], (units[0].start, units[-1].end))
        before = list(takewhile(lambda unit: unit.kind in _SAYING, reversed(units)))
    return codes
