"""Pages near to another one, and pages that may be meant by a name: what is offered beside the wiki's own pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from otterwiki_semantic.errors import PageUnknownError
from otterwiki_semantic.records import RelatedPage, SearchOptions
from otterwiki_semantic.service import IndexService

PageUrl = Callable[[str, str], str]
_RELATED, _LIKELY = 6, 5


@dataclass(frozen=True, slots=True)
class NearPage:
    """A page that is offered: its nearest section (empty: none), and whether it is linked to already."""

    title: str
    path: str
    url: str
    section: str
    section_url: str
    is_linked: bool


def near_pages(service: IndexService, path: str, page_url: PageUrl) -> tuple[NearPage, ...]:
    """Give the pages near enough in meaning to a page, nearest first; errors as `IndexService.related`."""
    return tuple(_near(page, page_url) for page in service.related(path, _RELATED).pages if page.relevant)


def _near(page: RelatedPage, page_url: PageUrl) -> NearPage:
    best = page.sections[0] if page.sections else None
    section, anchor = (best.related_section, best.related_anchor) if best else ("", "")
    shown = "" if section == page.title else section
    return NearPage(page.title, page.path, page_url(page.path, ""), shown, page_url(page.path, anchor), page.linked)


def likely_pages(service: IndexService, name: str, page_url: PageUrl, *, is_path: bool) -> tuple[NearPage, ...]:
    """Give existing pages that may be meant by a name: for a whole path those spelled like it first, then those about it."""
    words = name.replace("/", " ").replace("-", " ").replace("_", " ").strip() or name
    answer = service.search([words], SearchOptions(n=_LIKELY, max_chunks_per_page=1))[0]
    about = {
        hit.path: NearPage(hit.title, hit.path, page_url(hit.path, ""), hit.section, page_url(hit.path, hit.anchor), False)
        for hit in answer.hits
        if hit.relevant
    }
    spelled = {path: about.get(path) or _named(path, page_url) for path in (_spelled_like(service, name) if is_path else ())}
    return tuple({**spelled, **about}.values())[:_LIKELY]


def _named(path: str, page_url: PageUrl) -> NearPage:
    url = page_url(path, "")
    return NearPage(path, path, url, "", url, False)


def _spelled_like(service: IndexService, name: str) -> tuple[str, ...]:
    """Give the paths of pages spelled like a name; a page that has the name itself is one of them."""
    try:
        return (service.related(name, 1).path,)
    except PageUnknownError as error:
        return tuple(error.nearest)
