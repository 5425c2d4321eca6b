"""Pack segments into chunks of about the target size, each repeating the end of the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import dropwhile

from otterwiki_semantic.content.chunking.sizes import TokenCounter
from otterwiki_semantic.content.chunking.splitter import PARAGRAPH, Segment, fit, measure, tail, total_tokens
from otterwiki_semantic.core.chunk_profiles import Profile


class _ChunkBuilder:
    """The segments of a chunk, and what of its limits they take."""

    def __init__(self, max_size: int, max_tokens: int) -> None:
        self.max_size = max_size
        self.max_tokens = max_tokens
        self.segments: list[Segment] = []
        self.new: list[Segment] = []
        """Those that are no overlap."""
        self.new_size = 0
        self.size = 0
        self.tokens = 0

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.size += segment.size
        self.tokens += segment.tokens
        if not segment.is_overlap:
            self.new.append(segment)
            self.new_size += segment.size

    def has_room(self, size: int, tokens: int) -> bool:
        """Whether segments of this size also fit; the first new ones always do."""
        return not self.new or (self.size + size <= self.max_size and self.tokens + tokens <= self.max_tokens)


class Packer:
    """Packs measured segments into chunks, for one profile."""

    def __init__(self, counter: TokenCounter, profile: Profile) -> None:
        self._counter = counter
        self._profile = profile

    def pack(self, blocks: Sequence[Sequence[Segment]], max_size: int, max_tokens: int) -> list[list[Segment]]:
        """Return the segments of each chunk.

        A block that would fit into a chunk is divided only if the current chunk would otherwise stay below the minimum size.
        """
        chunks = [_ChunkBuilder(max_size, max_tokens)]
        for block in blocks:
            chunk = chunks[-1]
            is_full = chunk.new_size >= self._profile.min_size and not chunk.has_room(
                sum(segment.size for segment in block), total_tokens(block)
            )
            if is_full and fit(block, max_size, max_tokens):
                chunk = self._begin_chunk(chunks, block[0])
            for segment in block:
                if not chunk.has_room(segment.size, segment.tokens):
                    chunk = self._begin_chunk(chunks, segment)
                chunk.add(segment)
        return [chunk.segments for chunk in _merge_short_end(chunks, self._profile)]

    def _begin_chunk(self, chunks: list[_ChunkBuilder], following: Segment) -> _ChunkBuilder:
        """Append a chunk that begins with the end of the last one, if `following` still fits behind it."""
        last = chunks[-1]
        chunk = _ChunkBuilder(last.max_size, last.max_tokens)
        overlap = self._overlap(last.segments, following)
        if total_tokens(overlap) + following.tokens <= chunk.max_tokens:
            for segment in overlap:
                chunk.add(segment)
        chunks.append(chunk)
        return chunk

    def _overlap(self, segments: Sequence[Segment], following: Segment) -> list[Segment]:
        """Return the last segments of a chunk that belong to one text with `following`, as many as the profile allows."""
        profile = self._profile
        most = min(profile.overlap, profile.max_size - following.size) if profile.max_size else profile.overlap
        if most <= 0:
            return []
        taken: list[Segment] = []
        size = 0
        for segment in reversed(segments):
            if not self._is_one_text(segment, following):
                break
            if size + segment.size > most:
                if not taken:
                    taken = measure([tail(segment, most, profile.unit)], self._counter, profile.unit)
                break
            taken.append(segment)
            size += segment.size
        taken.reverse()
        if profile.repeats_paragraphs and following.separator == PARAGRAPH:
            taken = list(dropwhile(lambda segment: segment.separator != PARAGRAPH, taken))
        return [replace(segment, is_overlap=True) for segment in taken]

    def _is_one_text(self, before: Segment, following: Segment) -> bool:
        """Whether two segments belong to one section, or to a page that is divided by size alone."""
        if not self._profile.boundaries:
            return True
        return before.section is following.section and not before.is_heading and not following.is_heading


def _merge_short_end(chunks: list[_ChunkBuilder], profile: Profile) -> list[_ChunkBuilder]:
    """Return the chunks with new text; a last one with little of it is merged with the one before it, if that has room."""
    chunks = [chunk for chunk in chunks if chunk.new]
    if len(chunks) > 1 and chunks[-1].new_size < profile.min_size:
        last, before = chunks[-1], chunks[-2]
        is_too_large = profile.max_size and before.size + last.new_size > profile.max_size
        if not is_too_large and before.tokens + total_tokens(last.new) <= before.max_tokens:
            for segment in last.new:
                before.add(segment)
            chunks.pop()
    return chunks
