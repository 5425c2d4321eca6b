"""Draft judged queries from the links of a wiki: the author of a link knew which page its text means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otterwiki_semantic.content.analysis import fold, name_key
from otterwiki_semantic.content.pages import page_key, resolve_link
from otterwiki_semantic.core.records import Link

_MIN_LETTERS = 3
_STOP_TEXTS = frozenset(
    (
        *("here", "link", "links", "this", "thispage", "page", "more", "seemore", "readmore", "learnmore", "details", "docs"),
        *("documentation", "source", "home", "back", "next", "previous", "top", "edit", "above", "below", "see"),
    )
)


def draft_questions(links: Mapping[str, Iterable[Link]]) -> list[dict[str, Any]]:
    """Return the entries of a query file: link texts and their target pages. `links` has the links of each page, by path.

    Pages with the link are excluded from the ranking, because they contain its very words. Texts such as "here", URLs, and
    texts that link both to a page and to another target are skipped.
    """
    paths = {page_key(path): path for path in links}
    drafts: dict[str, dict[str, Any]] = {}
    for source, links_of_page in links.items():
        for link in links_of_page:
            target = resolve_link(link, source)
            path = paths.get(page_key(target)) if target else None
            if path is None or not _is_query(link.text):
                continue
            draft = drafts.setdefault(fold(link.text), {"query": link.text, "relevant": set(), "exclude": set()})
            draft["relevant"].add(path)
            draft["exclude"].add(source)
    return [
        {name: sorted(value) if isinstance(value, set) else value for name, value in draft.items()}
        for _, draft in sorted(drafts.items())
        if not draft["relevant"] & draft["exclude"]
    ]


def _is_query(text: str) -> bool:
    key = name_key(text)
    return len(key) >= _MIN_LETTERS and key not in _STOP_TEXTS and "://" not in text and not text.startswith(("/", "www."))
