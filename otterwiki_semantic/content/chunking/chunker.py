"""From a page's sections to the passages that are embedded, found and shown.

A section's boundary is a chunk's boundary, except that a section too short to stand alone is merged with the next one of the
same or a deeper level (the last one with the one before it). Inside a section paragraphs accumulate to a target; what is too
large is divided between sentences or lines, then between words, at last between characters. Chunks of one section overlap;
chunks of different sections do not. A chunk's text begins with its heading path and never exceeds the model's window. The
target, the sections that are boundaries, and the other numbers are those of a profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from otterwiki_semantic.content.chunking.packer import Packer
from otterwiki_semantic.content.chunking.profiles import Profile
from otterwiki_semantic.content.chunking.splitter import (
    ByteCounter,
    Segment,
    TokenCounter,
    block_pieces,
    count_words,
    heading_piece,
    joined,
    measured,
    section_size,
    section_words,
    split_in_half,
    total_size,
    total_tokens,
)
from otterwiki_semantic.core.records import Chunk, Document, Section

__all__ = ["ByteCounter", "Profile", "TokenCounter", "chunk_document", "count_words", "section_words", "shorten_heading"]

_LONGEST_HEADING = 300


def shorten_heading(heading: str) -> str:
    """Give a heading as it is named in every chunk of its section: cut if it is a text of its own."""
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[:_LONGEST_HEADING]}…"


def chunk_document(document: Document, title: str, counter: TokenCounter, profile: Profile) -> tuple[Chunk, ...]:
    """Divide a page into chunks, in order; the same input gives the same chunks.

    Every word of the page stands in at least one of them, none is empty, and the text of none has more than `profile.window`
    word pieces.
    """
    return tuple(_Chunker(title, counter, profile).chunks(document.sections))


class _Chunker:
    """Turns the sections of one page into chunks."""

    def __init__(self, title: str, counter: TokenCounter, profile: Profile) -> None:
        self._title = " ".join(title.split())
        self._counter = counter
        self._profile = profile
        self._packer = Packer(counter, profile)

    def chunks(self, sections: Sequence[Section]) -> Iterator[Chunk]:
        whole_page = self._profile.whole_page
        if whole_page and self._fits(sections, whole_page):
            yield from self._chunks_of(sections, whole_page)
            return
        for group in self._groups(sections):
            yield from self._chunks_of(group, self._profile.target)

    def _chunks_of(self, group: Sequence[Section], target: int) -> Iterator[Chunk]:
        trails = {section: self._trail(section) for section in group}
        room = self._room(trails.values())
        for pack in self._packer.pack(list(self._divide(group, room)), room, target):
            yield from self._finish(pack, trails)

    # Groups of sections

    def _groups(self, sections: Sequence[Section]) -> list[list[Section]]:
        """Give the sections that no boundary divides: a group that is too large for a chunk goes on to the next level."""
        groups = [list(sections)] if sections else []
        for position, level in enumerate(self._profile.boundaries):
            groups = [
                part
                for group in groups
                for part in ([group] if position and self._fits(group, self._profile.target) else self._parts(group, level))
            ]
        return groups

    def _parts(self, group: Sequence[Section], level: int) -> list[list[Section]]:
        """Divide a group before each heading up to a level, and merge the parts that are too short to stand alone."""
        parts: list[list[Section]] = []
        for section in group:
            if not parts or section.level <= level:
                parts.append([])
            parts[-1].append(section)
        return self._merge_stubs(parts)

    def _merge_stubs(self, parts: Sequence[list[Section]]) -> list[list[Section]]:
        """Merge parts so that each has at least the profile's `least` in its text, as far as that is possible."""
        groups: list[list[Section]] = []
        sizes: list[int] = []
        for part in parts:
            size = self._size(part)
            if groups and sizes[-1] < self._profile.least and part[0].level >= groups[-1][0].level:
                groups[-1] += part
                sizes[-1] += size
            else:
                self._merge_trailing_stub(groups, sizes)
                groups.append(part)
                sizes.append(size)
        self._merge_trailing_stub(groups, sizes)
        return groups

    def _merge_trailing_stub(self, groups: list[list[Section]], sizes: list[int]) -> None:
        if len(groups) > 1 and sizes[-1] < self._profile.least:
            groups[-2:] = [groups[-2] + groups[-1]]
            sizes[-2:] = [sizes[-2] + sizes[-1]]

    def _size(self, sections: Sequence[Section]) -> int:
        return sum(section_size(section, self._profile.unit) for section in sections)

    def _fits(self, sections: Sequence[Section], target: int) -> bool:
        """Whether a single chunk holds these sections."""
        if self._size(sections) > target:
            return False
        room = self._room(self._trail(section) for section in sections)
        pieces = [piece for block in self._divide(sections, room) for piece in block]
        return total_size(pieces) <= target and total_tokens(pieces) <= room

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

    def _room(self, trails: Iterable[Sequence[str]]) -> int:
        """Give the word pieces that the longest of these prefixes leaves for the text."""
        return self._profile.window - max((self._tokens(_prefix(trail)) for trail in trails), default=0)

    def _tokens(self, text: str) -> int:
        return self._counter.count_tokens([text])[0]

    # Pieces

    def _divide(self, group: Sequence[Section], room: int) -> Iterator[list[Segment]]:
        """Give the group's text, a list of pieces for each block (a section's first one after its heading).

        No piece has more than `room` word pieces or the target's size.
        """
        for section in group:
            waiting = [heading_piece(section)] if section.heading else []
            for block in section.blocks:
                yield self._pieces([*waiting, *block_pieces(block, section)], room)
                waiting = []
            if waiting:
                yield self._pieces(waiting, room)

    def _pieces(self, pieces: Sequence[Segment], room: int) -> list[Segment]:
        """Measure pieces, dividing those that no chunk could hold."""
        found = self._measured(pieces)
        while any(self._is_oversized(piece, room) for piece in found):
            found = self._measured(
                [
                    part
                    for piece in found
                    for part in (split_in_half(piece) if self._is_oversized(piece, room) else (piece,))
                    if part.text.strip()
                ]
            )
        return found

    def _is_oversized(self, piece: Segment, room: int) -> bool:
        return len(piece.text) > 1 and (piece.tokens > room or piece.size > self._profile.target)

    def _measured(self, pieces: Sequence[Segment]) -> list[Segment]:
        return measured(pieces, self._counter, self._profile.unit)

    # Chunks

    def _finish(self, pieces: Sequence[Segment], trails: dict[Section, tuple[str, ...]]) -> Iterator[Chunk]:
        """Give the chunk of a pack; two, should the counter find the whole larger than its parts."""
        section = next((piece.section for piece in pieces if not piece.is_heading), pieces[-1].section)
        trail = trails[section]
        prefix = _prefix(trail)
        shown = _without_shown_headings(pieces, section, trail)
        text = prefix + joined(shown)
        if len(pieces) > 1 and self._tokens(text) > self._profile.window:
            middle = len(pieces) // 2
            yield from self._finish(pieces[:middle], trails)
            yield from self._finish(pieces[middle:], trails)
            return
        sections = dict.fromkeys(piece.section for piece in pieces)
        yield Chunk(
            text=text,
            prefix_length=len(prefix),
            overlap_length=len(joined([piece for piece in shown if piece.is_overlap])),
            section=shorten_heading(section.heading),
            section_path=tuple(map(shorten_heading, section.path)),
            headings=tuple(dict.fromkeys(shorten_heading(found.heading) for found in sections if found.heading)),
            anchor=section.anchor,
            start_line=min(piece.first_line for piece in pieces),
            end_line=max(piece.last_line for piece in pieces),
        )


def _prefix(trail: Sequence[str]) -> str:
    return f"[{' > '.join(trail)}] " if trail else ""


def _shorter(text: str) -> str:
    """Give the first half of a text's words; of a single word, of its characters."""
    words = text.split()
    return " ".join(words[: len(words) // 2]) if len(words) > 1 else text[: len(text) // 2]


def _without_shown_headings(pieces: Sequence[Segment], section: Section, trail: Sequence[str]) -> Sequence[Segment]:
    """Drop the headings a chunk begins with if its prefix shows them whole, each once, unless it holds nothing else."""
    depth = 0
    for position, piece in enumerate(pieces):
        path = piece.section.path
        is_above = path == section.path[: len(path)] and len(path) > depth
        if not (piece.is_heading and is_above and piece.text == piece.section.heading and piece.text in trail):
            return pieces[position:]
        depth = len(path)
    return pieces
