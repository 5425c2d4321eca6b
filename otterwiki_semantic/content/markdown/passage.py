"""The Markdown of a passage: lines of a page, extended until they can be read on their own.

Lines are classified by their beginnings, without parsing the page: this is fast for a page of any length, and a mistake only
adds some lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from otterwiki_semantic.content.markdown.parser import split_lines
from otterwiki_semantic.content.sentences import ANNOUNCING

_FENCE = re.compile(r"\A(?P<indent>[\s>]*+(?:(?:[-*+]|\d{1,9}[.)])\s++)?)(?P<mark>`{3,}+|~{3,}+)")
_ITEM = re.compile(r"\A\s*+(?:[-*+]|\d{1,9}[.)])\s")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_TABLE_RULE = re.compile(r"\A[\s>]*+(?:\|\s*+)?:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*(?:\|\s*+)?$")
_CELL_END = re.compile(r"(?<!\\)\|")
_MAX_GROWN = 40
_DASHES = re.compile(r"-++")


class _Kind(Enum):
    HEADING = auto()
    PROSE = auto()
    LIST = auto()
    TABLE = auto()
    CODE = auto()


_LEAST_LINES = {_Kind.LIST: 1, _Kind.TABLE: 3, _Kind.CODE: 2}
"""The kinds of blocks that a sentence may announce. When cut, one with fewer lines is useless."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together; `first` and `last` are their numbers, from 0."""

    kind: _Kind
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PassageMarkdown:
    """Some lines of a page."""

    text: str
    start_line: int
    end_line: int


def passage_markdown(page: str, start_line: int, end_line: int, section_words: int = 0) -> PassageMarkdown:
    """Return lines of a page, from 1, with the rest of the blocks that they cut, and any introduction or introduced block.

    A block of more than 40 lines stays cut: code gets its own fences, a table its head. If the whole text between the headings
    around the lines has at most `section_words` words, it is returned whole.
    """
    lines = split_lines(page)
    first, last = max(0, start_line - 1), min(end_line, len(lines)) - 1
    blocks = list(_blocks(lines))
    first, last = _within_headings(lines, blocks, first, last, section_words)
    inside = [at for at, block in enumerate(blocks) if block.last >= first and block.first <= last]
    if not inside:
        return PassageMarkdown("\n".join(lines[first : last + 1]), first + 1, last + 1)
    start, end = inside[0], inside[-1]
    if start and _announces(lines, blocks[start - 1], blocks[start]):
        start -= 1
    if end + 1 < len(blocks) and _announces(lines, blocks[end], blocks[end + 1]) and _is_short(blocks[end + 1]):
        end += 1
    opening, closing = blocks[start], blocks[end]
    first = opening.first if _is_short(opening) else _cut_start(lines, opening, first)
    last = closing.last if _is_short(closing) else max(first, min(closing.last, last))
    head_size = {_Kind.CODE: 1, _Kind.TABLE: 2}.get(opening.kind, 0)  # the fence, or the head and the row of dashes
    head = lines[opening.first : min(opening.first + head_size, first)]
    text = _closed([*head, *lines[first : last + 1]])
    return PassageMarkdown(text, first + 1, last + 1)


def _within_headings(lines: Sequence[str], blocks: Sequence[_Block], first: int, last: int, most_words: int) -> tuple[int, int]:
    """Return the range between the headings around some lines, including the first heading, if short; else the lines."""
    headings = [block.first for block in blocks if block.kind is _Kind.HEADING]
    start = max((at for at in headings if at <= first), default=0)
    end = min((at for at in headings if at > last), default=len(lines)) - 1
    is_small = sum(len(line.split()) for line in lines[start : end + 1]) <= most_words
    return (start, end) if is_small else (first, last)


def truncate_markdown(text: str, size: int) -> str:
    """Return the beginning of a text of at most `size` characters, cut between blocks, lines, sentences, or else words.

    A cut code block is closed. The result never ends with an announcement, or with a heading without its text.
    """
    text = text.rstrip()
    if len(text) <= size:
        return text
    lines = split_lines(text)
    blocks = list(_blocks(lines))
    whole = bisect_right(blocks, size, key=lambda block: len("\n".join(lines[: block.last + 1])))
    if whole == len(blocks):  # line ends of two characters are counted once
        return "\n".join(lines)
    first = blocks[whole].first
    if cut := _cut_block(lines, blocks[whole], size - len("\n".join([*lines[:first], ""]))):
        return "\n".join([*lines[:first], cut])
    while whole and (blocks[whole - 1].kind is _Kind.HEADING or lines[blocks[whole - 1].last].rstrip().endswith(ANNOUNCING)):
        whole -= 1
    return "\n".join(lines[: blocks[whole - 1].last + 1]) if whole else ""


def _cut_block(lines: Sequence[str], block: _Block, room: int) -> str:
    """Return the beginning of a block of at most `room` characters; empty if too little of it would be left."""
    own = lines[block.first : block.last + 1]
    if block.kind is _Kind.HEADING:
        return ""
    if block.kind is _Kind.PROSE:
        return _cut_prose("\n".join(own), room)
    number = bisect_right(range(1, len(own)), room, key=lambda number: len(_closed(own[:number])))
    while (
        number
        and block.kind is not _Kind.CODE
        and (not own[number - 1].strip() or own[number - 1].rstrip().endswith(ANNOUNCING))
    ):
        number -= 1
    return _closed(own[:number]) if number >= _LEAST_LINES[block.kind] else ""


