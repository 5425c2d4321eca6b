"""Excerpts of passages with highlights, and text fragments for links to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Literal
from urllib.parse import quote

from otterwiki_semantic.content import excerpt_window, row_parts
from otterwiki_semantic.content.markdown import MARKUP

_CUT, _CUT_OFF = "…\N{NO-BREAK SPACE}", "\N{NO-BREAK SPACE}…"
"""What begins and ends a text that is cut: never alone on a line."""
_ENDS = (".", "!", "?", ":", ";", ",", "…", "。", "！", "？", "：", "；", "、")
"""What ends a paragraph; others, and headings, get a full stop."""
_MAX_CHARACTERS = 360
_LINES, _LINE = 2, 80
"""How many lines an excerpt has, and the characters of one beside the preview."""
_MARKER = re.compile(rf"\A(?:{_CUT})?\s*+([-*+]|\d{{1,9}}[.)])\s++")
_ANNOUNCEMENT = re.compile(rf"\A[A-ZÀ-Þ]\S*+(?: \S++){{3,}}(?<=[:：])(?:{_CUT_OFF})?")
"""A sentence above code: "Run this on the server:"; not code such as `for each in found:`."""
_CELL, _LINE_END = re.compile(r"(?:\A| )\|(?: |\Z)"), re.compile("\n")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of an excerpt, and whether it is a word of the query."""

    text: str
    is_match: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of an excerpt: prose and table rows, a list item, or a line of code."""

    kind: Literal["text", "item", "code"]
    spans: tuple[Span, ...]
    marker: str = ""
    """The marker of a list item: `•`, or its number."""


def excerpt(
    text: str, start: int, highlights: Sequence[tuple[int, int]], best_sentence: tuple[int, int] | None = None
) -> tuple[Line, ...]:
    """Return about two lines of `text` after `start`, cut between words: with the best sentence, or else most matches.

    `highlights` and `best_sentence` are offsets in `text`, the highlights in order.
    """
    matches = [(begin, end) for begin, end in highlights if begin >= start]
    first, last = excerpt_window(text, start, matches, best_sentence, _MAX_CHARACTERS)
    block = text[:first].rfind("\n\n") + 2
    head, is_cut_off, _ = text[block:first].partition("\n")
    return tuple(_cut(list(_lines(_spans(text, start, first, last, matches), head if is_cut_off else ""))))


def _cut(lines: list[Line]) -> Iterator[Line]:
    """Yield the lines that there is room for; the last one ends at a word."""
    left = _LINES
    for at, line in enumerate(lines):
        needed = -(-len(_text(line.spans)) // _LINE)
        if needed > left:
            yield replace(line, spans=tuple(_shortened(line.spans, left * _LINE - 2)))
            return
        left -= needed
        if not left and lines[at + 1 :] and not _text(line.spans).endswith("…"):
            yield replace(line, spans=(*line.spans, Span(_CUT_OFF)))
            return
        yield line


def _shortened(spans: Iterable[Span], size: int) -> list[Span]:
    """Return the spans of a longer line up to a size, cut between words, and …, which never stands alone on a line."""
    kept: list[Span] = []
    for span in spans:
        if len(span.text) > size:
            whole = span.text[: size + 1].rpartition(" ")[0] or span.text[: size if size > _LINE / 2 else 0]
            kept.append(replace(span, text=whole))
            break
        size -= len(span.text)
        kept.append(span)
    while kept and not kept[-1].text.strip():  # a match began at the cut
        kept.pop()
    return [*kept[:-1], *(replace(last, text=last.text.rstrip()) for last in kept[-1:]), Span(_CUT_OFF)]


def _spans(text: str, start: int, first: int, last: int, matches: Sequence[tuple[int, int]]) -> tuple[Span, ...]:
    """Return the text from `first` to `last` with the matches in it, and … where it is cut."""
    spans = [Span(_CUT)] if text[start:first].strip() else []
    at = first
    for begin, end in matches:
        if at <= begin and end <= last:
            spans += [Span(text[at:begin]), Span(text[begin:end], is_match=True)]
            at = end
    spans.append(Span(text[at:last].rstrip() + (_CUT_OFF if last < len(text.rstrip()) else "")))
    return tuple(span for span in spans if span.text)


def _lines(spans: Iterable[Span], head: str) -> Iterator[Line]:
    """Yield the lines of an excerpt: adjacent prose and table rows as one line. `head` is the first line of a cut block.

    Markup is left out, unless there is nothing else.
    """
    blocks = list(_paragraphs(spans))
    told = [block for block in blocks if block[1:] or not _is_markup(_text(block[0]))] or blocks
    found = chain.from_iterable(_lines_of_block(block, head if block is blocks[0] else None) for block in told)
    for is_flow, lines in groupby(found, key=lambda line: line.kind == "text"):
        if not is_flow:
            yield from lines
            continue
        flow: list[Span] = []
        for line in lines:
            if flow:
                flow.append(Span(" " if _text(flow).rstrip().endswith(_ENDS) else ". "))
            flow += line.spans
        yield Line("text", tuple(flow))


def _is_markup(line: str) -> bool:
    text = line.removeprefix(_CUT).removesuffix(_CUT_OFF)
    return bool(MARKUP.fullmatch(text) if text == line else MARKUP.match(text))


def _paragraphs(spans: Iterable[Span]) -> Iterator[list[list[Span]]]:
    """Yield the lines between two empty lines."""
    for is_text, block in groupby(_split(spans, _LINE_END), key=lambda line: not _text(line).isspace() and bool(_text(line))):
        if is_text:
            yield list(block)


def _split(spans: Iterable[Span], separator: re.Pattern[str]) -> list[list[Span]]:
    parts: list[list[Span]] = [[]]
    for span in spans:
        first, *others = separator.split(span.text)
        parts[-1].append(replace(span, text=first))
        parts += [[replace(span, text=text)] for text in others]
    return parts


def _text(line: Iterable[Span]) -> str:
    return "".join(span.text for span in line)


def _lines_of_block(block: list[list[Span]], head: str | None) -> Iterator[Line]:
    """Yield list items, table rows as one line, lines of code, or a paragraph.

    `head` is the first line if that is cut off, and None if the block is whole.
    """
    markers = [_MARKER.match(_text(line)) for line in block]
    if head is None and not markers[0] and not _text(block[0]).startswith("<"):
        markers = [None] * len(block)  # no list, but code with such characters, for example YAML
    if all(_CELL.search(_text(line)) for line in block) and not any(markers):
        cut = [Span(_CUT)] if block[0][0].text == _CUT else []
        lines = [block[0][len(cut) :], *block[1:]]
        names, *rows = map(_cells, [[Span(head)], *lines] if head else lines)
        first, *others = rows or [names]
        flow = [*cut, *_row(first, names[-len(first) :] if rows else [])]  # a row that is cut has fewer cells
        names = [(Span(_text(name)),) if name else () for name in names]  # marked once
        for row in others:
            flow += [Span("; "), *_row(row, names)]
        yield Line("text", tuple(flow))
        return
    kind: Literal["text", "code"] = "text" if any(markers) or len(block) == 1 else "code"
    for at, (line, marker) in enumerate(zip(block, markers, strict=True)):
        if marker:
            cut = [Span(_CUT)] if marker[0].startswith(_CUT) else []
            yield Line("item", (*cut, *_without(line, marker.end())), "•" if marker[1] in "-*+" else marker[1])
        else:
            yield Line("text" if at == 0 and _ANNOUNCEMENT.fullmatch(_text(line)) else kind, tuple(line))


def _without(line: Iterable[Span], length: int) -> Iterator[Span]:
    for span in line:
        if rest := span.text[length:]:
            yield replace(span, text=rest)
        length = max(0, length - len(span.text))


def _cells(line: Iterable[Span]) -> list[tuple[Span, ...]]:
    """Return the cells of a table row; those without text are empty."""
    return [tuple(cell) if _text(cell).strip() else () for cell in _split(line, _CELL)]


def _row(cells: list[tuple[Span, ...]], names: list[tuple[Span, ...]]) -> Iterator[Span]:
    for part in row_parts(cells, names):
        yield from (Span(part),) if isinstance(part, str) else part


_MAX_WORDS, _MIN_WORDS = 8, 2
_WORD = re.compile(r"\S+")
_BREAK = re.compile(r"\n| \| ")
"""A phrase must not cross the end of a block or of a table cell."""


def text_fragment(
    text: str, start: int, highlights: Sequence[tuple[int, int]], best_sentence: tuple[int, int] | None = None
) -> str:
    """Return the text directive (``:~:text=``) for a URL fragment; empty for a passage without words.

    It marks the best sentence, item or row, or else a phrase around the first of the `highlights` after `start`, or the first
    phrase there; all are offsets in `text`.
    """
    if best_sentence is not None and (directive := _whole(text[slice(*best_sentence)])):
        return directive
    first = next((begin for begin, _ in highlights if begin >= start), None)
    blocks = _blocks(text, start)
    block = next(((begin, end) for begin, end in blocks if first is not None and begin <= first < end), None)
    block = block or next((block for block in blocks if len(_WORD.findall(text, *block)) >= _MIN_WORDS), None)
    if block is None:
        return ""
    words = list(_WORD.finditer(text, *block))
    at = next((number for number, word in enumerate(words) if first is not None and word.end() > first), 0)
    at = max(0, min(at - _MAX_WORDS // 4, len(words) - _MAX_WORDS))
    chosen = words[at : at + _MAX_WORDS]
    return f":~:text={_encoded(text[chosen[0].start() : chosen[-1].end()])}" if chosen else ""


def _whole(unit: str) -> str:
    """Return the directive that marks a whole sentence, item or row; a long one is given by its beginning and end."""
    cells = [cell.strip() for cell in _CELL.split(_MARKER.sub("", unit, count=1)) if cell.strip()]
    if len(cells) > 1:
        return f":~:text={_encoded(cells[0])},{_encoded(cells[-1])}"
    words = cells[0].split() if cells else []
    if len(words) <= _MAX_WORDS:
        return f":~:text={_encoded(' '.join(words))}" if words else ""
    half = _MAX_WORDS // 2
    return f":~:text={_encoded(' '.join(words[:half]))},{_encoded(' '.join(words[-half:]))}"


def _blocks(text: str, start: int) -> list[tuple[int, int]]:
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text, start)]
    begins = [start, *(end for _, end in ends)]
    return list(zip(begins, [*(begin for begin, _ in ends), len(text)], strict=True))


def _encoded(phrase: str) -> str:
    return quote(" ".join(phrase.split()), safe="").replace("-", "%2D")  # hyphens have a meaning in a directive
