"""Split text into segments: sentences, items and lines; long ones are split again to fit in a chunk."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from otterwiki_semantic.content.chunking.sizes import TokenCounter, count_words, text_size
from otterwiki_semantic.content.sentences import sentence_ends
from otterwiki_semantic.core.chunk_profiles import SizeUnit
from otterwiki_semantic.core.records import Block, BlockKind, Line, Section, UnitKind

PARAGRAPH = "\n\n"
"""The separator before the first segment of a block."""
_SPACE = re.compile(r"\s")
_MAX_WORD = 50
"""Characters that count as one word: a tokenizer may treat a long run without spaces as a single token."""
_MAX_ITEM = 60
"""The most words of an item or line that is not split into sentences."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A heading, a sentence, an item, a line, or a part of one."""

    text: str
    separator: str
    first_line: int
    last_line: int
    section: Section
    kind: UnitKind
    is_part: bool = False
    is_overlap: bool = False
    size: int = 0
    """In the profile's unit, including the separator; 0 until `measure`."""
    tokens: int = 0

    @property
    def is_heading(self) -> bool:
        return self.kind is UnitKind.HEADING


def split_block(block: Block, section: Section) -> list[Segment]:
    """Split a block: prose between sentences, a list between items, others between lines; long items and lines as prose."""
    match block.kind:
        case BlockKind.PROSE:
            found = list(_segments(block.lines, " ", lambda text, _starts: sentence_ends(text), section, UnitKind.SENTENCE))
        case BlockKind.LIST:
            found = [part for item in _items(block.lines) for part in _shorter(item, section, UnitKind.ITEM)]
        case BlockKind.LINES:
            found = [part for line in block.lines for part in _shorter((line,), section, UnitKind.SENTENCE)]
        case BlockKind.TABLE | BlockKind.CODE:
            kind = UnitKind.ROW if block.kind is BlockKind.TABLE else UnitKind.CODE
            found = [Segment(line.text, "\n", line.number, line.number, section, kind) for line in block.lines]
    kind = UnitKind.HEADER if block.kind is BlockKind.TABLE else found[0].kind
    return [replace(found[0], separator=PARAGRAPH, kind=kind), *found[1:]]


def _items(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    starts = [place for place, line in enumerate(lines) if place and line.begins_item]
    for start, end in pairwise((0, *starts, len(lines))):
        yield lines[start:end]


def _shorter(lines: Sequence[Line], section: Section, kind: UnitKind) -> Iterator[Segment]:
    """Yield lines as one segment; long ones split into sentences, and long sentences into lines."""
    if count_words("\n".join(line.text for line in lines)) <= _MAX_ITEM:
        return _segments(lines, "\n", lambda _text, _starts: (), section, kind)
    return _segments(lines, "\n", _ends_of_parts, section, kind)


def _ends_of_parts(text: str, line_starts: Sequence[int]) -> Iterator[int]:
    """Yield the ends of sentences, and the line starts within long sentences."""
    for start, end in pairwise((0, *sentence_ends(text), len(text))):
        if count_words(text[start:end]) > _MAX_ITEM:
            yield from line_starts[bisect_right(line_starts, start) : bisect_left(line_starts, end)]
        yield end


def _segments(
    lines: Sequence[Line], joint: str, ends_of: Callable[[str, Sequence[int]], Iterable[int]], section: Section, kind: UnitKind
) -> Iterator[Segment]:
    """Yield the parts of the joined lines, divided at the offsets from `ends_of`, with their original separators."""
    text = joint.join(line.text for line in lines)
    starts = list(accumulate((len(line.text) + len(joint) for line in lines[:-1]), initial=0))
    position = shown_until = 0
    for end in (*ends_of(text, starts), len(text)):
        part = text[position:end].rstrip()
        if part:
            start = position + len(part) - len(part.lstrip()) if position else 0
            gap = text[shown_until:start]
            separator = gap if "\n" in gap else " " if gap else "" if start else "\n"
            first, last = (lines[bisect_right(starts, place) - 1].number for place in (start, position + len(part) - 1))
            yield Segment(text[start : position + len(part)], separator, first, last, section, kind)
            shown_until = position + len(part)
        position = end


def split_in_half(segment: Segment) -> tuple[Segment, Segment]:
    """Split a segment near its middle: between words, or within the word if there is only one."""
    text, middle = segment.text, len(segment.text) // 2
    space = next((place for place in range(middle, 0, -1) if text[place].isspace()), 0)
    if not space and (found := _SPACE.search(text, middle)):
        space = found.start()
    first = replace(segment, text=text[: space or middle], is_part=True)
    return first, replace(first, text=text[space + 1 :] if space else text[middle:], separator=" " if space else "")


def measure(segments: Sequence[Segment], counter: TokenCounter, unit: SizeUnit) -> list[Segment]:
    """Return the segments with their sizes and tokens."""
    counts = counter.count_tokens([segment.text for segment in segments])
    sizes = (max(text_size(each.separator + each.text, unit), len(each.text) // _MAX_WORD) for each in segments)
    return [replace(each, size=size, tokens=tokens) for each, size, tokens in zip(segments, sizes, counts, strict=True)]


def join(segments: Iterable[Segment]) -> tuple[str, list[tuple[int, int]]]:
    """Return the joined text of consecutive segments, and each segment's range in it, without surrounding spaces."""
    text, length = list[str](), 0
    ranges = []
    for segment in segments:
        part = segment.separator + segment.text if text else segment.text.lstrip()
        ranges.append((length + len(part) - len(part.lstrip()), length + len(part.rstrip())))
        text.append(part)
        length += len(part)
    return "".join(text).rstrip(), ranges


def fit(segments: Iterable[Segment], max_size: float, max_tokens: int) -> bool:
    """Whether the segments together are within these limits."""
    return total_size(segments) <= max_size and total_tokens(segments) <= max_tokens


def total_size(segments: Iterable[Segment]) -> int:
    """Return the sum of the sizes."""
    return sum(segment.size for segment in segments)


def total_tokens(segments: Iterable[Segment]) -> int:
    """Return the sum of the tokens."""
    return sum(segment.tokens for segment in segments)
