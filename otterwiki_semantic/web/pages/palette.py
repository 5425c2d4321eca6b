"""What the palette shows while somebody types: pages and headings by name at once, an answer and passages a moment later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from flask import request
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import (
    Answer,
    Filters,
    Hit,
    SearchContext,
    SearchOptions,
    SuggestedLabel,
    SuggestRequest,
    query_text,
)
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.excerpts import Span
from otterwiki_semantic.web.pages.layout import guarded, has, page_url, pages, render_part, status_of
from otterwiki_semantic.web.pages.results import own_start, passage_excerpt, passage_url, trail

_NAMES, _PASSAGES, _PASSAGES_PER_PAGE = 7, 6, 2
_UNITS = 6
"""Of each passage, of which one may answer a question."""


@dataclass(frozen=True, slots=True)
class Option:
    """A page, a heading, a passage or an answer that can be opened."""

    url: str
    title: str
    """That of the page."""
    label: tuple[Span, ...]
    trail: str
    """Where it is: the path of a page, the headings above a passage, the page and headings of an answer."""
    path: str
    anchor: str
    folder: str
    """What a search can be narrowed to; empty for a page that is in none."""
    is_page: bool = False
    excerpt: tuple[Span, ...] = ()
    text: str = ""
    """The whole passage."""
    kind: str | None = None
    """What kind of attached file it is; None for a page."""


@pages.get("/palette")
@guarded("READ", feature="palette")
def palette() -> ResponseReturnValue:
    """Return the options of one part of the palette: `names`, or `passages` and, if it has answers, what answers a question."""
    query = request.args.get("q", "").strip()
    try:
        filters = parse_parameters(Filters, {"path": request.args.get("path") or None, "tag": request.args.getlist("tag")})
        values = _names(query, filters) if request.args.get("part") == "names" else _passages(query, filters)
    except SemanticError as error:
        return render_part("palette_options.html", summary=str(error)), status_of(error)
    return render_part("palette_options.html", **values)


def _names(query: str, filters: Filters) -> dict[str, Any]:
    found = extension().index.suggest(SuggestRequest(query_text(query) if query else "", _NAMES, filters))
    label = "Pages and headings" if query else "Changed lately"
    return {"label": label, "options": _shown(map(_named, found.suggestions)), "tags": found.tags}


def _named(found: SuggestedLabel) -> Option | None:
    url = page_url(found.path, found.anchor, found.file)
    if url is None:
        return None
    is_page = found.kind == "page"
    label = tuple(_spans(found.title if is_page else found.section, found.ranges))
    place = found.path if is_page else " › ".join((found.title, *found.section_path[:-1]))
    return Option(url, found.title, label, place, found.path, found.anchor, _folder(found.path), is_page, kind=found.file)


def _spans(text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[Span]:
    at = 0
    for start, end in ranges:
        yield from (Span(text[at:start]), Span(text[start:end], is_match=True))
        at = end
    yield Span(text[at:])


def _passages(query: str, filters: Filters) -> dict[str, Any]:
    if not query:
        return {}
    text, search = query_text(query), extension().index.search
    options = SearchOptions(
        n=_PASSAGES,
        max_chunks_per_page=_PASSAGES_PER_PAGE,
        filters=filters,
        draft=True,
        best_sentence=True,
        units=_UNITS if has("answers") else 0,
    )
    answer = search([text], options)[0]
    is_paused = request.args.get("draft") != "typing"
    if is_paused:
        # A word that is found may still be the beginning of another one, which is no search to be counted.
        is_counted = not _relevant(answer) or " " in text
        is_counted &= request.headers.get("Sec-Fetch-Site") == "same-origin"  # else another site could fill the log
        whole = search([text], structs.replace(options, draft=False), context=SearchContext(is_logged=is_counted))[0]
        answer = whole if _relevant(whole) else answer
    if relevant := _relevant(answer):
        return {"label": "Passages", "options": _shown(map(_passage, relevant)), "lead": _lead(answer)}
    if not is_paused:
        return {}
    nearest = _shown(map(_passage, answer.results))
    return {"label": "Nearest passages", "options": nearest, "summary": "Nothing in this wiki seems to be about this."}


def _relevant(answer: Answer) -> list[Hit]:
    return [hit for hit in answer.results if hit.relevant]


def _lead(answer: Answer) -> Option | None:
    """Return what answers a question by itself; it opens its page at its heading, and is marked there."""
    if answer.lead is None:
        return None
    hit = answer.results[answer.lead.result].at(answer.lead.unit)
    passage = _passage(hit)
    place = " › ".join((hit.title, *trail(hit)))
    return passage and replace(passage, label=(Span(answer.lead.text),), trail=place, excerpt=())


def _passage(hit: Hit) -> Option | None:
    url = passage_url(hit)
    if url is None:
        return None
    return Option(
        url,
        hit.title,
        (Span(hit.title),),
        " › ".join((*([f"page {hit.page_number}"] if hit.page_number else []), *trail(hit))) or hit.path,
        hit.path,
        hit.anchor,
        _folder(hit.path),
        excerpt=passage_excerpt(hit),
        text=hit.snippet[own_start(hit) :].strip(),
        kind=hit.kind,
    )


def _shown(options: Iterable[Option | None]) -> list[Option]:
    """Return those that the wiki can show."""
    return [option for option in options if option is not None]


def _folder(path: str) -> str:
    folder, separator, _ = path.rpartition("/")
    return folder + separator
