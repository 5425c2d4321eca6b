"""A page: its name, its title, and its creation from the bytes of a file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rapidfuzz import fuzz, process

from otterwiki_semantic.content.analysis.tokenizer import fold
from otterwiki_semantic.content.chunking.chunker import chunk_document, shorten_heading
from otterwiki_semantic.content.chunking.sizes import TokenCounter
from otterwiki_semantic.content.markdown.front_matter import list_field, text_field
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.links import linked_pages, page_key
from otterwiki_semantic.content.pages.outline import section_word_count
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.core.errors import PageExcludedError, PageNotFoundError
from otterwiki_semantic.core.records import Document, FileKind, Indexed, Page

FRONT_MATTER = "its front matter (search: false)"
"""The reason shown for a page that its own front matter excludes."""
_MAX_SUGGESTIONS, _MIN_SIMILARITY = 5, 60


def page_name(path: str) -> str:
    """Return the last part of a page's path."""
    return path.rsplit("/", 1)[-1]


def parent_path(path: str) -> str:
    """Return the path of the containing folder, which is an attached file's page; empty at the top."""
    return path.rpartition("/")[0]


def find_page(path: str, paths: Collection[str]) -> str | None:
    """Return the page with this path, in any spelling, with or without ``.md``; None if there is none."""
    wanted = path.strip("/")
    for spelling in (wanted, wanted.removesuffix(".md")):
        same = sorted(other for other in paths if page_key(other) == page_key(spelling))
        if same:
            return spelling if spelling in same else same[0]
    return None


def page_not_found(where: str, path: str, paths: Iterable[str]) -> PageNotFoundError:
    """Return the error for a missing page, with similarly spelled pages."""
    names: dict[str, str] = {}
    for other in paths:
        names.setdefault(other, other)
        names.setdefault(page_name(other), other)
    nearest = _nearest(path, names) or _nearest(page_name(path), names)
    hint = f"; perhaps: {'; '.join(nearest)}" if nearest else ""
    return PageNotFoundError(f"{where} has no page {path!r}{hint}", nearest)


def _nearest(name: str, names: Mapping[str, str]) -> list[str]:
    spelled = process.extract(
        name, list(names), scorer=fuzz.ratio, processor=fold, limit=2 * _MAX_SUGGESTIONS, score_cutoff=_MIN_SIMILARITY
    )
    return list(dict.fromkeys(names[found] for found, _, _ in spelled))[:_MAX_SUGGESTIONS]


def page_excluded(path: str, by: str) -> PageExcludedError:
    """Return the error for a page that `by` excludes from the index."""
    return PageExcludedError(f"the page {path!r} is excluded from search by {by}")


def page_title(path: str, document: Document) -> str:
    """Return the title: from the front matter, else the first heading if it is of level 1, else the page's name."""
    title = text_field(document.front_matter, "title")
    first = next((section for section in document.sections if section.level), None)
    heading = first.heading if first is not None and first.level == 1 else None
    return shorten_heading(title or heading or page_name(path))


def page_indexing(front_matter: dict[str, Any]) -> Indexed:
    """Return how to index a page: as `search` in its front matter says, else in full."""
    value = (text_field(front_matter, "search") or "").lower()
    return Indexed(value) if value in set(Indexed) else Indexed.FULLY


def check_not_excluded(path: str, front_matter: dict[str, Any]) -> None:
    """Raise `PageExcludedError` for a page whose front matter excludes it."""
    if page_indexing(front_matter) is Indexed.NOT:
        raise page_excluded(path, FRONT_MATTER)


def page_word_count(document: Document) -> int:
    """Return the number of words a reader sees, headings included."""
    return sum(map(section_word_count, document.sections))


def read_page(path: str, blob: str, content: bytes, counter: TokenCounter, profile: Profile) -> Page:
    """Parse and chunk a page. Invalid UTF-8 becomes the replacement character; no content raises an error."""
    return make_page(path, blob, parse_markdown(content.decode("utf-8", errors="replace")), counter, profile)


def make_page(
    path: str,
    blob: str,
    document: Document,
    counter: TokenCounter,
    profile: Profile,
    kind: FileKind | None = None,
    *,
    links_by_name: bool = False,
) -> Page:
    """Chunk a parsed page, or an attached file of a kind. No passage contains a file's name, so it can change."""
    title = page_name(path) if kind else page_title(path, document)
    return Page(
        path=path,
        blob=blob,
        title=title,
        category=text_field(document.front_matter, "category"),
        tags=list_field(document.front_matter, "tags"),
        aliases=list_field(document.front_matter, "aliases"),
        declared_language=text_field(document.front_matter, "lang") or text_field(document.front_matter, "language"),
        answers=list_field(document.front_matter, "answers", separator=None),
        word_count=page_word_count(document),
        chunks=chunk_document(document, "" if kind else title, counter, profile),
        links_to=linked_pages(document.links, path, by_name=links_by_name),
        indexed=page_indexing(document.front_matter),
        kind=kind,
    )
