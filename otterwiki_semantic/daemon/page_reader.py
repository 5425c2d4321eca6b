"""Pages read as the API and agents read them: lists of them, and one of them whole, by section or by line.

What a page says comes from git, what is known of all pages from the index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.content.markdown import json_safe, parse_markdown
from otterwiki_semantic.content.pages import (
    find_section,
    full_names,
    outline,
    page_key,
    page_name,
    page_not_found,
    page_title,
    page_word_count,
    short_names,
)
from otterwiki_semantic.core.errors import (
    PageNotFoundError,
    ParameterError,
    RevisionNotFoundError,
    SectionNotFoundError,
    SemanticError,
)
from otterwiki_semantic.core.parameters import (
    MAX_AROUND,
    MAX_PATH_CHARACTERS,
    MAX_SECTIONS,
    checked_number,
    checked_texts,
    listing_options,
)
from otterwiki_semantic.core.records import Document, OutlineEntry, PageLinks, shallow_dict
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.daemon.serialization import PageUrl, page_list_json

_LINE = re.compile(r".*?(?:\r\n?|\n|\Z)", re.DOTALL)
_RANGE = re.compile(r"(?P<first>[1-9][0-9]{0,8})(?:-(?P<last>[1-9][0-9]{0,8}))?")
_REVISION = re.compile(r"[0-9a-fA-F]{4,64}")


@dataclass(frozen=True, slots=True)
class _Source:
    """A page as a commit has it."""

    path: str
    commit: str
    text: str
    lines: tuple[str, ...]
    """With their ends."""


class PageReader:
    """Reads the pages of a repository with the help of its index.

    Errors: `ParameterError` for an argument that is not allowed, `PageNotFoundError`, `RevisionNotFoundError`,
    `SectionNotFoundError` and `AmbiguousSectionError`, those of git, and for lists those of the index.
    """

    def __init__(self, service: IndexService, repository: Repository) -> None:
        self._service = service
        self._repository = repository

    def pages(self, arguments: Mapping[str, Any], page_url: PageUrl | None = None) -> dict[str, Any]:
        """Give the pages that the index has, by path: those with a `prefix`, `category`, `tag`, or `updated_since`.

        `limit` and `offset` choose among them.
        """
        filters, limit, offset = listing_options(arguments)
        return page_list_json(self._service.pages(filters, limit, offset), page_url)

    def page(self, path: str, arguments: Mapping[str, Any], page_url: PageUrl | None = None) -> dict[str, Any]:
        """Give a page as HEAD or a `revision` has it: whole, or one `section` or several, or `lines` (and `around` them)."""
        sections = checked_texts(arguments.get("section"), "section", MAX_SECTIONS)
        lines = arguments.get("lines")
        around = checked_number(arguments.get("around"), "around", 0, MAX_AROUND, least=0)
        source = self._source(path, arguments.get("revision"))
        document = parse_markdown(source.text)
        entries, title = outline(document, len(source.lines)), page_title(source.path, document)
        body = self._body(source, document, entries, title)
        parts = [_part(source, find_section(entries, name, title)) for name in sections]
        if lines is not None:
            parts.append(_lines_part(source, entries, lines, around))
        if parts:
            body["parts"] = parts
            body["content"] = "\n".join(part["content"] for part in body["parts"])
        return body | {"url": page_url(source.path, "")} if page_url else body

    def _body(self, source: _Source, document: Document, entries: Sequence[OutlineEntry], title: str) -> dict[str, Any]:
        last = self._repository.last_commit(source.commit, source.path)
        links, failure = self._links(source.path)
        return {
            "name": page_name(source.path),
            "path": source.path,
            "title": title,
            "content": source.text,
            "frontmatter": json_safe(document.front_matter) or None,
            "revision": last.revision if last else source.commit,
            "last_commit": shallow_dict(last) if last else None,
            **shallow_dict(links),
            "word_count": page_word_count(document),
            "total_lines": len(source.lines),
            "sections": [
                {"name": name, **shallow_dict(entry)} for name, entry in zip(short_names(entries, title), entries, strict=True)
            ],
            **({"degraded": failure} if failure else {}),
        }

    def _links(self, path: str) -> tuple[PageLinks, str]:
        """Give a page's links, and why there are none if the index cannot tell: its text is there without them, too."""
        try:
            return self._service.links(path), ""
        except SemanticError as error:
            return PageLinks((), ()), f"the index cannot tell the page's links: {error}"

    # Where the text comes from

    def _source(self, path: str, revision: object) -> _Source:
        spellings = _spellings(path)
        commit = self._commit(revision)
        found = ((each, self._repository.page_blob(commit, each)) for each in spellings if commit)
        there, blob = next(((each, blob) for each, blob in found if blob), None) or self._as_spelled(commit, spellings)
        text = next(self._repository.read_blobs([blob])).decode("utf-8", errors="replace")
        lines = tuple(match[0] for match in _LINE.finditer(text) if match[0])
        return _Source(there, commit or "", text, lines or ("",))

    def _commit(self, revision: object) -> str | None:
        if revision is None:
            return self._repository.head()
        if not isinstance(revision, str) or not _REVISION.fullmatch(revision):
            raise ParameterError(f"revision is {revision!r}; it takes a commit's name: 4 to 64 hexadecimal digits")
        commit = self._repository.resolve_commit(revision)
        if commit is None:
            raise RevisionNotFoundError(f"there is no revision {revision!r}")
        return commit

    def _as_spelled(self, commit: str | None, spellings: Sequence[str]) -> tuple[str, str]:
        """Give the page's path as the commit spells it, and the id of its content; `PageNotFoundError` if there is none."""
        blobs = self._repository.page_blobs(commit) if commit else {}
        for path in spellings:
            same = sorted(other for other in blobs if page_key(other) == page_key(path))
            if same:
                there = path if path in same else same[0]
                return there, blobs[there]
        path = spellings[-1]
        raise page_not_found("the wiki", path, blobs)


