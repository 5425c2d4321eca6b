"""The view of an answer: passages by page with links and explanations, and filters with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from otterwiki_semantic.core.records import Answer, Explanation, Freshness, Hit
from otterwiki_semantic.web.pages.excerpts import Span, excerpt, text_fragment
from otterwiki_semantic.web.pages.layout import page_url

FILTERS = ("category", "tag", "path")
_MAX_CHIPS = 6
_RULES = {
    "score": "by its score",
    "exact title": "the page has this title",
    "pinned answer": "its front matter says that it answers this question",
    "reranker": "by the reranker",
    "updated": "by the last change of its page",
    "diversity": "it differs from the results above",
}


@dataclass(frozen=True, slots=True)
class PassageView:
    """A passage, and why it was found."""

    url: str | None
    trail: tuple[str, ...]
    """The headings above it, without the title of the page."""
    anchor: str
    """The id of the last of them."""
    spans: tuple[Span, ...]
    lines: str
    """Those of the page's file."""
    reasons: tuple[str, ...]
    also_on: tuple[tuple[str, str | None], ...]
    """Paths and URLs of other pages with nearly the same passage."""


@dataclass(frozen=True, slots=True)
class PageResults:
    """A page with its passages, best first."""

    title: str
    path: str
    url: str | None
    """None if the wiki cannot show it."""
    updated: str | None
    passages: tuple[PassageView, ...]


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter that is active or offered."""

    name: str
    value: str
    count: int | None
    """Number of pages with this value."""
    is_on: bool


@dataclass(frozen=True, slots=True)
class ResultsView:
    """What the search page shows of an answer."""

    pages: tuple[PageResults, ...]
    misses: tuple[PageResults, ...]
    """Pages that are near, but not relevant."""
    chips: tuple[Chip, ...]
    summary: str


def results_view(answer: Answer, chosen: Sequence[tuple[str, str]]) -> ResultsView:
    """Return the view of an answer; `chosen` are the names and values of active filters."""
    relevant = [hit for hit in answer.results if hit.relevant]
    others = [hit for hit in answer.results if not hit.relevant]
    pages, misses = _by_page(relevant), _by_page(others)
    chips = _chips(answer, chosen)
    shown = tuple(chip for chip in chips if chip.is_on or (chip.count or 0) < len(pages))  # others would not narrow it down
    return ResultsView(pages, misses, shown, _summary(len(relevant), len(pages), answer.index))


def _summary(passages: int, pages: int, index: Freshness) -> str:
    if not passages:
        is_behind = index.commit is None or index.pending_pages
        return "Nothing relevant was found yet." if is_behind else "Nothing relevant was found."
    return f"{passages} passage{'s' * (passages > 1)} on {pages} page{'s' * (pages > 1)}"


def _by_page(hits: Iterable[Hit]) -> tuple[PageResults, ...]:
    by_path: dict[str, list[Hit]] = {}
    for hit in hits:
        by_path.setdefault(hit.path, []).append(hit)
    return tuple(
        PageResults(
            title=group[0].title,
            path=path,
            url=page_url(path, ""),
            updated=group[0].updated and group[0].updated[:10],
            passages=tuple(map(_passage, group)),
        )
        for path, group in by_path.items()
    )


def passage_url(hit: Hit) -> str | None:
    """Return the URL of a passage, which browsers mark; None if the wiki cannot show its page."""
    url = page_url(hit.path, hit.anchor)
    directive = text_fragment(hit.snippet, own_start(hit), hit.highlights, hit.best_sentence)
    return url and f"{url}{'' if hit.anchor or not directive else '#'}{directive}"


def own_start(hit: Hit) -> int:
    """Return where the passage's own text begins in its snippet."""
    return hit.prefix_length + hit.overlap_length


def trail(hit: Hit) -> tuple[str, ...]:
    """Return the headings above a passage, without the title of its page."""
    return hit.section_path[1:]


def _passage(hit: Hit) -> PassageView:
    return PassageView(
        url=passage_url(hit),
        trail=trail(hit),
        anchor=hit.anchor,
        spans=excerpt(hit.snippet, own_start(hit), hit.highlights, hit.best_sentence),
        lines=f"{hit.start_line}-{hit.end_line}",
        reasons=_reasons(hit, hit.explain) if hit.explain else (),
        also_on=tuple((path, page_url(path, "")) for path in hit.also_on),
    )


def _reasons(hit: Hit, why: Explanation) -> tuple[str, ...]:
    return (
        f"Placed {_RULES.get(why.rule, why.rule)}.",
        _meaning(why),
        _words(why),
        _score(why),
        f"It is {abs(why.relevance):.2f} {'above' if why.relevance >= 0 else 'below'} what counts as relevant.",
        f"Lines {hit.start_line} to {hit.end_line}, passage {hit.chunk_index + 1} of {hit.total_chunks} of the page.",
    )


def _meaning(why: Explanation) -> str:
    if why.semantic.score is None:
        return "Meaning: not compared."
    place = f", the {_ordinal(why.semantic.rank)} nearest" if why.semantic.rank else ""
    return f"Meaning: similarity {why.semantic.score:.2f} of 1{place}."


def _words(why: Explanation) -> str:
    if not why.keyword.rank:
        return "Words: none of the best matches."
    score = f" (BM25 {why.keyword.score:.1f})" if why.keyword.score is not None else ""
    return f"Words: the {_ordinal(why.keyword.rank)} best match{score}, {why.coverage:.0%} of the question's words by weight."


def _score(why: Explanation) -> str:
    parts = (
        (why.page_credit, "the rest of the page"),
        (why.names, "names"),
        (why.links, "links from other pages"),
        (why.recency, "the date of its last change"),
    )
    more = [f"{points:.2f} for {what}" for points, what in parts if points]
    return f"Score {', plus '.join((f'{why.fused:.2f} from both', *more))}."


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _chips(answer: Answer, chosen: Sequence[tuple[str, str]]) -> tuple[Chip, ...]:
    """Return the active filters, then those of the relevant pages."""
    taken = {(name, value.casefold()) for name, value in chosen}
    single = {name for name, _ in chosen if name != "tag"}
    irrelevant = _irrelevant(answer.results)
    chips = [Chip(name, value, None, is_on=True) for name, value in chosen]
    for name in FILTERS:
        facets: dict[str, int] = getattr(answer.facets, name) if answer.facets and name not in single else {}
        counts = {value: count - irrelevant[name, value.casefold()] for value, count in facets.items()}
        rest = [value for value, count in counts.items() if count > 0 and (name, value.casefold()) not in taken]
        best = sorted(rest, key=lambda value: -counts[value])[:_MAX_CHIPS]
        chips += [Chip(name, value, counts[value], is_on=False) for value in best]
    return tuple(chips)


def _irrelevant(hits: Sequence[Hit]) -> Counter[tuple[str, str]]:
    """Count the irrelevant pages that are included in the facets, by filter and value."""
    relevant = {hit.path for hit in hits if hit.relevant}
    near = {hit.path: hit for hit in hits if hit.path not in relevant}
    found: Counter[tuple[str, str]] = Counter()
    for hit in near.values():
        folder, _, rest = hit.path.partition("/")
        found.update(("tag", tag.casefold()) for tag in hit.tags)
        found.update([("category", (hit.category or "").casefold()), ("path", f"{folder}/".casefold() if rest else "")])
    return found
