"""The palette's options: pages and headings by name at once, an answer and passages a moment later."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

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
from otterwiki_semantic.web.pages.excerpts import Line, Span
from otterwiki_semantic.web.pages.layout import guarded, has, message_of, page_url, pages, render_part, status_of
from otterwiki_semantic.web.pages.quotations import is_numbered, item_parts
from otterwiki_semantic.web.pages.results import (
    by_page,
    is_function_word,
    is_similar,
    marked_name,
    narrower_query,
    notice,
    passage_excerpt,
    passage_url,
    relevant_hits,
    trail,
)

_NAMES, _HEADINGS, _PASSAGES = 7, 3, 6
_FEW_PAGES = 2
"""Up to this many pages have several headings."""
_UNITS = 6
"""Units per passage, one of which may answer a question."""
_LISTED = 6
"""Lines that are shown of an answer that is a list."""
_TELLING = 3
"""Letters of content words below which a query is vague."""


@dataclass(frozen=True, slots=True)
class Option:
    """A page, a heading, a passage or an answer; without URL, the wiki cannot show it."""

    kind: Literal["page", "heading", "passage", "answer"]
    url: str | None
    label: tuple[Span, ...]
    trail: tuple[str, ...]
    """Of a passage, its page and the headings above its own; of an answer, its page and all its headings."""
    path: str
    title: str
    anchor: str = ""
    updated: str = ""
    excerpt: tuple[Line, ...] = ()
    is_similar: bool = False
    """Whether a relevant passage has none of the words of the query."""
    file: str | None = None
    """The kind of an attached file; None for a page."""


@pages.get("/palette")
@guarded("READ", feature="palette")
def palette() -> ResponseReturnValue:
    """Return the options of one part of the palette: `names`, or `passages` with the answer to a question, if any."""
    query = request.args.get("q", "").strip()
    try:
        filters = parse_parameters(Filters, {"path": request.args.get("path") or None, "tag": request.args.getlist("tag")})
        values = _names(query, filters) if request.args.get("part") == "names" else _passages(query, filters)
    except SemanticError as error:
        return render_part("palette_options.html", summary=message_of(error)), status_of(error)
    return render_part("palette_options.html", **values)


def _names(query: str, filters: Filters) -> dict[str, Any]:
    found = extension().index.suggest(SuggestRequest(query_text(query) if query else "", _NAMES, filters))
    if not query:
        return {"label": "Recently changed", "options": _shown(_page(each, updated=each.updated) for each in found.suggestions)}
    names = [each for each in found.suggestions if not _is_vague(query) or each.title.casefold() == query.casefold()]
    return {"label": "Pages", "options": _shown(_by_page(names)), "tags": found.tags}


def _is_vague(query: str) -> bool:
    """Return whether a text has hardly any content words, so that it may begin a question or any title."""
    telling = [word for word in query.split() if not is_function_word(word)]
    return len("".join(telling)) < _TELLING and len(telling) < len(query.split())


def _by_page(found: Iterable[SuggestedLabel]) -> Iterator[Option]:
    """Yield each page, followed by its headings: the best one if there are many pages."""
    by_path = by_page(found)
    most = _HEADINGS if len(by_path) <= _FEW_PAGES else 1
    for names in by_path:
        page = next((each for each in names if each.kind == "page"), None)
        yield _page(page or structs.replace(names[0], ranges=()))
        for each in [each for each in names if each is not page][:most]:
            url, label = page_url(each.path, each.anchor, each.file), tuple(_spans(each.section, each.ranges))
            yield Option("heading", url, label, (), each.path, each.title, each.anchor)


def _page(found: SuggestedLabel, *, updated: str | None = None) -> Option:
    url = page_url(found.path, kind=found.file)
    label = tuple(_spans(found.title, found.ranges))
    return Option("page", url, label, (), found.path, found.title, updated=updated or "", file=found.file)


def _spans(text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[Span]:
    """Yield a name in parts; what only a function word of the query matches is no match."""
    at = 0
    for start, end in ranges:
        if is_function_word(text[start:end]):
            continue
        yield from (Span(text[at:start]), Span(text[start:end], is_match=True))
        at = end
    yield Span(text[at:])


def _passages(query: str, filters: Filters) -> dict[str, Any]:
    if not query:
        return {}
    text, search = query_text(query), extension().index.search
    units = _UNITS if has("answers") else 0
    options = SearchOptions(n=_PASSAGES, max_chunks_per_page=2, filters=filters, draft=True, best_sentence=True, units=units)
    answer = search([text], options)[0]
    is_paused = request.args.get("draft") != "typing"
    if is_paused:
        # A word that is found may still be the beginning of another one, which is not a search to be counted.
        is_counted = not relevant_hits(answer) or " " in text
        is_counted &= request.headers.get("Sec-Fetch-Site") == "same-origin"  # otherwise another site could fill the log
        settled = search([text], structs.replace(options, draft=False), context=SearchContext(is_logged=is_counted))[0]
        answer = settled if relevant_hits(settled) or not _has_beginning(answer, text) else answer
    whole, narrower = answer, narrower_query(answer, text) if is_paused else None
    if narrower and relevant_hits(narrowed := search([narrower], options)[0]):
        answer = narrowed
    said = notice(answer, whole, is_filtered=filters != Filters(), narrower=narrower)
    if relevant := relevant_hits(answer):
        lead = _lead(answer)
        if lead and answer.lead and not has("chat-model"):  # a model's answer would replace it
            relevant = [hit for hit in relevant if hit is not answer.results[answer.lead.result]]
        shown = {"label": "Passages", "options": _shown(_passages_of(relevant)), "lead": lead}
        return {**shown, "summary": said, "is_corrected": bool(whole.corrections)}
    return {"nearest": _shown(_passages_of(answer.results)), "summary": said} if is_paused else {}


def _has_beginning(answer: Answer, text: str) -> bool:
    """Return whether a passage has a word that begins with the last word of a text, which may be unfinished."""
    last = text.rsplit(maxsplit=1)[-1].casefold()
    return any(hit.snippet[begin:end].casefold().startswith(last) for hit in answer.results for begin, end in hit.highlights)


def _lead(answer: Answer) -> list[Option]:
    """Return the answer if one passage is enough for it. Its link opens that passage, and browsers highlight the text."""
    if answer.lead is None:
        return []
    hit = answer.results[answer.lead.result].at(answer.lead.unit)
    lines = answer.lead.text.split("\n")
    told: tuple[Line, ...] = (Line("text", (Span(answer.lead.text),)),)
    if answer.lead.unit.items and lines[1:]:
        if hit.kind is None and any("\n" in hit.snippet[slice(*place)] for place in answer.lead.unit.items):
            with suppress(SemanticError):
                hit = structs.replace(hit, markdown=extension().pages.text(hit.path))  # which tells what is code
        items = [
            Line("item", (Span(part),), "" if number else f"{at}." if is_numbered(hit) else "•")
            for at, line in enumerate(lines, 1)
            for number, (part, _) in enumerate(item_parts(line, hit))
        ]
        told = (*items[:_LISTED], *([Line("item", (Span("…"),))] if items[_LISTED:] else ()))
    return _shown(
        [Option("answer", passage_url(hit), (), trail(hit), hit.path, hit.title, hit.anchor, excerpt=told, file=hit.kind)]
    )


def _passages_of(hits: Iterable[Hit]) -> Iterator[Option]:
    """Yield the passages of one page after the other, one for each section.

    A passage is named by its heading or, at the beginning of a page, by the page. Pages with the same title show their folder.
    """
    best: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        best.setdefault((hit.path, hit.anchor), hit)
    found = by_page(best.values())
    titles = Counter(page[0].title for page in found)
    for hit in chain.from_iterable(found):
        (*above, label), folder = trail(hit), hit.path.rpartition("/")[0]
        place = (f"{folder}/", *above) if folder and titles[hit.title] > 1 else tuple(above)
        spans, url, excerpt = tuple(marked_name(hit, label)), passage_url(hit), passage_excerpt(hit)
        similar = is_similar(hit)
        yield Option(
            "passage", url, spans, place, hit.path, hit.title, hit.anchor, excerpt=excerpt, is_similar=similar, file=hit.kind
        )


def _shown(options: Iterable[Option]) -> list[Option]:
    return [option for option in options if option.url]
