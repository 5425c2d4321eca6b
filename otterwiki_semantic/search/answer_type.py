"""Recognise questions, the type of answer they ask for (a number, a time, …), and texts that contain such an answer.

The expected answer type is classic evidence in question answering (Li and Roth, 2002). Each language needs one table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple


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
    answers: Mapping[AnswerType, str]
    """Words found in answers of a type. Numbers, places and commands are mostly recognised by their characters."""


_LANGUAGES = {
    "en": _Language(
        interrogatives=r"how|what|when|where|which|who|whom|whose|why",
        questions={
            AnswerType.NUMBER: r"how (?:many|much|long|often|big|large|far|old|fast|high|small)|limit|maximum|minimum|max|min"
            r"|size|length|number of|rate|cost|price|default",
            AnswerType.TIME: r"when|what time|date|deadline",
            AnswerType.PERSON: r"who|whom|whose|contact",
            AnswerType.PLACE: r"where|location|which (?:file|folder|directory|page|channel)",
            AnswerType.COMMAND: r"command|flag|option|setting|variable",
            AnswerType.REASON: r"why|reason",
            AnswerType.YES_NO: r"\A(?:is|are|can|could|do|does|did|may|must|should|will|has|have|am)",
            AnswerType.STEPS: r"how (?:do|to|can|should|does)|\Ahow",
        },
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
            r"|anzahl|preis|kosten|kostet",
            AnswerType.TIME: r"wann|um wie viel uhr|datum|termin|frist",
            AnswerType.PERSON: r"wer|wen|wem|wessen|ansprechpartner",
            AnswerType.PLACE: r"wo|wohin|woher|ort|welche[rsm]? (?:datei|ordner|verzeichnis|seite|kanal)",
            AnswerType.COMMAND: r"befehl|option|einstellung|variable",
            AnswerType.REASON: r"warum|wieso|weshalb|grund",
            AnswerType.YES_NO: r"\A(?:ist|sind|kann|können|darf|dürfen|muss|müssen|soll|sollen|wird|hat|haben|gibt)",
            AnswerType.STEPS: r"wie (?:kann|soll|geht|wird|muss)|\Awie",
        },
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
            AnswerType.NUMBER: r"combien|quelle (?:taille|longueur|durée|limite)|maximum|minimum|nombre|prix|coût",
            AnswerType.TIME: r"quand|à quelle heure|date|délai",
            AnswerType.PERSON: r"qui|à qui|contact",
            AnswerType.PLACE: r"où|lieu|quel(?:le)? (?:fichier|dossier|répertoire|page|canal)",
            AnswerType.COMMAND: r"commande|option|réglage|variable",
            AnswerType.REASON: r"pourquoi|raison",
            AnswerType.YES_NO: r"\A(?:est-ce|peut-on|puis-je|doit-on|faut-il|y a-t-il)",
            AnswerType.STEPS: r"comment",
        },
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
_QUESTION_MARKS = ("?", "？", "؟")
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


_INTERROGATIVES = {
    language: re.compile(rf"\A(?:{table.interrogatives})\s", re.IGNORECASE) for language, table in _LANGUAGES.items()
}


def is_question(text: str, languages: Sequence[str]) -> bool:
    """Return whether a query is a question: by its ending, its first word in one of the languages, or more than four words."""
    words = len(text.split())
    if text.rstrip().endswith(_QUESTION_MARKS) or words > _MOST_KEYWORDS:
        return True
    known = [each for each in languages if each in _LANGUAGES]
    beginnings = (pattern for each in known for pattern in (_INTERROGATIVES[each], _QUESTIONS[each][AnswerType.YES_NO]))
    return words > 1 and any(pattern.search(text) for pattern in beginnings)


def answer_type(question: str, languages: Sequence[str]) -> AnswerType | None:
    """Return the type of answer that a question asks for, or None if it asks for no particular type."""
    asked = (_QUESTIONS[each] for each in languages if each in _QUESTIONS)
    return next((kind for patterns in asked for kind, pattern in patterns.items() if pattern.search(question)), None)


def has_answer(kind: AnswerType, text: str, languages: Sequence[str]) -> bool:
    """Return whether a text contains an answer of a type, judged by characters or by words of the languages."""
    if (sign := _SIGNS.get(kind)) and sign.search(text):
        return True
    words = (_ANSWERS[each].get(kind) for each in languages if each in _ANSWERS)
    return any(pattern is not None and pattern.search(text) for pattern in words)
