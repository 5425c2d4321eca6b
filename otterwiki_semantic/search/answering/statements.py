"""Divide a model's output into statements, and read the sources that each cites.

A statement is a sentence of a paragraph, a list item, a table row or a code block. It cites only the sources whose marks are
in it or directly after it: a mark at the end of a paragraph counts for the last sentence only. Code without a mark of its own
has the marks of the sentence that announces it with a colon. Headings are dropped, because their claims would have no source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice

from otterwiki_semantic.content.analysis import ANNOUNCING, ends_sentence, sentence_ranges
from otterwiki_semantic.content.markdown import is_table_rule, row_cells
from otterwiki_semantic.search.answering.plain import CODE, clean, plain_text

MAX_CHARACTERS = 40_000
"""Characters of an answer that are read; the rest is dropped."""
MAX_STATEMENTS = 300
_MAX_OPEN = 4_000
"""Characters after which a long statement is divided."""
_MAX_NUMBER = 999

_NAME = r"(?:sources?|quellen?|fuentes?|fontes?|refs?\.?|references?|passages?|notes?|n[or]\.)"
_NUMBERS = r"#?\d{1,3}(?:\s*+(?:[,;&/+-]|\u2013|and|und|et|y|e)\s*+\^?(?:sources?\s*+|quellen?\s*+)?#?\d{1,3})*"
_MARK = re.compile(
    rf"[\[［]\s*+(?:\^\s*+)?(?:{_NAME}\s*+(?::\s*+)?)?(?P<square>{_NUMBERS})\s*+[\]］](?:\([^()\s]*\))?"
    rf"|【\s*+(?:{_NAME}\s*+(?::\s*+)?)?(?P<lenticular>{_NUMBERS})(?:[†:][^】]{{0,40}})?\s*+】"
    rf"|[(（]\s*+(?:see\s++|siehe\s++|voir\s++)?{_NAME}\s*+(?::\s*+)?(?P<round>{_NUMBERS})\s*+[)）]",
    re.IGNORECASE,
)
_CODE_OR_MARK = re.compile(f"{CODE.pattern}|{_MARK.pattern}", re.IGNORECASE)
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Enclose the numbers of a mark in text; `clean` removes these characters from all input."""
_READ_MARK = re.compile(rf"(?:(?<!\s)\s++)?{_OPEN}([\d ]*+){_CLOSE}")
_AFTER_END = re.compile(rf"(?<![.!?…。！？])([.!?…。！？]++[\"'”’)\]*_~」』）]*+)((?:\s*+{_OPEN}[\d ]*+{_CLOSE})+)(?=(\S?))")
_RANGE = re.compile(r"(?<!\d)(\d++)\s*+[-\u2013]\s*+#?(\d++)")
_MARKS = rf"(?:\s*(?:{re.sub('[?]P<[a-z]+>', '', _MARK.pattern)}))*"
_ENDS_SENTENCE = re.compile(
    rf"(?:[.!?…][\"'”’)\]*_`~]*{_MARKS}\s|[。！？][」』）]*{_MARKS}\s?)\s*\Z",
    re.IGNORECASE,
)
_CONTINUES = frozenset("[【［(（\"'”’)]*_`~」』）.!?…。！？")
"""Characters that may belong to the previous sentence, or hide some that do."""

_FENCE = re.compile(r"\A\s*+(?P<mark>`{3,}+|~{3,}+)(?P<info>[^`]*+)$")
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"\A\s*+(?:[-*+•]|\d{1,3}[.)])\s++(?:\[[ xX]\]\s++)?")
_RULE = re.compile(r"\A\s*+(?:(?:[-*_=]\s*+){3,}|=++\s*+)$")
_QUOTED = re.compile(r"\A\s*+(?:>\s?)+")
_DEFINITION = re.compile(r"\s{0,3}\[[^\[\]]+\]:\s")
_IS_PLAIN = re.compile(r"\A\s*+(?:[^\W\d_]|\d++[^\d.)]|\*\*\S|[\"'“‘«(]\w)")
"""The beginning of a line that can only belong to a paragraph."""


class StatementKind(StrEnum):
    """What a statement is part of; determines how it is shown."""

    SENTENCE = "sentence"
    ITEM = "item"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Statement:
    """The smallest part of an answer that is checked separately."""

    text: str
    """Without citation marks, Markdown and HTML; code is verbatim, with line breaks."""
    kind: StatementKind
    block: int
    """From 0. Statements of one paragraph, list, table or code block share the number."""
    cited: tuple[int, ...]
    """Numbers of sources, from 1, without repeats, in the order cited. Numbers without a source are dropped."""


