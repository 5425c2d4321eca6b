"""From a page's sections to the passages that are embedded, found and shown.

A section's boundary is a chunk's boundary, except that a section too short to stand alone is merged with the next one of the
same or a deeper level (the last one with the one before it). Inside a section paragraphs accumulate to a number of words; what
is too large is divided between sentences or lines, then between words, at last between characters. Chunks of one section
overlap; chunks of different sections do not. A chunk's text begins with its heading path and never exceeds the model's window.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Protocol

from otterwiki_semantic.records import Block, BlockKind, Chunk, Document, Section

ALGORITHM = 2
"""Raised with every change that makes other chunks of the same text: the index is then built again."""


class TokenCounter(Protocol):
    """Counts word pieces as the embedding model does."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Give the number of word pieces of each text, without the special ones a model adds at both ends."""
        ...


class BytesAsTokens:
    """Counts a word piece for each byte of UTF-8, of which no tokenizer makes more; for texts that one fails on."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `TokenCounter`."""
        return [len(text.encode("utf-8", errors="surrogatepass")) for text in texts]


@dataclass(frozen=True, slots=True)
class Profile:
    """The numbers of the algorithm. `window` is in word pieces (special ones not counted), the others in words.

    `heading_weight` is the heading path's share in a chunk's vector; see `embedding.passages`.
    """

    name: str = "minilm"
    window: int = 254
    target_words: int = 150
    stub_words: int = 50
    overlap_words: int = 35
    heading_weight: float = 0.2

    @property
    def prefix_window(self) -> int:
        """The most word pieces that the heading path may take: a quarter of the window."""
        return self.window // 4

    @property
    def fingerprint(self) -> str:
        """Tells profiles and versions of the algorithm apart."""
        return "/".join(map(str, (ALGORITHM, *astuple(self))))


@dataclass(frozen=True, slots=True)
class _Piece:
    """The smallest part that chunks are put together from: a sentence, a line, or a part of one."""

    text: str
    glue: str
    first_line: int
    last_line: int
    section: Section
    is_heading: bool = False
    is_overlap: bool = False
    words: int = 0
    tokens: int = 0


_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?![a-z\s])|(?<=[。！？])(?![。！？])")
_WORD_CHARACTER = re.compile(r"\w")
_SPACE = re.compile(r"\s")
_LONGEST_HEADING = 300
_MAX_WORD = 50
"""Characters that count as one word of a chunk: a long run without spaces may be a single word piece, yet has to be divided."""


def shortened(heading: str) -> str:
    """Give a heading as it is named in every chunk of its section: cut if it is a text of its own."""
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[:_LONGEST_HEADING]}…"


def count_words(text: str) -> int:
    """Give the number of words: runs of non-space characters with at least one letter or digit among them."""
    return sum(1 for word in text.split() if _WORD_CHARACTER.search(word))


def chunk_document(document: Document, title: str, counter: TokenCounter, profile: Profile) -> tuple[Chunk, ...]:
    """Divide a page into chunks, in order; the same input gives the same chunks.

    Every word of the page stands in at least one of them, none is empty, and the text of none has more than `profile.window`
    word pieces.
    """
    chunker = _Chunker(title, counter, profile)
    return tuple(chunk for group in _merge_stubs(document.sections, profile.stub_words) for chunk in chunker.chunks(group))


def section_words(section: Section) -> int:
    """Give the number of words below a section's heading."""
    return sum(count_words(line.text) for block in section.blocks for line in block.lines)


def _merge_stubs(sections: Iterable[Section], stub_words: int) -> list[list[Section]]:
    """Group sections so that each group has at least `stub_words` words in its text, as far as that is possible."""
    groups: list[list[Section]] = []
    words: list[int] = []
    for section in sections:
        if groups and words[-1] < stub_words and section.level >= groups[-1][0].level:
            groups[-1].append(section)
            words[-1] += section_words(section)
        else:
            _merge_trailing_stub(groups, words, stub_words)
            groups.append([section])
            words.append(section_words(section))
    _merge_trailing_stub(groups, words, stub_words)
    return groups


def _merge_trailing_stub(groups: list[list[Section]], words: list[int], stub_words: int) -> None:
    if len(groups) > 1 and words[-1] < stub_words:
        groups[-2:] = [groups[-2] + groups[-1]]
        words[-2:] = [words[-2] + words[-1]]


