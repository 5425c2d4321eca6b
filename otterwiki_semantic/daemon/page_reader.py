"""Pages as the API and agents read them: whole, by section or by line.

The text comes from git, the links from the index.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.content.markdown import json_safe, parse_markdown
from otterwiki_semantic.content.pages import (
    find_section,
    outline,
    page_key,
    page_name,
    page_not_found,
    page_title,
    page_word_count,
    short_names,
)
from otterwiki_semantic.core.errors import PageNotFoundError, ParameterError, RevisionNotFoundError, SemanticError
from otterwiki_semantic.core.parameters import MAX_PATH_CHARACTERS
from otterwiki_semantic.core.records import NO_URLS, OutlineEntry, PageLinks, PagePart, PageRequest, PageUrls, PageView
from otterwiki_semantic.daemon.interface import IndexService

_LINE = re.compile(r".*?(?:\r\n?|\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Source:
    """A page as a commit has it."""

    path: str
    commit: str
    text: str
    lines: tuple[str, ...]
    """With their ends."""


class PageReader:
    """Reads the pages of a repository, with the help of its index.

    Errors: `PageNotFoundError`, `RevisionNotFoundError`, `SectionNotFoundError`, `AmbiguousSectionError`, `ParameterError` for
    lines that the page does not have, those of git.
    """

    def __init__(self, index: IndexService, repository: Repository) -> None:
        self._index = index
        self._repository = repository

    def page(self, path: str, request: PageRequest, urls: PageUrls = NO_URLS) -> PageView:
        """Return a page as HEAD or a revision has it: whole, or the sections and lines asked for."""
        source = self._source(path, request.revision)
        document = parse_markdown(source.text)
        entries, title = outline(document, len(source.lines)), page_title(source.path, document)
        parts = [_part(source, find_section(entries, name, title)) for name in request.section]
        if request.lines is not None:
            parts.append(_lines_part(source, entries, request.lines, request.around))
        last = self._repository.last_commit(source.commit, source.path)
        links, failure = self._links(source.path)
        names = short_names(entries, title)
        return PageView(
            name=page_name(source.path),
            path=source.path,
            title=title,
            content="\n".join(part.content for part in parts) if parts else source.text,
            frontmatter=json_safe(document.front_matter) or None,
            revision=last.revision if last else source.commit,
            last_commit=last,
            links_to=links.links_to,
            linked_from=links.linked_from,
            word_count=page_word_count(document),
            total_lines=len(source.lines),
            sections=tuple(structs.replace(entry, name=name) for entry, name in zip(entries, names, strict=True)),
            parts=tuple(parts) or None,
            degraded=failure or None,
            url=urls.of(source.path),
        )

    def _links(self, path: str) -> tuple[PageLinks, str]:
        """Return a page's links, and why there are none if the index cannot say: its text is there without them."""
        try:
            return self._index.links(path), ""
        except SemanticError as error:
            return PageLinks((), ()), f"the index cannot say which pages link here: {error}"

    def _source(self, path: str, revision: str | None) -> _Source:
        spellings = _spellings(path)
        commit = self._commit(revision)
        found = ((each, self._repository.page_blob(commit, each)) for each in spellings if commit)
        there, blob = next(((each, blob) for each, blob in found if blob), None) or self._as_spelled(commit, spellings)
        text = next(self._repository.read_blobs([blob])).decode("utf-8", errors="replace")
        lines = tuple(match[0] for match in _LINE.finditer(text) if match[0])
        return _Source(there, commit or "", text, lines or ("",))

    def _commit(self, revision: str | None) -> str | None:
        if revision is None:
            return self._repository.head()
        commit = self._repository.resolve_commit(revision)
        if commit is None:
            raise RevisionNotFoundError(f"there is no revision {revision!r}")
        return commit

    def _as_spelled(self, commit: str | None, spellings: Sequence[str]) -> tuple[str, str]:
        """Return the path of a page as the commit spells it, and the id of its blob; `PageNotFoundError` if there is none."""
        blobs = self._repository.page_blobs(commit) if commit else {}
        for path in spellings:
            same = sorted(other for other in blobs if page_key(other) == page_key(path))
            if same:
                there = path if path in same else same[0]
                return there, blobs[there]
        path = spellings[-1]
        raise page_not_found("the wiki", path, blobs)


def _spellings(path: str) -> list[str]:
    """Return the path itself, and without the extension `.md`."""
    wanted = path.strip("/")
    if not wanted.removesuffix(".md") or len(wanted) > MAX_PATH_CHARACTERS or "\0" in wanted:
        raise PageNotFoundError(f"no page can have this path: it takes 1 to {MAX_PATH_CHARACTERS:,} characters", ())
    return list(dict.fromkeys((wanted, wanted.removesuffix(".md"))))


def _part(source: _Source, entry: OutlineEntry) -> PagePart:
    content = _content(source.lines, entry.start_line, entry.end_line)
    return _page_part(entry, entry.start_line, entry.end_line, entry.word_count, content)


def _lines_part(source: _Source, entries: Sequence[OutlineEntry], lines: tuple[int, int], around: int) -> PagePart:
    first, last = lines
    total = len(source.lines)
    if first > total:
        raise ParameterError(f"lines begins at {first}; the page has {total} lines")
    within = [entry for entry in entries if entry.start_line <= first <= entry.end_line]
    innermost = max(within, key=lambda entry: (entry.start_line, entry.level), default=None)
    first, last = max(1, first - around), min(total, last + around)
    content = _content(source.lines, first, last)
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