def parsed_statements(chunks: Iterable[str], sources: int) -> Iterator[Statement]:
    """Yield the statements of an answer to which texts are added, as soon as each is complete."""
    parser = StatementParser(sources)
    for chunk in chunks:
        yield from parser.feed(chunk)
    yield from parser.finish()


class StatementParser:
    """Parse an answer as it is written. The result does not depend on how the text is divided among calls."""

    def __init__(self, sources: int) -> None:
        self._sources = min(sources, _MAX_NUMBER)
        self._read = 0
        self._made = 0
        self._block = 0
        self._line = ""
        self._is_within_line = False
        """Whether the beginning of this line is already part of a statement."""
        self._open = ""
        """Text of a paragraph or an item that is not a statement yet."""
        self._kind: StatementKind | None = None
        self._fence = ""
        self._code: list[str] = []
        self._waiting: Statement | None = None
        """Code that may still get a mark."""
        self._announced: tuple[int, ...] = ()
        self._table: list[str] | None = None
        self._header: list[str] | None = None

    def feed(self, text: str) -> list[Statement]:
        """Return the statements that this text completes."""
        return self._bounded(statement for character in text for statement in self._push(character))

    def finish(self) -> list[Statement]:
        """Return the remaining statements at the end of the answer."""
        return self._bounded(self._end())

    def _bounded(self, statements: Iterable[Statement]) -> list[Statement]:
        found = list(islice(statements, MAX_STATEMENTS - self._made))
        self._made += len(found)
        return found

    def _push(self, character: str) -> Iterator[Statement]:
        self._read += 1
        if self._read > MAX_CHARACTERS or self._made >= MAX_STATEMENTS:
            return
        if character == "\n":
            yield from self._end_line()
            return
        if not (character := clean(character)):
            return
        if not self._fence and self._is_done_before(character):
            yield from self._flush(self._open + self._line)
            self._open, self._line, self._is_within_line = "", "", True
        self._line += character
        if len(self._line) >= _MAX_OPEN:
            yield from self._end_line()

    def _is_done_before(self, character: str) -> bool:
        """Whether the open text consists of whole sentences that the character does not continue."""
        if character.isspace() or character.islower() or character in _CONTINUES or not self._is_prose():
            return False
        last = self._line[-1:]
        if not (last.isspace() or last in "。！？」』）】" or len(self._open) + len(self._line) > _MAX_OPEN):
            return False
        text = self._open + self._line
        if len(text) > _MAX_OPEN:
            return True
        ended = _ENDS_SENTENCE.search(text[-200:])
        return bool(ended) and not _is_unclosed(text) and ends_sentence(text, len(text.rstrip()), character)

    def _is_prose(self) -> bool:
        if self._kind is StatementKind.ITEM or self._table is not None or self._header is not None:
            return False
        return self._is_within_line or (bool(_IS_PLAIN.match(self._line)) and not self._line.startswith("    "))

    def _end_line(self) -> Iterator[Statement]:
        line, self._line = self._line, ""
        if self._is_within_line:
            self._is_within_line = False
            yield from self._continue(StatementKind.SENTENCE, line)
            return
        if self._fence:
            yield from self._end_code_line(line)
            return
        line = _QUOTED.sub("", line, count=1) if line.lstrip().startswith(">") else line
        if self._header is not None or self._table is not None:
            yield from self._end_row(line)
            if line.strip().startswith("|"):
                return
        yield from self._end_text_line(line)

    def _end_text_line(self, line: str) -> Iterator[Statement]:
        if fence := _FENCE.match(line):
            yield from self._end_block()
            self._fence, self._code = fence["mark"], []
        elif not line.strip():
            yield from self._end_statement()
            if self._kind is StatementKind.SENTENCE:
                yield from self._end_block()
        elif _HEADING.match(line) or _RULE.match(line) or _DEFINITION.match(line):
            yield from self._end_block()
        elif item := _ITEM.match(line):
            if self._kind is StatementKind.SENTENCE:
                yield from self._end_block()
            yield from self._end_statement()
            self._kind, self._open = StatementKind.ITEM, line[item.end() :] + " "
        elif line.strip().startswith("|"):
            yield from self._end_block()
            self._header = row_cells(line)
        else:
            if self._kind is StatementKind.ITEM and not self._open and not line.startswith(" "):
                yield from self._end_block()
            yield from self._continue(self._kind or StatementKind.SENTENCE, line)

    def _continue(self, kind: StatementKind, line: str) -> Iterator[Statement]:
        """Append a line to the open text."""
        self._kind, self._open = kind, f"{self._open}{line} "
        if len(self._open) > _MAX_OPEN:
            yield from self._end_statement()

    def _end_row(self, line: str) -> Iterator[Statement]:
        """Handle a line after the first one of a table; the header row is not a statement."""
        header, self._header = self._header, None
        if header is not None and is_table_rule(line):
            self._table = header
            return
        if header is not None:
            yield from self._row(header, [])
            self._table = []
        if line.strip().startswith("|"):
            yield from self._row(row_cells(line), self._table or [])
        else:
            self._table = None
            self._block += 1

    def _row(self, cells: list[str], head: list[str]) -> Iterator[Statement]:
        heads = [*head, *[""] * len(cells)]
        named = (f"{name}: {cell}" if name else cell for name, cell in zip(heads, cells, strict=False) if cell)
        text, cited = self._unmarked(self._marked("; ".join(named)))
        if text:
            yield from self._release()
            yield Statement(text, StatementKind.ITEM, self._block, cited)

    def _end_code_line(self, line: str) -> Iterator[Statement]:
        bare = line.strip()
        if not bare.startswith(self._fence) or _MARK.sub("", bare).strip(self._fence[0] + " "):
            self._code.append(line.rstrip())
            return
        yield from self._end_code(self._unmarked(self._marked(bare.strip(self._fence[0] + " ")))[1])

    def _end_code(self, cited: tuple[int, ...] = ()) -> Iterator[Statement]:
        text = "\n".join(self._code).strip("\n")
        self._fence, self._code = "", []
        if text.strip():
            yield from self._release()
            self._waiting = Statement(text, StatementKind.CODE, self._block, cited)
        self._block += 1

    def _end_block(self) -> Iterator[Statement]:
        yield from self._end_statement()
        if self._kind is not None:
            self._kind = None
            self._block += 1

    def _end_statement(self) -> Iterator[Statement]:
        text, self._open = self._open, ""
        if text.strip():
            yield from self._flush(text)

    def _end(self) -> Iterator[Statement]:
        if self._line or self._is_within_line:
            yield from self._end_line()
        if self._header is not None:
            yield from self._end_row("")
        if self._fence:
            yield from self._end_code()
        yield from self._end_block()
        yield from self._release()

    def _release(self) -> Iterator[Statement]:
        """Yield the code that was waiting for a mark."""
        if self._waiting is not None:
            yield self._waiting if self._waiting.cited else replace(self._waiting, cited=self._announced)
            self._waiting, self._announced = None, ()

    def _flush(self, text: str) -> Iterator[Statement]:
        """Yield the statements of open text; marks without text belong to the previous code."""
        kind = self._kind = self._kind or StatementKind.SENTENCE
        marked = self._marked(text)
        shown, cited = self._unmarked(marked)
        if self._waiting is not None and cited and not shown.strip(" ."):
            self._waiting = replace(self._waiting, cited=tuple(dict.fromkeys((*self._waiting.cited, *cited))))
            return
        yield from self._release()
        for part in _sentences(marked) if kind is StatementKind.SENTENCE else [marked]:
            shown, cited = self._unmarked(part)
            if any(character.isalnum() for character in shown):
                self._announced = cited if shown.endswith(ANNOUNCING) else ()
                yield Statement(shown, kind, self._block, cited)

    def _marked(self, text: str) -> str:
        """Return plain text with the marks before the end of their sentence, as numbers between private characters."""
        plain = plain_text(text, _CODE_OR_MARK, self._shown)
        return _AFTER_END.sub(lambda match: f"{match[2]}{match[1]}{' ' if match[3] else ''}", plain)

    def _shown(self, mark: re.Match[str]) -> str:
        text = mark["square"] or mark["lenticular"] or mark["round"]
        ranges = (range(int(match[1]), min(int(match[2]), self._sources) + 1) for match in _RANGE.finditer(text))
        numbers = *chain.from_iterable(ranges), *map(int, re.findall(r"\d+", text))
        return f"{_OPEN}{' '.join(map(str, numbers))}{_CLOSE}"

    def _unmarked(self, marked: str) -> tuple[str, tuple[int, ...]]:
        """Return a text from `_marked` without its marks, and the numbers of the sources that it cites, without repeats."""
        numbers = (int(number) for match in _READ_MARK.finditer(marked) for number in match[1].split())
        cited = dict.fromkeys(number for number in numbers if 1 <= number <= self._sources)
        return " ".join(_READ_MARK.sub("", marked).split()), tuple(cited)


def _sentences(text: str) -> Iterator[str]:
    ranges: list[tuple[int, int]] = []
    for start, end in sentence_ranges(text):
        if ranges and not _READ_MARK.sub("", text[start:end]).strip(" ."):
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return (text[start:end] for start, end in ranges)


def _is_unclosed(text: str) -> bool:
    """Whether text ends within code, a link or a tag."""
    tag = re.search(r"<[A-Za-z/!][^<>]*$", text)
    return text.count("`") % 2 == 1 or text.rfind("[") > text.rfind("]") or text.rfind("](") > text.rfind(")") or bool(tag)
