"""Split text into segments: sentences and lines, and parts of those that are too long for a chunk."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from otterwiki_semantic.content.chunking.sizes import TokenCounter, text_size
from otterwiki_semantic.core.chunk_profiles import Unit
from otterwiki_semantic.core.records import Block, BlockKind, Section

PARAGRAPH = "\n\n"
"""The separator before the first segment of a block."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?![a-z\s])|(?<=[。！？])(?![。！？])")
_SENTENCE_OR_LINE_END = re.compile(rf"{_SENTENCE_END.pattern}|\n+")
_SPACE = re.compile(r"\s")
_MAX_WORD = 50
"""Characters that count as one word of a chunk: a tokenizer may make a single token of a long run without spaces."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A heading, a sentence, a line, or a part of one."""

    text: str
    separator: str
    """What joins it to the segment before it."""
    first_line: int
    last_line: int
    section: Section
    is_heading: bool = False
    is_overlap: bool = False
    size: int = 0
    """In the profile's unit, separator included; 0 until `measure`."""
    tokens: int = 0


def heading_segment(section: Section) -> Segment:
    """Return a section's heading."""
    return Segment(section.heading, PARAGRAPH, section.start_line, section.start_line, section, is_heading=True)


def split_block(block: Block, section: Section) -> Iterator[Segment]:
    """Split a block: prose between sentences, rows between lines."""
    if block.kind is BlockKind.PROSE:
        yield from _sentences(block, section)
        return
    for position, line in enumerate(block.lines):
        yield Segment(line.text, "\n" if position else PARAGRAPH, line.number, line.number, section)


def _sentences(block: Block, section: Section) -> Iterator[Segment]:
    text = " ".join(line.text for line in block.lines)
    starts = [0]
    for line in block.lines[:-1]:
        starts.append(starts[-1] + len(line.text) + 1)
    position = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        sentence = text[position:end].strip()
        if sentence:
            first = block.lines[bisect_right(starts, position) - 1].number
            last = block.lines[bisect_right(starts, max(end - 1, position)) - 1].number
            separator = PARAGRAPH if position == 0 else (" " if text[position - 1].isspace() else "")
            yield Segment(sentence, separator, first, last, section)
        position = end


def sentence_ranges(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Return the ranges of the sentences of a chunk's text from `start` on; of what is no prose, those of its lines."""
    ends = [*(match.end() for match in _SENTENCE_OR_LINE_END.finditer(text, start)), len(text)]
    parts = ((begin, end, text[begin:end]) for begin, end in pairwise([start, *ends]))
    return [(end - len(part.lstrip()), begin + len(part.rstrip())) for begin, end, part in parts if part.strip()]


def split_in_half(segment: Segment) -> tuple[Segment, Segment]:
    """Split a segment near its middle: between words, or within the word if there is only one."""
    text, middle = segment.text, len(segment.text) // 2
    space = next((place for place in range(middle, 0, -1) if text[place].isspace()), 0)
    if not space and (found := _SPACE.search(text, middle)):
        space = found.start()
    if space:
        return replace(segment, text=text[:space]), replace(segment, text=text[space + 1 :], separator=" ")
    return replace(segment, text=text[:middle]), replace(segment, text=text[middle:], separator="")


def tail(segment: Segment, size: int, unit: Unit) -> Segment:
    """Return the end of a segment: the last words, up to `size`; without spaces, the last characters."""
    text = " ".join(segment.text.split()[-size:]) if unit is Unit.WORDS else _last_characters(segment.text, size)
    return replace(segment, text=text, separator=" ", first_line=segment.last_line)


def _last_characters(text: str, count: int) -> str:
    """Return the last characters of a text, without a word that this cuts unless there is no other."""
    last = text[-count:]
    if len(text) <= count or text[-count - 1].isspace():
        return last.strip()
    space = _SPACE.search(last.rstrip())
    return last[space.end() :].strip() if space else last.strip()


def measure(segments: Sequence[Segment], counter: TokenCounter, unit: Unit) -> list[Segment]:
    """Return the segments with their sizes and tokens."""
    counts = counter.count_tokens([segment.text for segment in segments])
    return [
        Segment(
            segment.text,
            segment.separator,
            segment.first_line,
            segment.last_line,
            segment.section,
            segment.is_heading,
            segment.is_overlap,
            _size(segment, unit),
            tokens,
        )
        for segment, tokens in zip(segments, counts, strict=True)
    ]


def _size(segment: Segment, unit: Unit) -> int:
    return max(text_size(segment.separator + segment.text, unit), len(segment.text) // _MAX_WORD)


def join(segments: Sequence[Segment]) -> str:
    """Return the text of consecutive segments."""
    return "".join((segment.separator if position else "") + segment.text for position, segment in enumerate(segments)).strip()


def fit(segments: Sequence[Segment], max_size: int, max_tokens: int) -> bool:
    """Whether the segments together are within these limits."""
    return sum(segment.size for segment in segments) <= max_size and total_tokens(segments) <= max_tokens


def total_tokens(segments: Iterable[Segment]) -> int:
    """Return the sum of the tokens."""
    return sum(segment.tokens for segment in segments)