def _cut_prose(text: str, room: int) -> str:
    """Return the beginning of a paragraph, to the end of a sentence, or of a word if that preserves half of the room."""
    beginning = text[: max(room, 0)]
    sentences = [match.end() for match in re.finditer(r"[.!?…。！？][\"')\]]*(?=\s|$)", beginning)]
    if sentences and sentences[-1] >= room / 2:
        return beginning[: sentences[-1]]
    space = max(beginning.rfind(" "), beginning.rfind("\n"))
    return beginning[:space] if space >= room / 2 > 0 else ""


def _is_short(block: _Block) -> bool:
    return block.last - block.first < _MAX_GROWN


def _announces(lines: Sequence[str], block: _Block, following: _Block) -> bool:
    return block.kind is _Kind.PROSE and following.kind in _LEAST_LINES and lines[block.last].rstrip().endswith(ANNOUNCING)


def _cut_start(lines: Sequence[str], block: _Block, first: int) -> int:
    """Return the first line to use of a long block; for a list, the line of an item."""
    places = range(max(block.first, first), block.first - 1, -1)
    if block.kind is not _Kind.LIST:
        return places[0]
    return next((at for at in places if _ITEM.match(lines[at])), block.first)


def _closed(lines: Sequence[str]) -> str:
    """Return lines as text, with an open code fence closed."""
    at = 0
    while at < len(lines):
        if opened := _FENCE.match(lines[at]):
            end = _code_end(lines, at)
            if end is None:
                return "\n".join([*lines, re.sub(r"[^\s>]", " ", opened["indent"]) + opened["mark"]])
            at = end
        at += 1
    return "\n".join(lines)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
            continue
        kind, last = _block_at(lines, at)
        yield _Block(kind, at, last)
        at = last + 1


def _block_at(lines: Sequence[str], at: int) -> tuple[_Kind, int]:
    line = lines[at]
    if _FENCE.match(line):
        end = _code_end(lines, at)
        return _Kind.CODE, len(lines) - 1 if end is None else end
    if _HEADING.match(line):
        return _Kind.HEADING, at
    if _is_table(lines, at):
        return _Kind.TABLE, _last_while(lines, at, lambda each: "|" in lines[each])
    if _ITEM.match(line):
        return _Kind.LIST, _list_end(lines, at)
    return _Kind.PROSE, _last_while(lines, at, lambda each: bool(lines[each].strip()) and not _begins_block(lines, each))


def _last_while(lines: Sequence[str], at: int, is_own: Callable[[int], bool]) -> int:
    return next((each - 1 for each in range(at + 1, len(lines)) if not is_own(each)), len(lines) - 1)


def _begins_block(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    return bool(_FENCE.match(line) or _HEADING.match(line) or _ITEM.match(line)) or _is_table(lines, at)


def _is_table(lines: Sequence[str], at: int) -> bool:
    return "|" in lines[at] and at + 1 < len(lines) and is_table_rule(lines[at + 1])


def is_table_rule(line: str) -> bool:
    """Whether a line could be the row of dashes below the head of a table."""
    return "-" in line and bool(_TABLE_RULE.match(line))


def unpadded_tables(markdown: str) -> str:
    """Return Markdown without what only aligns the columns of its tables."""
    lines = split_lines(markdown)
    for block in _blocks(lines):
        for at in range(block.first, block.last + 1) if block.kind is _Kind.TABLE else ():
            if (row := lines[at].lstrip()).startswith("|"):
                cells = [_DASHES.sub("---", cell) for cell in row_cells(row)] if is_table_rule(row) else row_cells(row)
                lines[at] = f"{lines[at].removesuffix(row)}| {' | '.join(cells)} |"
    return "\n".join(lines)


def row_cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in _CELL_END.split(line.strip().removeprefix("|").removesuffix("|"))]


def fenced_lines(markdown: str) -> Iterator[str]:
    """Yield the lines of code between fences."""
    lines, at = split_lines(markdown), 0
    while at < len(lines):
        if _FENCE.match(lines[at]):
            end = _code_end(lines, at)
            yield from lines[at + 1 : end]
            at = len(lines) if end is None else end
        at += 1


def _code_end(lines: Sequence[str], at: int) -> int | None:
    """Return the last line of the code that begins at a line; None if the code is left open."""
    opened = _FENCE.match(lines[at])
    assert opened is not None
    for last in range(at + 1, len(lines)):
        line = lines[last].strip(" \t>")
        if line.startswith(opened["mark"]) and not line.strip(opened["mark"][0]):
            return last
    return None


def _list_end(lines: Sequence[str], at: int) -> int:
    last, next_line = at, at + 1
    while next_line < len(lines):
        line = lines[next_line]
        is_own = bool(_ITEM.match(line)) or line[:1] in {" ", "\t"}
        if line.strip() and not is_own and (not lines[next_line - 1].strip() or _begins_block(lines, next_line)):
            break
        if line.strip():
            end = _code_end(lines, next_line) if _FENCE.match(line) else next_line
            last = next_line = len(lines) - 1 if end is None else end
        next_line += 1
    return last
