"""Divide a page into chunks: the passages that are embedded, searched and shown.

Sections are grouped by their headings (`grouping`), their blocks split into sentences, items and lines (`splitter`), and these
packed into chunks of the target size (`packer`). Chunks of the same section overlap. A chunk's text begins with the heading
path of its main section, and never exceeds the model's window. A profile provides the sizes and levels of boundaries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from otterwiki_semantic.content.chunking.grouping import Group, split_sections
from otterwiki_semantic.content.chunking.packer import Packer
from otterwiki_semantic.content.chunking.sizes import TokenCounter
from otterwiki_semantic.content.chunking.splitter import PARAGRAPH, Segment, fit, join, measure, split_block, split_in_half
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.core.records import BlockKind, Chunk, ChunkSection, Document, Section, Unit, UnitKind

_LONGEST_HEADING = 300
_ANNOUNCED = {BlockKind.LIST, BlockKind.TABLE, BlockKind.CODE}


def shorten_heading(heading: str) -> str:
    """Return a heading as shown in every chunk of its section: shortened if it is a text of its own."""
    return heading if len(heading) <= _LONGEST_HEADING else f"{heading[:_LONGEST_HEADING]}…"


def chunk_document(document: Document, title: str, counter: TokenCounter, profile: Profile) -> tuple[Chunk, ...]:
    """Divide a page into chunks, in order. Every word is in a chunk, and no chunk has more than `profile.window` tokens."""
    return tuple(_Chunker(document.sections, title, counter, profile).chunks())


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The beginning of each chunk's text in a section: ``[Title > Heading] ``."""

    path: tuple[str, ...]
    text: str
    tokens: int


