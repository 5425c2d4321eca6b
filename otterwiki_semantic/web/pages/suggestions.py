"""Pages near to another one, and pages that may be meant by a name: what is offered beside the wiki's own pages."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from otterwiki_semantic.core.errors import DaemonUnavailableError, PageNotFoundError
from otterwiki_semantic.core.records import RelatedPage, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.pages.layout import PageUrl

T = TypeVar("T")
_RELATED, _LIKELY = 6, 5
_PAUSE_SECONDS = 30.0
_NOT_IN_LINKS = set("[]|\n")


class Unasked:
    """Questions that nobody asked: after one that the index process did not answer, none is put to it for a while.

    Each would hold one of the wiki's threads for as long as a search waits.
    """

    def __init__(self) -> None:
        self._not_before = 0.0

    def ask(self, question: Callable[[], T]) -> T:
        """Give the answer; `DaemonUnavailableError` if there is none, or was none lately."""
        if time.monotonic() < self._not_before:
            raise DaemonUnavailableError("the index process did not answer lately")
        try:
            return question()
        except DaemonUnavailableError:
            self._not_before = time.monotonic() + _PAUSE_SECONDS
            raise


@dataclass(frozen=True, slots=True)
class NearPage:
    """A page that is offered: its nearest section (empty: none), and whether it is linked to already."""

    title: str
    path: str
    url: str
    section: str
    section_url: str
    is_linked: bool
    link: str = ""
    """The wiki's link to it; empty if it has none because of its name."""


def near_pages(service: IndexService, path: str, page_url: PageUrl) -> tuple[NearPage, ...]:
    """Give the pages near enough in meaning to a page, nearest first; errors as `IndexService.related`."""
    return tuple(_near(page, page_url) for page in service.related(path, _RELATED).results if page.relevant)


def _near(page: RelatedPage, page_url: PageUrl) -> NearPage:
    best = page.sections[0] if page.sections else None
    section, anchor = (best.related_section, best.related_anchor) if best else ("", "")
    shown = "" if section == page.title else section
    link = "" if _NOT_IN_LINKS & set(page.path) else f"[[{page.path}]]"
    return NearPage(page.title, page.path, page_url(page.path, ""), shown, page_url(page.path, anchor), page.linked, link)


def likely_pages(service: IndexService, name: str, page_url: PageUrl, *, is_path: bool) -> tuple[NearPage, ...]:
    """Give existing pages that may be meant by a name: for a whole path those spelled like it first, then those about it."""
    words = name.replace("/", " ").replace("-", " ").replace("_", " ").strip() or name
    answer = service.search([words], SearchOptions(n=_LIKELY, max_chunks_per_page=1, is_logged=False, rerank=False))[0]
    about = {
        hit.path: NearPage(hit.title, hit.path, page_url(hit.path, ""), hit.section, page_url(hit.path, hit.anchor), False)
        for hit in answer.results
        if hit.relevant
    }
    spelled = {path: about.get(path) or _named(path, page_url) for path in (_spelled_like(service, name) if is_path else ())}
    others = (page for page in {**spelled, **about}.values() if page.path != name)  # the wiki may be unable to open that one
    return tuple(others)[:_LIKELY]


def _named(path: str, page_url: PageUrl) -> NearPage:
    url = page_url(path, "")
    return NearPage(path, path, url, "", url, False)


def _spelled_like(service: IndexService, name: str) -> tuple[str, ...]:
    """Give the paths of pages spelled like a name; a page that has the name itself is one of them."""
    try:
        return (service.related(name, 1).path,)
    except PageNotFoundError as error:
        return tuple(error.nearest)
