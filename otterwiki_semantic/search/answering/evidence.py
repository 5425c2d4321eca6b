"""What a source says, in units that a statement can rest on: a sentence, an item with what announces it, a row of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from otterwiki_semantic.content.analysis import fold, sentence_ranges
from otterwiki_semantic.content.markdown import is_table_rule
from otterwiki_semantic.search.answering.plain import clean, plain_text
from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.tokens import Token, TokenKind, tokens
from otterwiki_semantic.search.answering.vocabulary import PRONOUNS

_FENCE = re.compile(r"\A\s*+(?:>\s?)*+(`{3,}+|~{3,}+)")
_HEADING = re.compile(r"\A\s{0,3}(#{1,6})\s++")
_ITEM = re.compile(r"\A\s*+(?:[-*+•]|\d{1,3}[.)])\s++(?:\[[xX]\]\s++)?")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_IDLE = {"nothing", "nobody", "none", "nichts", "niemand", "rien"}
"""Negations of an announcement that do not negate what it announces."""
_MAX_UNITS = 2_000
_MAX_TOKENS = 250
"""Tokens of a unit that are compared."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or what is said as one."""

    text: str
    tokens: tuple[Token, ...]
    context: frozenset[str]
    """Keys of words that stand above it: in title, headings, and what announces it."""
    required: frozenset[str] = frozenset()
    """Negations and conditions of what announces it, without which it says something else."""
    continues: bool = False
    """Whether it begins with a pronoun for something in the sentence before it."""
    columns: tuple[Column, ...] = ()
    """Of a row of a table; else empty."""
    place: int = 0
    """Its number in the source."""
    is_code: bool = False
    joint: int = 0
    """Where in `tokens` a second sentence begins that continues the first; 0 if none does."""
    is_joined: bool = False
    """Whether it is put together from units that are also there by themselves."""


@dataclass(frozen=True, slots=True)
class Column:
    """A cell of a table with its header."""

    header: frozenset[str]
    value: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source as statements are compared with it."""

    number: int
    units: tuple[Unit, ...]
    code: frozenset[str]
    """The lines of code and text, each without the spaces around it."""
    text: str
    """All that a reader sees, folded."""


def _restricts(heading: Token, at: int) -> bool:
    """Whether a word of a heading, the `at`-th of its tokens, restricts what stands below it."""
    if heading.kind is TokenKind.NEGATION:
        return at < 2 and fold(heading.text) not in _IDLE
    is_first = at == 0 and heading.key in {"<if>", "<only>"} and fold(heading.text) not in {"when", "wenn"}
    return is_first or heading.key in {"<claimed>", "<forbidden>"}


def restricting_heading(source: Source, language: str) -> str:
    """Return the heading right above a source if that restricts what stands below it, such as *Myths*; else nothing."""
    heading = source.headings[-1] if source.headings else ""
    return heading if any(_restricts(token, at) for at, token in enumerate(tokens(heading, language))) else ""


@dataclass(slots=True)
class _Reader:
    language: str
    headings: tuple[str, ...]
    units: list[Unit] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    announcement: str = ""

    def context(self) -> frozenset[str]:
        above = " . ".join((*self.headings, *self.inner))
        return frozenset(token.key for token in tokens(above, self.language) if token.kind is not TokenKind.NUMBER)

    def required(self) -> frozenset[str]:
        """Return what a heading such as *Do not*, *If the disk fails* or *Myths* says of all that stands below it."""
        above = [tokens(text, self.language) for text in (*self.headings[-1:], *self.inner[-1:])]
        return frozenset(token.key for found in above for at, token in enumerate(found) if _restricts(token, at))

    def add(
        self,
        text: str,
        found: Sequence[Token],
        continues: bool = False,
        columns: tuple[Column, ...] = (),
        is_code: bool = False,
        joint: int = 0,
    ) -> None:
        if found and len(self.units) < _MAX_UNITS:
            context = frozenset() if is_code else self.context()
            place, kept = len(self.units), tuple(found[:_MAX_TOKENS])
            self.units.append(Unit(text, kept, context, self.required(), continues, columns, place, is_code, joint))

    def prose(self, text: str, announced: str = "") -> None:
        previous = ""
        for sentence in sentences(text):
            first = next(iter(fold(sentence).split()), "").strip(".,:;")
            before = previous or announced
            continues = first in PRONOUNS and bool(before)
            if not sentence.rstrip().endswith("?"):
                self.add(sentence, tokens(sentence, self.language), continues=continues)
                if before and (continues or (announced and not previous)):
                    self.joined(before, sentence, continues and bool(previous))
            previous = sentence
        self.announcement = previous if previous.endswith((":", "：")) else ""

    def joined(self, before: str, sentence: str, continues: bool = False) -> None:
        """Add a sentence together with the one that it continues."""
        first = tokens(before, self.language)
        start = first[-1].clause + 1 if first else 0
        both = [*first, *tokens(sentence, self.language, start)]
        self.add(f"{before} {sentence}", both, joint=len(first) if continues else 0)
        self.units[-1:] = [replace(unit, is_joined=True) for unit in self.units[-1:]]


def read_source(source: Source, language: str) -> Evidence:
    """Return what a source says."""
    text = _FRONT_MATTER.sub("", clean(source.text.replace("\r\n", "\n").replace("\r", "\n")))
    reader = _Reader(language, (source.title, *source.headings))
    code: set[str] = set()
    shown: list[str] = [source.title, *source.headings]
    for kind, lines in _blocks(text.split("\n")):
        if kind == "code":
            body = [line.strip() for line in lines if line.strip()]
            code.update(body)
            shown += body
            _read_code(reader, body)
        elif kind == "heading":
            _read_heading(reader, lines[0])
            shown.append(plain_text(lines[0]))
        elif kind == "table":
            rows = [[plain_text(cell) for cell in cells(line)] for line in lines]
            shown += [" ".join(row) for row in rows]
            _read_table(reader, rows)
        elif kind == "list":
            shown += [plain_text(line) for line in lines]
            _read_list(reader, lines)
        else:
            paragraph = plain_text(" ".join(lines))
            shown.append(paragraph)
            reader.prose(paragraph)
        code.update(re.findall(r"`([^`\n]+)`", "\n".join(lines)) if kind != "code" else ())
    code.update(" ".join(line.split()) for line in shown)
    return Evidence(source.number, tuple(reader.units), frozenset(code), fold("\n".join(shown)))


def _blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the blocks of Markdown: their kind, and their lines without the marks of quotations."""
    for name, group in groupby(_kinds(lines), key=lambda pair: pair[0]):
        if name == "heading":
            yield from ((name, [line]) for _, line in group)
        elif name:
            yield name, [line for _, line in group]


