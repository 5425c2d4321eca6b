"""Puts pieces together to chunks of about the profile's target, which repeat the end of the one before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile

from otterwiki_semantic.content.chunking.profiles import Profile
from otterwiki_semantic.content.chunking.splitter import (
    PARAGRAPH,
    Segment,
    TokenCounter,
    measured,
    tail,
    total_size,
    total_tokens,
)


class Pack:
    """The pieces of a chunk in the making, and how much of its room they take."""

    def __init__(self, room: int, target: int) -> None:
        self.room = room
        self.target = target
        self.pieces: list[Segment] = []
        self.new: list[Segment] = []
        """The pieces that are no overlap."""
        self.new_size = 0
        self.size = 0
        self.tokens = 0

    def fits(self, pieces: Sequence[Segment]) -> bool:
        """Whether there is room for these pieces, too; always for the first new ones."""
        return not self.new or (
            self.size + total_size(pieces) <= self.target and self.tokens + total_tokens(pieces) <= self.room
        )

    def would_fit_alone(self, pieces: Sequence[Segment]) -> bool:
        """Whether these pieces would fit if there were no others."""
        return total_size(pieces) <= self.target and total_tokens(pieces) <= self.room

    def add(self, piece: Segment) -> None:
        """Put a piece behind the others."""
        self.pieces.append(piece)
        self.size += piece.size
        self.tokens += piece.tokens
        if not piece.is_overlap:
            self.new.append(piece)
            self.new_size += piece.size


class Packer:
    """Makes packs of measured pieces, for one profile."""

    def __init__(self, counter: TokenCounter, profile: Profile) -> None:
        self._counter = counter
        self._profile = profile

    def pack(self, blocks: Sequence[Sequence[Segment]], room: int, target: int) -> list[list[Segment]]:
        """Give the pieces of each chunk; `room` is in word pieces. A block that fits into a chunk is not divided lightly."""
        packs = [Pack(room, target)]
        for block in blocks:
            current = packs[-1]
            if not current.fits(block) and current.new_size >= self._profile.least and current.would_fit_alone(block):
                current = self._next(packs, block[0])
            for piece in block:
                if not current.fits([piece]):
                    current = self._next(packs, piece)
                current.add(piece)
        return [pack.pieces for pack in _join_short_tail(packs, self._profile.least)]

    def _next(self, packs: list[Pack], following: Segment) -> Pack:
        pack = Pack(packs[-1].room, packs[-1].target)
        overlap = self._overlap(packs[-1].pieces, following)
        if total_tokens(overlap) + following.tokens <= pack.room:
            for piece in overlap:
                pack.add(piece)
        packs.append(pack)
        return pack

    def _overlap(self, pieces: Sequence[Segment], following: Segment) -> list[Segment]:
        """Give the last pieces of a pack, up to the profile's overlap, as far as what follows goes on with them."""
        taken: list[Segment] = []
        size = 0
        for piece in reversed(pieces):
            if not self._goes_on(piece, following):
                break
            if size + piece.size > self._profile.overlap:
                if not taken:
                    taken += measured(
                        [tail(piece, self._profile.overlap, self._profile.unit)], self._counter, self._profile.unit
                    )
                break
            taken.append(piece)
            size += piece.size
        taken.reverse()
        if self._profile.repeats_paragraphs and following.glue == PARAGRAPH:
            taken = list(dropwhile(lambda piece: piece.glue != PARAGRAPH, taken))
        return [replace(piece, is_overlap=True) for piece in taken]

    def _goes_on(self, before: Segment, following: Segment) -> bool:
        """Whether two pieces belong to one text: to one section, or to a page that is divided by size alone."""
        if not self._profile.boundaries:
            return True
        return before.section is following.section and not before.is_heading and not following.is_heading


def _join_short_tail(packs: list[Pack], least: int) -> list[Pack]:
    """Give the packs with text in them; a last one that says little new goes into the one before it, where there is room."""
    packs = [pack for pack in packs if pack.new]
    if len(packs) > 1 and packs[-1].new_size < least:
        last, before = packs[-1], packs[-2]
        if before.tokens + total_tokens(last.new) <= before.room:
            for piece in last.new:
                before.add(piece)
            packs.pop()
    return packs
