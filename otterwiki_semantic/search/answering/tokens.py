"""The words of a statement or of a source as they are compared: content words, numbers with their units, names, negations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

import regex

from otterwiki_semantic.content.analysis import fold, words
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.vocabulary import (
    ESTIMATES,
    JOINS,
    PARTICLES,
    PREPOSITIONS,
    irregular_stems,
    joining_words,
    kept_classes,
    light_words,
    negations,
    number_words,
    word_key,
)


class TokenKind(Enum):
    """What a token is compared as."""

    WORD = auto()
    NUMBER = auto()
    NAME = auto()
    NEGATION = auto()
    KEPT = auto()
    """A word that restricts what is said, such as *only*."""
    LIGHT = auto()
    """A word that a model adds to any answer."""
    LIGHT_VERB = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A word that is compared."""

    key: str
    """What has to be equal: stem, number, folded name, or class."""
    text: str
    """As it is written."""
    kind: TokenKind
    clause: int
    before: tuple[str, ...] = ()
    """Joining words between it and the token before it, folded."""
    unit: str = ""
    """Of a number: the key of the word right after it."""
    ends_part: bool = False
    """Whether a comma, a conjunction or the like follows."""
    stop: str = ""
    """The sign that follows, if that ends a clause."""
    is_capital: bool = False
    is_moved: bool = False
    """Whether it begins a part that stands elsewhere in the statement as written."""

    @property
    def preposition(self) -> str:
        """The last preposition right before it, or nothing."""
        return next((word for word in reversed(self.before) if word in PREPOSITIONS), "")

    @property
    def is_content(self) -> bool:
        return self.kind in {TokenKind.WORD, TokenKind.NUMBER, TokenKind.NAME}

    @property
    def is_strict(self) -> bool:
        """Whether a source has to have it, and whoever leaves it out says something else."""
        return self.kind in {TokenKind.NEGATION, TokenKind.KEPT}


