"""A page as the API and agents read it: whole, by section or by line. Runs in a process with a time limit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import structs

from otterwiki_semantic.content.attachments.paging import page_starts
from otterwiki_semantic.content.chunking.sizes import count_words
from otterwiki_semantic.content.markdown.front_matter import json_safe
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.outline import find_section, outline, short_names
from otterwiki_semantic.content.pages.page import check_not_excluded, page_name, page_title, page_word_count
from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import FileKind, Notation, OutlineEntry, PagePart, PageRequest, PageView, page_anchor

_PAGE_NAME = re.compile(r"#?(?:page|slide)[ =](\d{1,6})", re.IGNORECASE)
_LINE = re.compile(r".*?(?:\r\n?|\n|\Z)", re.DOTALL)


def view_page(
    path: str,
    revision: str,
    text: str,
    request: PageRequest,
    kind: FileKind | None = None,
    notation: Notation = Notation.WIKI,
) -> PageView:
    """Return a page, or the requested sections and lines, without the facts from git and the index.

    In an attached file, a section may also be a page, such as ``page 4``. Errors: `PageExcludedError`, `SectionNotFoundError`,
    `AmbiguousSectionError`, and `ParameterError` for lines that the page does not have.
    """
    lines = [match[0] for match in _LINE.finditer(text) if match[0]] or [""]
    document = parse_markdown(text, page_first=notation.is_page_first)
    check_not_excluded(path, document.front_matter)
    title = page_name(path) if kind else page_title(path, document)
    starts = page_starts(text) if kind else []
    entries = outline(document, len(lines))
    if starts:
        entries = tuple(structs.replace(entry, anchor=page_anchor(_page_of(entry.start_line, starts))) for entry in entries)
    parts = []
    for name in request.section:
        if (part := _file_page(lines, starts, name)) is None:
            found = find_section(entries, name, title)
            place = found.heading, found.path, found.anchor
            part = _part(lines, place, found.start_line, found.end_line, found.word_count)
        parts.append(part)
    if request.lines is not None:
        parts.append(_lines_part(lines, entries, request.lines, request.around))
    return PageView(
        name=page_name(path),
        path=path,
        title=title,
        content="\n".join(part.content for part in parts) if parts else text,
        frontmatter=json_safe(document.front_matter) or None,
        revision=revision,
        last_commit=None,
        links_to=(),
        linked_from=(),
        word_count=page_word_count(document),
        total_lines=len(lines),
        sections=tuple(
            structs.replace(entry, name=name) for entry, name in zip(entries, short_names(entries, title), strict=True)
        ),
        parts=tuple(parts) or None,
        kind=kind,
    )


def _page_of(line: int, starts: Sequence[tuple[int, int]]) -> int:
    return max((number for start, number in starts if start <= line), default=1)


def _file_page(lines: Sequence[str], starts: Sequence[tuple[int, int]], name: str) -> PagePart | None:
    """Return the page of a file for a name such as ``page 4`` or ``#page=4``, or None if it names no page."""
    match = _PAGE_NAME.fullmatch(name.strip())
    number = int(match[1]) if match else 0
    place = next((place for place, (_, found) in enumerate(starts) if found == number), None)
    if place is None:
        return None
    first, last = starts[place][0], starts[place + 1][0] - 1 if place + 1 < len(starts) else len(lines)
    return _part(lines, (f"page {number}", (f"page {number}",), page_anchor(number)), first, last)


def _lines_part(lines: Sequence[str], entries: Sequence[OutlineEntry], wanted: tuple[int, int], around: int) -> PagePart:
    first, last = wanted
    total = len(lines)
    if first > total:
        raise ParameterError(f"lines begins at {first}; the page has {total} lines")
    within = [entry for entry in entries if entry.start_line <= first <= entry.end_line]
    innermost = max(within, key=lambda entry: (entry.start_line, entry.level), default=None)
    place = (innermost.heading, innermost.path, innermost.anchor) if innermost else ("", (), "")
    return _part(lines, place, max(1, first - around), min(total, last + around))


def _part(
    lines: Sequence[str], place: tuple[str, tuple[str, ...], str], first: int, last: int, words: int | None = None
) -> PagePart:
    """Return some lines verbatim, without trailing empty lines; `place` is the section's heading, path and anchor."""
    text = "".join(lines[first - 1 : last]).rstrip()
    content = f"{text}\n" if text else ""
    return PagePart(*place, first, last, count_words(content) if words is None else words, content)
