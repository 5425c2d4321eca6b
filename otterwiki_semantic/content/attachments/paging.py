"""Page starts in the Markdown of a file, and sections divided there, so that a passage has a page number."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from itertools import groupby

from otterwiki_semantic.content.attachments.markup import PAGE_MARKER
from otterwiki_semantic.content.markdown.parser import parse_within_limits
from otterwiki_semantic.core.records import Document, Section, page_anchor

_CONTINUED = 7
"""The level of a part at a page start without a heading: below every heading, so that no group begins with it."""


def parse_attachment(text: str) -> Document:
    """Parse the Markdown of a file; anchors of sections name the file's pages, if it has any. Errors: `LimitExceededError`."""
    document = parse_within_limits(text)
    starts = page_starts(text)
    sections = document.sections
    if starts:
        sections = tuple(part for section in sections for part in _divided(section, [line for line, _ in starts]))
    return Document({}, sections)


def page_starts(text: str) -> list[tuple[int, int]]:
    """Return the line of each page marker, from 1, and the page's number."""
    starts, line, end = [], 1, 0
    for match in PAGE_MARKER.finditer(text):
        line, end = line + text.count("\n", end, match.start()), match.start()
        starts.append((line, int(match[1])))
    return starts


def _divided(section: Section, starts: list[int]) -> list[Section]:
    """Return the part of a section on each page; the first part has the section's heading."""

    def page_of(line: int) -> int:
        return max(1, bisect_right(starts, line))

    parts = [(page, tuple(blocks)) for page, blocks in groupby(section.blocks, lambda block: page_of(block.lines[0].number))]
    own = page_of(section.start_line if section.level or not parts else parts[0][1][0].lines[0].number)
    if not parts or (section.level and parts[0][0] != own):
        parts.insert(0, (own, ()))
    found = []
    for place, (page, blocks) in enumerate(parts):
        first = section.start_line if not place else blocks[0].lines[0].number
        last = section.end_line if place == len(parts) - 1 else max(first, starts[page] - 1)
        part = replace(section, anchor=page_anchor(page), start_line=first, end_line=last, blocks=blocks)
        found.append(part if not place else replace(part, level=_CONTINUED, heading=""))
    return found