def _spellings(path: str) -> list[str]:
    """Give what a path may stand for: itself, and without the ending of its file."""
    wanted = path.strip("/")
    if not wanted.removesuffix(".md") or len(wanted) > MAX_PATH_CHARACTERS or "\0" in wanted:
        raise PageNotFoundError(f"no page can have this path: it takes 1 to {MAX_PATH_CHARACTERS:,} characters", ())
    return list(dict.fromkeys((wanted, wanted.removesuffix(".md"))))


# Parts of a page


def _part(source: _Source, entry: OutlineEntry) -> dict[str, Any]:
    content = _content(source.lines, entry.start_line, entry.end_line)
    return _part_json(entry, entry.start_line, entry.end_line, entry.word_count, content)


def _lines_part(source: _Source, entries: Sequence[OutlineEntry], lines: object, around: int) -> dict[str, Any]:
    asked = _RANGE.fullmatch(lines.strip()) if isinstance(lines, str) else None
    if not asked:
        raise ParameterError(f"lines is {lines!r}; it takes a line or a range of them, such as 12-40")
    first, last = sorted((int(asked["first"]), int(asked["last"] or asked["first"])))
    total = len(source.lines)
    if first > total:
        raise SectionNotFoundError(f"there is no line {first}: the page has {total}", _names(entries))
    within = [entry for entry in entries if entry.start_line <= first <= entry.end_line]
    innermost = max(within, key=lambda entry: (entry.start_line, entry.level), default=None)
    first, last = max(1, first - around), min(total, last + around)
    content = _content(source.lines, first, last)
    return _part_json(innermost, first, last, count_words(content), content)


def _names(entries: Sequence[OutlineEntry]) -> list[str]:
    return full_names([entry for entry in entries if entry.level])


def _part_json(entry: OutlineEntry | None, first: int, last: int, words: int, content: str) -> dict[str, Any]:
    return {
        "section": entry.heading if entry else "",
        "section_path": entry.path if entry else (),
        "anchor": entry.anchor if entry else "",
        "start_line": first,
        "end_line": last,
        "word_count": words,
        "content": content,
    }


def _content(lines: Sequence[str], first: int, last: int) -> str:
    """Give some lines as they are, without empty ones at the end."""
    text = "".join(lines[first - 1 : last]).rstrip()
    return f"{text}\n" if text else ""