OWNED = "'s"
"""Stands among the words before what somebody owns."""
UNTICKED = "☐"
_LETTER = r"\p{Latin}\p{Greek}\p{Cyrillic}"
_PIECE = regex.compile(
    r"(?P<literal>(?:https?://|www\.)[^\s<>\"']+|[\w.+-]{1,64}+@[\w-]++(?:\.[\w-]++)++"
    r"|(?<![\w/])[~.]{0,2}/[\w.@:+~%*-][\w./@:+~%*?=&-]*|(?<![^\s(])--?[A-Za-z][\w-]*"
    rf"|(?<!\w)(?=[{_LETTER}_])\w[\p{{Alphabetic}}\p{{M}}\p{{Nd}}-]{{0,64}}+(?:[_/\\@=]|::|\.(?=[\w]))(?:[./\\@=:-]*+\w++)++)"
    rf"|(?P<number>(?<![{_LETTER}\p{{N}}_.])(?:[<>≤≥≈~±]=?\s?)?(?:[€$£¥]\s?)?[+\u2212-]?\d+(?:[.,:’'/]\d+|-\d+){{0,64}}(?P<sign>\s?(?:%|‰|°\s?[CFK]?\b|[€$£¥]))?"
    rf"(?![{_LETTER}]{{4}})(?P<suffix>\p{{Latin}}{{1,3}}[²³]?)?(?![{_LETTER}\p{{N}}_]))"
    rf"|(?P<id>(?<!\w)\p{{Lu}}?\p{{Ll}}+\p{{Lu}}[{_LETTER}\p{{N}}_]*|(?<!\w)(?=[\p{{L}}\p{{M}}_-]{{0,64}}+\d)(?=[\p{{N}}_-]{{0,64}}+[{_LETTER}])[{_LETTER}\p{{N}}_]+(?:-[{_LETTER}\p{{N}}_]+)*)"
    r"|(?P<word>[\p{L}\p{M}]++(?:[’'][\p{L}]++)*+[²³]?|☐)"
    r"|(?P<stop>[;:,()\[\]|—–!?.。、，；：]|\s-\s)"
)
_NOT = re.compile(r"(?<=[a-z])n['’]t\b|(?<=\bcan)not\b", re.IGNORECASE)
_BESIDE = re.compile(r"\bnext to\b", re.IGNORECASE)
_EXCEPTION = re.compile(r"\b(?:other than|apart from|aside from)\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"\w[’']s$")
_BOUNDS = {
    "<=": "<most>",
    "≤": "<most>",
    "<": "<less>",
    ">=": "<least>",
    "≥": "<least>",
    ">": "<more>",
    **dict.fromkeys("≈~±", "<about>"),
}
"""Classes of the signs before numbers."""
_CONDITION = re.compile(r"\b(?:as long as|provided that|in case(?! of)|solange)\b", re.IGNORECASE)
_INVERTED = {
    "en": re.compile(r"^(?=(?:Were|Had|Should)\s[^?.!,]*,[^?]*$)"),
    "de": re.compile(
        r"^(?!(?:Mit|Seit|Erst|Jetzt|Zuletzt|Meist|Oft|Sonst|Selbst|Fast|Nicht|Dort)\s)(?=(?:[A-ZÄÖÜ]\w+t|Wird|Werden|Sind|Haben|Muss|Soll"
        r"|Kann|Will|(?:Hätte|Wäre|Würde|Sollte|Könnte|Müsste)n?)\s"
        r"(?:de[rnm]|die|das|(?:k?ein|ihr|sein|dies)\w*|es|er|sie|man|jemand|niemand|nichts|[A-ZÄÖÜ]\w+)\b[^.?!,]*,[^?]*$)"
    ),
}
"""Of a language, the beginning of a condition without *if*, such as *Fällt eine Platte aus, …*."""
_THOUSANDS = re.compile(r"\d{1,3}(?:[,'’]\d{3})+")
_TIME = re.compile(r"0(\d:\d\d)")


def tokens(text: str, language: str = ENGLISH, clause: int = 0) -> list[Token]:
    """Return the tokens of a sentence, whose clauses are numbered from `clause`."""
    found: list[Token] = []
    before: list[str] = []
    is_adjoining = False
    text = _NOT.sub(" not", unicodedata.normalize("NFC", text).replace("’", "'"))
    text = _BESIDE.sub("beside", _EXCEPTION.sub("except", text))
    conditional = "wenn" if language == "de" else "if"
    if language in _INVERTED:
        text = _INVERTED[language].sub(f"{conditional} ", text)
    is_shouted = text.isupper()
    for piece, spelled, extra in _pieces(_CONDITION.sub(conditional, text)):
        if piece == "stop":
            particle = _particle(before, language, clause)
            found += particle
            found, clause = _ended(found, clause, spelled)
            before = [] if particle else before
            is_adjoining = False
            continue
        folded = fold(spelled)
        is_acronym = (len(spelled) > 1 or _is_initial(spelled, found)) and spelled.isupper() and not is_shouted
        if (
            piece == "word"
            and folded in joining_words(language) | JOINS
            and folded not in kept_classes(language)
            and not is_acronym
        ):
            if folded in JOINS:
                found, clause = _ended(found, clause)
            before.append(folded)
            is_adjoining = False
            continue
        for token in _made(piece, spelled, extra, clause, language):
            if token.kind is TokenKind.NUMBER and found and not before and found[-1].text.lower() in ESTIMATES:
                found[-1] = replace(found[-1], key="<about>", kind=TokenKind.KEPT)
            if is_adjoining and token.kind in {TokenKind.WORD, TokenKind.LIGHT, TokenKind.LIGHT_VERB, TokenKind.NAME}:
                found[-1] = replace(found[-1], unit=found[-1].unit or token.key)
            is_light = token.kind in {TokenKind.LIGHT, TokenKind.LIGHT_VERB}
            is_name = is_light and token.is_capital and bool(found) and not found[-1].ends_part  # such as *Next*
            found.append(replace(token, before=tuple(before), kind=TokenKind.WORD if is_name else token.kind))
            before = []
            is_adjoining = token.kind is TokenKind.NUMBER
        if _POSSESSIVE.search(spelled):
            before.append(OWNED)
    return [*found, *_particle(before, language, clause)]


def _particle(before: Sequence[str], language: str, clause: int) -> list[Token]:
    """Return the part of a German verb that ends a clause, such as *aus* in *schalten Sie die Pumpe aus*."""
    is_part = language == "de" and bool(before) and before[-1] in PARTICLES
    return [Token(f"~{before[-1]}", before[-1], TokenKind.KEPT, clause)] if is_part else []


def _is_initial(spelled: str, found: Sequence[Token]) -> bool:
    """Whether a letter is a name, such as that of *pump A*."""
    return len(spelled) == 1 and spelled.isupper() and spelled != "I" and bool(found) and not found[-1].ends_part


def _ended(found: list[Token], clause: int, stop: str = "") -> tuple[list[Token], int]:
    """End a clause that has begun."""
    if found and found[-1].clause == clause:
        found[-1] = replace(found[-1], ends_part=True, stop=stop)
        return found, clause + 1
    return found, clause


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    for match in _PIECE.finditer(text):
        kind = match.lastgroup or "stop"
        for name in ("literal", "number", "id", "word", "stop"):
            if match[name]:
                kind = name
        if kind == "number":
            sign, suffix = (match["sign"] or "").replace(" ", ""), match["suffix"] or ""
            yield kind, match[0], sign or suffix
        else:
            yield kind, match[0].rstrip(".,:;!?") if kind == "literal" else match[0], ""


def _made(piece: str, spelled: str, extra: str, clause: int, language: str) -> Iterator[Token]:
    if piece == "number":
        if bound := _BOUNDS.get(spelled[:2]) or _BOUNDS.get(spelled[0]):
            yield Token(bound, spelled[0], TokenKind.KEPT, clause)
        digits = re.sub(r"[^\d.,:/'’-]", "", spelled.replace("\u2212", "-"))
        currency = re.sub(r"[^€$£¥]", "", spelled)
        unit = extra if extra and not extra.isalpha() else ""
        yield Token(f"#{_number(digits)}{currency or unit}", spelled.strip(), TokenKind.NUMBER, clause)
        if extra.isalpha():
            yield Token(fold(extra), extra, TokenKind.WORD, clause)
    elif piece in {"literal", "id"}:
        yield Token(fold(spelled), spelled, TokenKind.NAME, clause, is_capital=True)
    else:
        yield from _words(spelled, clause, language)


def _words(spelled: str, clause: int, language: str) -> Iterator[Token]:
    folded = fold(spelled)
    if spelled == UNTICKED:
        yield Token("<not done>", spelled, TokenKind.KEPT, clause)
    elif spelled[-1] in "²³":
        yield Token(spelled.lower(), spelled, TokenKind.NAME, clause)
    elif folded in negations(language):
        yield Token("not", spelled, TokenKind.NEGATION, clause)
    elif folded in number_words(language):
        yield Token(f"#{number_words(language)[folded]}", spelled, TokenKind.NUMBER, clause)
    elif name := kept_classes(language).get(folded):
        yield Token(f"<{name}>", spelled, TokenKind.KEPT, clause)
    else:
        light, verbs = light_words(language)
        for word in words(spelled, language):
            for part, exact in zip(word.parts, word.exact, strict=True) if not word.is_unigram or len(spelled) == 1 else ():
                if len(part) == 1 and len(spelled) > 1 and part.isascii():
                    continue  # what an apostrophe has cut off
                key = word_key(exact, part, language)
                key = irregular_stems().get(key, key) if language == ENGLISH else key
                kind = TokenKind.LIGHT if key in light else TokenKind.LIGHT_VERB if key in verbs else TokenKind.WORD
                yield Token(key, spelled[word.start : word.end], kind, clause, is_capital=spelled[:1].isupper())


def _number(digits: str) -> str:
    sign = "-" if digits.startswith("-") else ""
    digits = sign + digits.strip(".,:/-'’")
    if _THOUSANDS.fullmatch(digits):
        return re.sub(r"[,'’]", "", digits)
    return _TIME.sub(r"\1", digits)
