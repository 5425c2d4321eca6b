"""A page's name and title, whether it is indexed, and the errors for missing and excluded pages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rapidfuzz import fuzz, process

from otterwiki_semantic.content.analysis.tokenizer import fold
from otterwiki_semantic.content.chunking.chunker import shorten_heading
from otterwiki_semantic.content.markdown.front_matter import text_field
from otterwiki_semantic.content.pages.links import page_key
from otterwiki_semantic.content.pages.outline import section_word_count
from otterwiki_semantic.core.errors import PageExcludedError, PageNotFoundError
from otterwiki_semantic.core.records import Document, Indexed

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
