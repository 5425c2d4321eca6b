"""The targets of a page's links, resolved to paths as a browser would on the wiki's page."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from otterwiki_semantic.content.analysis.tokenizer import fold
from otterwiki_semantic.core.records import Link


def page_key(path: str) -> str:
    """Return a key that all spellings of a page's path share, because the wiki may store its files in lower case."""
    return fold(path)


def resolve_link(link: Link, source: str) -> str | None:
    """Return the target path of a link on the page `source`; None outside the wiki and on the page itself."""
    try:
        parts = urlsplit(link.url.strip())
    except ValueError:
        return None
    if parts.scheme or parts.netloc or not parts.path:
        return None
    absolute = posixpath.normpath(posixpath.join("/", posixpath.dirname(source), unquote(parts.path)))
    path = absolute.strip("/").removesuffix(".md")
    return None if not path or page_key(path) == page_key(source) else path


def linked_pages(links: Iterable[Link], source: str, *, by_name: bool = False) -> tuple[str, ...]:
    """Return the distinct keys of the pages that links on the page `source` lead to, in order.

    With `by_name`, wikilinks name pages in any directory. Each wikilink then has another key, ``[[key|key``, for
    `resolve_wiki_links`.
    """
    keys: dict[str, None] = {}
    for link in links:
        if target := resolve_link(link, source):
            key = page_key(target)
            keys[key] = None
            if by_name and link.is_wiki_link:
                keys[f"[[{key}|{key}"] = None
    return tuple(keys)
