"""Where a page's links lead: from what was written to the keys of pages, as a browser on the wiki's page would resolve it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from otterwiki_semantic.content.analysis.tokenizer import fold
from otterwiki_semantic.core.records import Link


def page_key(path: str) -> str:
    """Give what all spellings of a page's path have in common: the wiki may keep its files in lower case."""
    return fold(path)


def resolve_link(link: Link, source: str) -> tuple[str, str] | None:
    """Give the path and the anchor a link on the page `source` leads to; None if it leads elsewhere or to the same page."""
    try:
        parts = urlsplit(link.url.strip())
    except ValueError:
        return None
    if parts.scheme or parts.netloc or not parts.path:
        return None
    path = unquote(parts.path)
    whole = posixpath.normpath(posixpath.join("/", posixpath.dirname(source), path)).strip("/")
    whole = whole.removesuffix(".md")
    if not whole or page_key(whole) == page_key(source):
        return None
    return whole, unquote(parts.fragment)


def linked_pages(links: Iterable[Link], source: str) -> tuple[str, ...]:
    """Give the keys of the pages that links on the page `source` lead to, each once and in order."""
    targets = (resolve_link(link, source) for link in links)
    return tuple(dict.fromkeys(page_key(target[0]) for target in targets if target))
