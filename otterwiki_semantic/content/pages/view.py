"""A page as the API and agents read it: whole, by section or by line.

What depends on a page's text alone is here, and is run where it cannot take longer than it may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import structs

from otterwiki_semantic.content.chunking.sizes import count_words
from otterwiki_semantic.content.markdown.front_matter import json_safe
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.outline import find_section, outline, short_names
from otterwiki_semantic.content.pages.page import check_not_excluded, page_name, page_title, page_word_count
from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import OutlineEntry, PagePart, PageRequest, PageView

_LINE = re.compile(r".*?(?:\r\n?|\n|\Z)", re.DOTALL)


def view_page(path: str, revision: str, text: str, request: PageRequest) -> PageView:
    """Return a page, or the sections and lines asked for, without what git and the index know of it.

    Errors: `PageExcludedError`, `SectionNotFoundError`, `AmbiguousSectionError`, `ParameterError` for lines that the page does
    not have.
    """
    lines = [match[0] for match in _LINE.finditer(text) if match[0]] or [""]
    document = parse_markdown(text)
    check_not_excluded(path, document.front_matter)
    entries, title = outline(document, len(lines)), page_title(path, document)
    parts = [_part(lines, find_section(entries, name, title)) for name in request.section]
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
    )


def _part(lines: Sequence[str], entry: OutlineEntry) -> PagePart:
    content = _content(lines, entry.start_line, entry.end_line)
    return _page_part(entry, entry.start_line, entry.end_line, entry.word_count, content)


def _lines_part(lines: Sequence[str], entries: Sequence[OutlineEntry], wanted: tuple[int, int], around: int) -> PagePart:
    first, last = wanted
    total = len(lines)
    if first > total:
        raise ParameterError(f"lines begins at {first}; the page has {total} lines")
    within = [entry for entry in entries if entry.start_line <= first <= entry.end_line]
    innermost = max(within, key=lambda entry: (entry.start_line, entry.level), default=None)
    first, last = max(1, first - around), min(total, last + around)
    content = _content(lines, first, last)
    return _page_part(innermost, first, last, count_words(content), content)


def _page_part(entry: OutlineEntry | None, first: int, last: int, words: int, content: str) -> PagePart:
    return PagePart(
        section=entry.heading if entry else "",
        section_path=entry.path if entry else (),
        anchor=entry.anchor if entry else "",
        start_line=first,
        end_line=last,
        word_count=words,
        content=content,
    )


def _content(lines: Sequence[str], first: int, last: int) -> str:
    """Return some lines verbatim, without empty ones at the end."""
    text = "".join(lines[first - 1 : last]).rstrip()
    return f"{text}\n" if text else ""