class _Chunker:
    def __init__(self, sections: Sequence[Section], title: str, counter: TokenCounter, profile: Profile) -> None:
        self._sections = sections
        self._title = " ".join(title.split())
        self._counter = counter
        self._profile = profile
        self._prefixes = {section: self._fitting_prefix(section) for section in sections}

    def chunks(self) -> Iterator[Chunk]:
        sections, profile = self._sections, self._profile
        if profile.whole_page:
            page = Group.of(sections, profile.unit)
            if self._fits(page, profile.whole_page):
                yield from self._chunks_of(page, profile.whole_page)
                return
        whole = profile.max_size or profile.target
        for group in split_sections(sections, profile.boundaries, profile, lambda group: self._fits(group, whole)):
            yield from self._chunks_of(group, whole)

    def _fits(self, group: Group, max_size: int) -> bool:
        if group.size > max_size:
            return False
        max_tokens = self._max_tokens(group)
        return fit(list(chain.from_iterable(self._blocks(group, max_tokens))), max_size, max_tokens)

    def _chunks_of(self, group: Group, whole: int) -> Iterator[Chunk]:
        """Yield the chunks of these sections: a single one if they fit in the size `whole`."""
        max_tokens = self._max_tokens(group)
        blocks = list(self._blocks(group, max_tokens))
        is_whole = fit(list(chain.from_iterable(blocks)), whole, max_tokens)
        packer = Packer(self._profile, whole if is_whole else self._profile.target, max_tokens)
        for segments in packer.pack(blocks):
            yield from self._finish(segments)

    def _max_tokens(self, group: Group) -> int:
        return self._profile.window - max((self._prefixes[section].tokens for section in group.sections), default=0)

    def _fitting_prefix(self, section: Section) -> _Prefix:
        """Return the section's prefix, shortened to fit its share of the window."""
        headings = [heading for heading in section.path if heading]
        if headings and headings[0].casefold() == self._title.casefold():
            del headings[0]
        path = [part for part in (self._title, *headings) if part]
        prefix = self._prefix(path)
        while path and prefix.tokens > self._profile.window // 4:
            path = _shorter_path(path)
            prefix = self._prefix(path)
        return prefix

    def _prefix(self, path: Sequence[str]) -> _Prefix:
        text = f"[{' > '.join(path)}] " if path else ""
        return _Prefix(tuple(path), text, self._tokens(text))

    def _tokens(self, text: str) -> int:
        return self._counter.count_tokens([text])[0]

    def _blocks(self, group: Group, max_tokens: int) -> Iterator[list[Segment]]:
        """Yield the segments of each block with its heading; a sentence that ends with a colon belongs to what it announces."""
        for section in group.sections:
            line = section.start_line
            heading = Segment(section.heading, PARAGRAPH, line, line, section, UnitKind.HEADING)
            block = self._measured([heading], max_tokens) if section.heading else []
            if len(group.sections) == len(block) == 1 and section.blocks and section.heading in self._prefixes[section].path:
                block = [replace(segment, size=0, tokens=0) for segment in block]  # the prefix shows it
            for following in section.blocks:
                segments = self._measured(split_block(following, section), max_tokens)
                if (
                    following.kind in _ANNOUNCED
                    and block
                    and block[-1].kind is UnitKind.SENTENCE
                    and block[-1].text.endswith(":")
                ):
                    segments.insert(0, block.pop())
                if block and not block[-1].is_heading:
                    yield block
                    block = []
                block += segments
            if block:
                yield block

    def _measured(self, segments: Sequence[Segment], max_tokens: int) -> list[Segment]:
        found = measure(segments, self._counter, self._profile.unit)
        while any(self._is_oversized(segment, max_tokens) for segment in found):
            parts = (
                part
                for segment in found
                for part in (split_in_half(segment) if self._is_oversized(segment, max_tokens) else (segment,))
            )
            found = measure([part for part in parts if part.text.strip()], self._counter, self._profile.unit)
        return found

    def _is_oversized(self, segment: Segment, max_tokens: int) -> bool:
        return len(segment.text) > 1 and (segment.tokens > max_tokens or segment.size > self._profile.target)

    def _finish(self, segments: Sequence[Segment]) -> Iterator[Chunk]:
        """Yield the chunk of these segments; two chunks if the joined text has more tokens than its parts, and too many."""
        section = _main_section(segments)
        prefix = self._prefixes[section]
        shown = _without_shown_headings(segments, section, prefix.path)
        body, ranges = join(shown)
        text = prefix.text + body
        if len(segments) > 1 and self._tokens(text) > self._profile.window:
            middle = len(segments) // 2
            for half in (segments[:middle], segments[middle:]):
                if not all(segment.is_overlap for segment in half):
                    yield from self._finish(half)
            return
        sections = {each: number for number, each in enumerate(dict.fromkeys(segment.section for segment in segments))}
        yield Chunk(
            text=text,
            prefix_length=len(prefix.text),
            overlap_length=max((end for segment, (_, end) in zip(shown, ranges, strict=True) if segment.is_overlap), default=0),
            section=shorten_heading(section.heading),
            section_path=tuple(map(shorten_heading, section.path)),
            headings=tuple(dict.fromkeys(shorten_heading(each.heading) for each in sections if each.heading)),
            anchor=section.anchor,
            start_line=min(segment.first_line for segment in segments),
            end_line=max(segment.last_line for segment in segments),
            sections=tuple(ChunkSection(tuple(map(shorten_heading, each.path)), each.anchor) for each in sections),
            units=tuple(
                Unit(
                    *(len(prefix.text) + start, len(prefix.text) + end, sections[segment.section]),
                    *(segment.first_line, segment.last_line, segment.kind),
                )
                for segment, (start, end) in zip(shown, ranges, strict=True)
                if not segment.is_overlap
            ),
        )


def _main_section(segments: Sequence[Segment]) -> Section:
    """Return the section with most of a chunk's new text; the last section if there are only headings."""
    sizes = Counter[Section]()
    for segment in segments:
        if not segment.is_heading and not segment.is_overlap:
            sizes[segment.section] += len(segment.text)
    return max(sizes, key=sizes.__getitem__, default=segments[-1].section)


def _shorter_path(path: Sequence[str]) -> list[str]:
    """Return a heading path without its second part; with at most two parts, cut the longest in half."""
    if len(path) > 2:
        return [path[0], *path[2:]]
    longest = max(path, key=len)
    words = longest.split()
    half = " ".join(words[: len(words) // 2]) if len(words) > 1 else longest[: len(longest) // 2]
    place = path.index(longest)
    return [part for part in (*path[:place], half, *path[place + 1 :]) if part]


def _without_shown_headings(segments: Sequence[Segment], section: Section, path: Sequence[str]) -> Sequence[Segment]:
    """Drop leading headings that the prefix shows in full, each once, unless the chunk has nothing else."""
    depth = 0
    for position, segment in enumerate(segments):
        above = segment.section.path
        is_above = above == section.path[: len(above)] and len(above) > depth
        if not (segment.is_heading and is_above and segment.text == segment.section.heading and segment.text in path):
            return segments[position:]
        depth = len(above)
    return segments
