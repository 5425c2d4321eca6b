"""Drafts judged questions from a wiki's own links: who wrote a link knew which page answers its text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from otterwiki_semantic.content.analysis import fold, name_key
from otterwiki_semantic.content.pages import page_key, resolve_link
from otterwiki_semantic.core.records import Link

_LEAST_LETTERS = 3
_TELLS_NOTHING = frozenset(
    (
        *("here", "link", "links", "this", "thispage", "page", "more", "seemore", "readmore", "learnmore", "details", "docs"),
        *("documentation", "source", "home", "back", "next", "previous", "top", "edit", "above", "below", "see"),
    )
)


def draft_questions(links: Mapping[str, Iterable[Link]]) -> list[dict[str, Any]]:
    """Give a query file's entries, by question: link texts with the pages they lead to, of all pages' links by path.

    The pages that hold the link are left out of the ranking: they have its very words. A text that leads to a page and from it
    is none; nor is one that says nothing, such as "here", or one that is an address.
    """
    paths = {page_key(path): path for path in links}
    drafts: dict[str, dict[str, Any]] = {}
    for source, links_of_page in links.items():
        for link in links_of_page:
            target = resolve_link(link, source)
            path = paths.get(page_key(target[0])) if target else None
            if path is None or not _asks_something(link.text):
                continue
            draft = drafts.setdefault(fold(link.text), {"query": link.text, "relevant": set(), "exclude": set()})
            draft["relevant"].add(path)
            draft["exclude"].add(source)
    return [
        {name: sorted(value) if isinstance(value, set) else value for name, value in draft.items()}
        for _, draft in sorted(drafts.items())
        if not draft["relevant"] & draft["exclude"]
    ]


def _asks_something(text: str) -> bool:
    key = name_key(text)
    return len(key) >= _LEAST_LETTERS and key not in _TELLS_NOTHING and "://" not in text and not text.startswith(("/", "www."))
