"""Suggestions: related pages, and pages that may be meant by a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import DaemonUnavailableError, PageNotFoundError
from otterwiki_semantic.core.records import RelatedPage, SearchContext, SearchOptions
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.pages.layout import page_urls

T = TypeVar("T")
_RELATED, _LIKELY = 6, 5
_PAUSE_SECONDS = 30.0


class CircuitBreaker:
    """Circuit breaker for requests that nobody waits for: each would hold one of the wiki's threads as long as a search may."""

    def __init__(self) -> None:
        self._cooldown = Cooldown(_PAUSE_SECONDS)

    def call(self, request: Callable[[], T]) -> T:
        """Return what `request` returns; `DaemonUnavailableError` if the index daemon does not answer, or did not lately."""
        if self._cooldown.is_active:
            raise DaemonUnavailableError("the index daemon did not answer lately")
        try:
            return request()
        except DaemonUnavailableError:
            self._cooldown.start()
            raise


@dataclass(frozen=True, slots=True)
class NearPage:
    """A related page."""

    title: str
    section: str
    """Its nearest section; empty if that is the page itself."""
    url: str
    """That of the section."""
    is_linked: bool
    """Whether the current page links to it."""
    link: str
    """The wiki link to it; empty if its name allows none."""
    own_section: str
    """The section of the current page that is nearest to it; empty if that is unknown."""


def near_pages(service: IndexService, path: str) -> tuple[NearPage, ...]:
    """Return the relevant pages near in meaning to a page, nearest first; errors as `IndexService.related`."""
    near = service.related(path, _RELATED, page_urls()).results
    return tuple(_near(page) for page in near if page.relevant and page.url)


def _near(page: RelatedPage) -> NearPage:
    best = page.sections[0] if page.sections else None
    section, anchor, own_section = (best.related_section, best.related_anchor, best.section) if best else ("", "", "")
    urls = page_urls()
    url, link = urls.of(page.path, anchor) or "", urls.link(page.path) or ""
    return NearPage(page.title, "" if section == page.title else section, url, page.linked, link, own_section)


def likely_pages(service: IndexService, name: str, *, is_path: bool) -> dict[str, str]:
    """Return pages that may be meant by a name, titles by path: for a path those spelled like it first, then those about it."""
    words = name.replace("/", " ").replace("-", " ").replace("_", " ").strip() or name
    options = SearchOptions(n=_LIKELY, max_chunks_per_page=1, rerank=False)
    answer = service.search([words], options, context=SearchContext(is_logged=False))[0]
    about = {hit.path: hit.title for hit in answer.results if hit.relevant}
    spelled = {path: about.get(path, path) for path in (_spelled_like(service, name) if is_path else ())}
    found = {**spelled, **about}
    found.pop(name, None)  # the wiki may be unable to open that one
    urls = page_urls()
    return dict(islice(((path, title) for path, title in found.items() if urls.shows(path)), _LIKELY))


def _spelled_like(service: IndexService, name: str) -> tuple[str, ...]:
    """Return the paths of pages with a similar name, or this name."""
    try:
        return (service.related(name, 1).path,)
    except PageNotFoundError as error:
        return tuple(error.nearest)
