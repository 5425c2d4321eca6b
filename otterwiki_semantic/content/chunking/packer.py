"""Pack blocks into chunks of about the target size. A block that fits in a chunk is never divided."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, takewhile

from otterwiki_semantic.content.chunking.splitter import PARAGRAPH, Segment, fit, total_size, total_tokens
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.core.records import UnitKind

_MAX_REPEATED = 1 / 3
"""Share of a chunk that a repeated header or announcement may take."""
_REPEATED = {UnitKind.ROW: UnitKind.HEADER, UnitKind.ITEM: UnitKind.SENTENCE}
"""What later parts of a block repeat from its beginning: the header of a table, the announcement of a list."""


class _ChunkBuilder:
    def __init__(self, overlap: Sequence[Segment] = ()) -> None:
        self.segments = [*overlap]
        self.new: list[Segment] = []
        self.new_size = 0
        self.size = total_size(overlap)
        self.tokens = total_tokens(overlap)

    def add(self, segments: Sequence[Segment]) -> None:
        self.segments += segments
        self.new += segments
        self.size += total_size(segments)
        self.new_size += total_size(segments)
        self.tokens += total_tokens(segments)


class Packer:
    """Packs measured segments into chunks, for one profile and the sections of one group."""

    def __init__(self, profile: Profile, max_size: int, max_tokens: int) -> None:
        self._profile = profile
        self._max_size = max_size
        self._max_tokens = max_tokens
        self._limit = max(profile.max_size, max_size) if profile.max_size else math.inf
        """The size up to which a chunk may grow if it would otherwise be too small."""

    def pack(self, blocks: Sequence[Sequence[Segment]]) -> list[list[Segment]]:
        """Return the segments of each chunk. A chunk below the minimum size may exceed the target."""
        chunks = [_ChunkBuilder()]
        for block in blocks:
            repeated: list[Segment] = []
            for part in self._parts(block):
                if not self._has_room(chunks[-1], part):
                    chunks.append(_ChunkBuilder(self._overlap(chunks[-1].segments, part, repeated)))
                chunks[-1].add(part)
                repeated = repeated or [each for each in part if each.kind is _REPEATED.get(block[-1].kind)]
        self._merge_short_end(chunks)
        return [chunk.segments for chunk in chunks if chunk.new]

    def _parts(self, block: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
        """Yield a block's indivisible parts: all of it if it fits, else its first segments together and the rest singly."""
        is_prose = block[-1].kind in {UnitKind.SENTENCE, UnitKind.HEADING}
        above = {UnitKind.HEADING} if is_prose else {UnitKind.HEADING, UnitKind.SENTENCE}
        lead = list(takewhile(lambda segment: segment.kind in above, block))
        text = block[len(lead) :]
        if fit(text, self._max_size, self._max_tokens):
            parts = [block] if self._holds(block) else [lead, text]
        else:
            first = len(lead) + (2 if text[0].kind is UnitKind.HEADER else 1)
            parts = [block[:first], *([segment] for segment in block[first:])]
        for part in filter(None, parts):
            yield from [part] if self._holds(part) else [[segment] for segment in part]

    def _holds(self, segments: Sequence[Segment]) -> bool:
        return fit(segments, self._limit, self._max_tokens)

    def _has_room(self, chunk: _ChunkBuilder, part: Sequence[Segment]) -> bool:
        """Whether a part still fits in a chunk; the first new text always fits."""
        max_size = self._max_size if chunk.new_size >= self._profile.min_size else self._limit
        return not chunk.new or (
            chunk.size + total_size(part) <= max_size and chunk.tokens + total_tokens(part) <= self._max_tokens
        )

    def _overlap(self, before: Sequence[Segment], part: Sequence[Segment], repeated: Sequence[Segment]) -> list[Segment]:
        """Return the overlap of a chunk that begins with `part`: the block's beginning, else the end of the previous chunk."""
        room = self._max_tokens - total_tokens(part)
        if repeated and fit(repeated, min(_MAX_REPEATED * self._max_size, self._limit - total_size(part)), room):
            first, last = part[0].first_line, part[-1].last_line
            return [replace(segment, is_overlap=True, first_line=first, last_line=last) for segment in repeated]
        taken = self._end(before, part[0], min(self._profile.overlap, self._max_size - total_size(part)))
        return [replace(segment, is_overlap=True) for segment in taken] if total_tokens(taken) <= room else []

    def _end(self, before: Sequence[Segment], following: Segment, max_size: int) -> list[Segment]:
        """Return the last whole segments of a chunk that belong to the same text as `following`."""
        taken: list[Segment] = []
        size = 0
        for segment in reversed(before):
            size += segment.size
            if size > max_size or segment.is_part or not self._is_one_text(segment, following):
                break
            taken.append(segment)
        taken.reverse()
        if self._profile.repeats_paragraphs and following.separator == PARAGRAPH:
            taken = list(dropwhile(lambda segment: segment.separator != PARAGRAPH, taken))
        return taken

    def _is_one_text(self, before: Segment, following: Segment) -> bool:
        if not self._profile.boundaries:
            return True
        return before.section is following.section and not before.is_heading and not following.is_heading

    def _merge_short_end(self, chunks: list[_ChunkBuilder]) -> None:
        """Merge a last chunk with little new text into the previous one, if both are of one section and there is room."""
        if len(chunks) < 2 or chunks[-1].new_size >= self._profile.min_size:
            return
        last, before = chunks[-1], chunks[-2]
        is_one_text = self._is_one_text(before.new[-1], last.new[-1]) and self._is_one_text(before.new[-1], last.new[0])
        has_room = before.size + last.new_size <= self._limit and before.tokens + total_tokens(last.new) <= self._max_tokens
        if is_one_text and has_room:
            before.add(last.new)
            chunks.pop()