class _Chunker:
    """Turns groups of sections of one page into chunks."""

    def __init__(self, title: str, counter: TokenCounter, profile: Profile) -> None:
        self._title = " ".join(title.split())
        self._counter = counter
        self._profile = profile

    def chunks(self, group: list[Section]) -> list[Chunk]:
        trails = {section: self._trail(section) for section in group}
        room = self._profile.window - max(self._tokens(_prefix(trail)) for trail in trails.values())
        packs = self._pack(list(self._divide(group, room)), room)
        return [chunk for pack in packs for chunk in self._finish(pack, trails)]

    # The heading path

    def _trail(self, section: Section) -> tuple[str, ...]:
        """Give the parts of the chunk's prefix, shortened from the outside in until they fit their share of the window."""
        headings = [heading for heading in section.path if heading]
        if headings and headings[0].casefold() == self._title.casefold():
            del headings[0]
        trail = [part for part in (self._title, *headings) if part]
        while len(trail) > 2 and not self._prefix_fits(trail):
            del trail[1]
        while trail and not self._prefix_fits(trail):
            longest = max(range(len(trail)), key=lambda index: len(trail[index]))
            trail[longest] = _shorter(trail[longest])
            trail = [part for part in trail if part]
        return tuple(trail)

    def _prefix_fits(self, trail: Sequence[str]) -> bool:
        return self._tokens(_prefix(trail)) <= self._profile.prefix_window

    def _tokens(self, text: str) -> int:
        return self._counter.count_tokens([text])[0]

    # Pieces

    def _divide(self, group: list[Section], room: int) -> Iterator[list[_Piece]]:
        """Give the group's text, a list of pieces for each block (a section's first one after its heading).

        No piece has more than `room` word pieces or the target's words.
        """
        for section in group:
            start = section.start_line
            waiting = [_Piece(section.heading, "\n\n", start, start, section, is_heading=True)] if section.heading else []
            for block in section.blocks:
                yield self._fit([*waiting, *_block_pieces(block, section)], room)
                waiting = []
            if waiting:
                yield self._fit(waiting, room)

    def _fit(self, pieces: list[_Piece], room: int) -> list[_Piece]:
        """Measure pieces, dividing those that no chunk could hold."""
        measured = self._measure(pieces)
        while any(self._is_oversized(piece, room) for piece in measured):
            measured = self._measure(
                [
                    part
                    for piece in measured
                    for part in (_halve(piece) if self._is_oversized(piece, room) else (piece,))
                    if part.text.strip()
                ]
            )
        return measured

    def _is_oversized(self, piece: _Piece, room: int) -> bool:
        return len(piece.text) > 1 and (piece.tokens > room or piece.words > self._profile.target_words)

    def _measure(self, pieces: list[_Piece]) -> list[_Piece]:
        counts = self._counter.count_tokens([piece.text for piece in pieces])
        return [
            replace(piece, words=max(count_words(piece.text), len(piece.text) // _MAX_WORD), tokens=tokens)
            for piece, tokens in zip(pieces, counts, strict=True)
        ]

    # Packing

    def _pack(self, blocks: list[list[_Piece]], room: int) -> list[list[_Piece]]:
        """Put blocks together to packs of about the target size, each after the first beginning with its overlap."""
        packs: list[_Pack] = [_Pack(room, self._profile.target_words)]
        for block in blocks:
            current = packs[-1]
            if not current.fits(block) and current.new_words >= self._profile.stub_words and current.would_fit_alone(block):
                current = self._next(packs, block[0])
            for piece in block:
                if not current.fits([piece]):
                    current = self._next(packs, piece)
                current.add(piece)
        return [pack.pieces for pack in _join_short_tail(packs, self._profile.stub_words)]

    def _next(self, packs: list[_Pack], following: _Piece) -> _Pack:
        pack = _Pack(packs[-1].room, packs[-1].target_words)
        overlap = self._overlap(packs[-1].pieces, following)
        if not following.is_heading and sum(piece.tokens for piece in overlap) + following.tokens <= pack.room:
            for piece in overlap:
                pack.add(piece)
        packs.append(pack)
        return pack

    def _overlap(self, pieces: list[_Piece], following: _Piece) -> list[_Piece]:
        """Give the last pieces of a pack, up to the overlap's words, as far as they are of the section that goes on."""
        taken: list[_Piece] = []
        words = 0
        for piece in reversed(pieces):
            if piece.section is not following.section or piece.is_heading:
                break
            if words + piece.words > self._profile.overlap_words:
                if not taken:
                    tail = " ".join(piece.text.split()[-self._profile.overlap_words :])
                    taken += self._measure([replace(piece, text=tail, first_line=piece.last_line)])
                break
            taken.append(piece)
            words += piece.words
        return [replace(piece, is_overlap=True) for piece in reversed(taken)]

    # Chunks

    def _finish(self, pieces: list[_Piece], trails: dict[Section, tuple[str, ...]]) -> Iterator[Chunk]:
        """Give the chunk of a pack; two, should the counter find the whole larger than its parts."""
        section = next((piece.section for piece in pieces if not piece.is_heading), pieces[-1].section)
        trail = trails[section]
        prefix = _prefix(trail)
        shown = _without_shown_headings(pieces, section, trail)
        text = prefix + _join(shown)
        if len(pieces) > 1 and self._tokens(text) > self._profile.window:
            middle = len(pieces) // 2
            yield from self._finish(pieces[:middle], trails)
            yield from self._finish(pieces[middle:], trails)
            return
        sections = dict.fromkeys(piece.section for piece in pieces)
        yield Chunk(
            text=text,
            prefix_length=len(prefix),
            overlap_length=len(_join([piece for piece in shown if piece.is_overlap])),
            section=shortened(section.heading),
            section_path=tuple(map(shortened, section.path)),
            headings=tuple(dict.fromkeys(shortened(found.heading) for found in sections if found.heading)),
            anchor=section.anchor,
            start_line=min(piece.first_line for piece in pieces),
            end_line=max(piece.last_line for piece in pieces),
        )


class _Pack:
    """The pieces of a chunk in the making, and how much of its room they take."""

    def __init__(self, room: int, target_words: int) -> None:
        self.room = room
        self.target_words = target_words
        self.pieces: list[_Piece] = []
        self.new: list[_Piece] = []
        """The pieces that are no overlap."""
        self.new_words = 0
        self.words = 0
        self.tokens = 0

    def fits(self, pieces: Sequence[_Piece]) -> bool:
        words = self.words + sum(piece.words for piece in pieces)
        tokens = self.tokens + sum(piece.tokens for piece in pieces)
        return not self.new or (words <= self.target_words and tokens <= self.room)

    def would_fit_alone(self, pieces: Sequence[_Piece]) -> bool:
        words, tokens = sum(piece.words for piece in pieces), sum(piece.tokens for piece in pieces)
        return words <= self.target_words and tokens <= self.room

    def add(self, piece: _Piece) -> None:
        self.pieces.append(piece)
        self.words += piece.words
        self.tokens += piece.tokens
        if not piece.is_overlap:
            self.new.append(piece)
            self.new_words += piece.words


def _join_short_tail(packs: list[_Pack], stub_words: int) -> list[_Pack]:
    """Give the packs with text in them; a last one that says little new goes into the one before it, where there is room."""
    packs = [pack for pack in packs if pack.new]
    if len(packs) > 1 and packs[-1].new_words < stub_words:
        last, before = packs[-1], packs[-2]
        if before.tokens + sum(piece.tokens for piece in last.new) <= before.room:
            for piece in last.new:
                before.add(piece)
            packs.pop()
    return packs


def _prefix(trail: Sequence[str]) -> str:
    return f"[{' > '.join(trail)}] " if trail else ""


def _shorter(text: str) -> str:
    """Give the first half of a text's words; of a single word, of its characters."""
    words = text.split()
    return " ".join(words[: len(words) // 2]) if len(words) > 1 else text[: len(text) // 2]


def _without_shown_headings(pieces: list[_Piece], section: Section, trail: tuple[str, ...]) -> list[_Piece]:
    """Drop the headings a chunk begins with if its prefix shows them whole, each once, unless it holds nothing else."""
    depth = 0
    for position, piece in enumerate(pieces):
        path = piece.section.path
        is_above = path == section.path[: len(path)] and len(path) > depth
        if not (piece.is_heading and is_above and piece.text == piece.section.heading and piece.text in trail):
            return pieces[position:]
        depth = len(path)
    return pieces


def _join(pieces: Sequence[_Piece]) -> str:
    return "".join((piece.glue if position else "") + piece.text for position, piece in enumerate(pieces)).strip()


def _block_pieces(block: Block, section: Section) -> Iterator[_Piece]:
    if block.kind is BlockKind.ROWS:
        for position, line in enumerate(block.lines):
            yield _Piece(line.text, "\n" if position else "\n\n", line.number, line.number, section)
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
            glue = "\n\n" if position == 0 else (" " if text[position - 1].isspace() else "")
            yield _Piece(sentence, glue, first, last, section)
        position = end


def _halve(piece: _Piece) -> tuple[_Piece, _Piece]:
    """Divide a piece near its middle: between words, or within a word that is all there is."""
    text, middle = piece.text, len(piece.text) // 2
    space = next((place for place in range(middle, 0, -1) if text[place].isspace()), 0)
    if not space and (found := _SPACE.search(text, middle)):
        space = found.start()
    if space:
        return replace(piece, text=text[:space]), replace(piece, text=text[space + 1 :], glue=" ")
    return replace(piece, text=text[:middle]), replace(piece, text=text[middle:], glue="")
