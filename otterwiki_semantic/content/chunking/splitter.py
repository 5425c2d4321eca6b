"""The smallest parts that chunks are put together from: sentences, lines, and parts of those that are too large."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from otterwiki_semantic.content.chunking.profiles import Unit
from otterwiki_semantic.core.records import Block, BlockKind, Section

PARAGRAPH = "\n\n"
"""What stands before the first piece of a block."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?![a-z\s])|(?<=[。！？])(?![。！？])")
_WORD_CHARACTER = re.compile(r"\w")
_SPACE = re.compile(r"\s")
_MAX_WORD = 50
"""Characters that count as one word of a chunk: a long run without spaces may be a single word piece, yet has to be divided."""


class TokenCounter(Protocol):
    """Counts word pieces as the embedding model does."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give the number of word pieces of each text, without the special ones a model adds at both ends."""
        ...


class ByteCounter:
    """Counts a word piece for each byte of UTF-8, of which no tokenizer makes more; for texts that one fails on."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `TokenCounter`."""
        return [len(text.encode("utf-8", errors="surrogatepass")) for text in texts]


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence, a line, or a part of one. `glue` joins it to the piece before it, `size` is in the profile's unit."""

    text: str
    glue: str
    first_line: int
    last_line: int
    section: Section
    is_heading: bool = False
    is_overlap: bool = False
    size: int = 0
    tokens: int = 0


def count_words(text: str) -> int:
    """Give the number of words: runs of non-space characters with at least one letter or digit among them."""
    return sum(1 for word in text.split() if _WORD_CHARACTER.search(word))


def section_words(section: Section) -> int:
    """Give the number of words below a section's heading."""
    return section_size(section, Unit.WORDS)


def section_size(section: Section, unit: Unit) -> int:
    """Give the size of the text below a section's heading."""
    return sum(_size(line.text, unit) for block in section.blocks for line in block.lines)


def _size(text: str, unit: Unit) -> int:
    return count_words(text) if unit is Unit.WORDS else len(text)


def measured(pieces: Sequence[Segment], counter: TokenCounter, unit: Unit) -> list[Segment]:
    """Give the pieces with their sizes."""
    counts = counter.count_tokens([piece.text for piece in pieces])
    return [
        replace(piece, size=max(_size(piece.glue + piece.text, unit), len(piece.text) // _MAX_WORD), tokens=tokens)
        for piece, tokens in zip(pieces, counts, strict=True)
    ]


def joined(pieces: Sequence[Segment]) -> str:
    """Give the text that pieces make together."""
    return "".join((piece.glue if position else "") + piece.text for position, piece in enumerate(pieces)).strip()


def total_size(pieces: Iterable[Segment]) -> int:
    """Give the sum of the sizes."""
    return sum(piece.size for piece in pieces)


def total_tokens(pieces: Iterable[Segment]) -> int:
    """Give the sum of the word pieces."""
    return sum(piece.tokens for piece in pieces)


def heading_piece(section: Section) -> Segment:
    """Give a section's heading as a piece."""
    return Segment(section.heading, PARAGRAPH, section.start_line, section.start_line, section, is_heading=True)


def block_pieces(block: Block, section: Section) -> Iterator[Segment]:
    """Divide a block: prose between sentences, rows between lines."""
    if block.kind is BlockKind.ROWS:
        for position, line in enumerate(block.lines):
            yield Segment(line.text, "\n" if position else PARAGRAPH, line.number, line.number, section)
        return
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
            glue = PARAGRAPH if position == 0 else (" " if text[position - 1].isspace() else "")
            yield Segment(sentence, glue, first, last, section)
        position = end


def split_in_half(piece: Segment) -> tuple[Segment, Segment]:
    """Divide a piece near its middle: between words, or within a word that is all there is."""
    text, middle = piece.text, len(piece.text) // 2
    space = next((place for place in range(middle, 0, -1) if text[place].isspace()), 0)
    if not space and (found := _SPACE.search(text, middle)):
        space = found.start()
    if space:
        return replace(piece, text=text[:space]), replace(piece, text=text[space + 1 :], glue=" ")
    return replace(piece, text=text[:middle]), replace(piece, text=text[middle:], glue="")


def tail(piece: Segment, size: int, unit: Unit) -> Segment:
    """Give the end of a piece: its last words, as many as `size` allows; of one without spaces its last characters."""
    text = " ".join(piece.text.split()[-size:]) if unit is Unit.WORDS else _last_characters(piece.text, size)
    return replace(piece, text=text, glue=" ", first_line=piece.last_line)


def _last_characters(text: str, count: int) -> str:
    """Give the last characters of a text, without the word that this would cut if there are others."""
    last = text[-count:]
    if len(text) <= count or text[-count - 1].isspace():
        return last.strip()
    space = _SPACE.search(last.rstrip())
    return last[space.end() :].strip() if space else last.strip()