def _kinds(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what each line is a part of, with its text; nothing between blocks."""
    fence, kind = "", ""
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        bare = re.sub(r"^\s*(?:>\s?)+", "", line)
        if fence:
            is_end = mark is not None and mark[1].startswith(fence) and not line.strip(" \t>`~")
            fence = "" if is_end else fence
            yield ("", "") if is_end else ("code", bare)
        elif mark:
            fence, kind = mark[1], ""
            yield "", ""
        else:
            kind = _kind(lines, at, bare, kind)
            yield kind if bare.strip() else "", bare


def _kind(lines: Sequence[str], at: int, bare: str, before: str) -> str:
    """Return what a line outside of code is a part of, or goes on with if it is empty."""
    if not bare.strip():
        return before if before == "list" else ""
    if _HEADING.match(lines[at]):
        return "heading"
    if "|" in bare and (before == "table" or (at + 1 < len(lines) and is_table_rule(lines[at + 1]))):
        return "table"
    if _ITEM.match(bare) or (before == "list" and (lines[at].startswith((" ", "\t")) or lines[at - 1].strip())):
        return "list"
    return "prose"


def _read_heading(reader: _Reader, line: str) -> None:
    match = _HEADING.match(line)
    if match:
        heading = line[match.end() :].rstrip()
        if (unclosed := heading.rstrip("#"))[-1:].isspace():
            heading = unclosed.rstrip()
        reader.inner = [*reader.inner[: max(len(match[1]) - 2, 0)], plain_text(heading)]
    reader.announcement = ""


def _read_code(reader: _Reader, lines: Sequence[str]) -> None:
    announced, reader.announcement = reader.announcement, ""
    for line in lines:
        reader.add(line, tokens(line, reader.language), is_code=True)
    if announced and lines:
        reader.joined(announced, " ; ".join(lines))


def _read_list(reader: _Reader, lines: Sequence[str]) -> None:
    announced, items = reader.announcement, []
    for line in lines:
        if match := _ITEM.match(line):
            items.append(line[match.end() :])
        elif items:
            items[-1] = f"{items[-1]} {line.strip()}"
    above = [token for token in tokens(announced, reader.language) if token.is_strict and fold(token.text) not in _IDLE]
    first = len(reader.units)
    for item in items:
        reader.prose(plain_text(item), announced)
    if above:
        required = frozenset(token.key for token in above)
        reader.units[first:] = [replace(unit, required=unit.required | required) for unit in reader.units[first:]]
    short = [plain_text(item) for item in items]
    if announced and len(items) > 1 and sum(len(item.split()) for item in short) <= 60:
        reader.joined(announced, " ; ".join(short))
    reader.announcement = ""


def _read_table(reader: _Reader, rows: Sequence[Sequence[str]]) -> None:
    heads = [tokens(cell, reader.language) for cell in rows[0]] if rows else []
    for row in rows[2:]:
        columns: list[Column] = []
        found: list[Token] = []
        for at, cell in enumerate(row):
            header = frozenset(token.key for token in heads[at]) if at < len(heads) else frozenset()
            value = tokens(cell, reader.language, found[-1].clause + 1 if found else 0)
            columns.append(Column(header, tuple(value)))
            found += value
        reader.add(" | ".join(row), found, columns=tuple(columns))
    reader.announcement = ""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of plain text."""
    return (text[start:end] for start, end in sentence_ranges(text))


def cells(line: str) -> list[str]:
    """Return the cells of a table's row."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]
