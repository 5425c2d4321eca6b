"""The view of an answer: passages by page with links and explanations, and filters with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from otterwiki_semantic.core.records import Answer, Explanation, Freshness, Hit
from otterwiki_semantic.web.pages.excerpts import Span, excerpt, text_fragment
from otterwiki_semantic.web.pages.layout import page_url, pages

FILTERS = ("category", "tag", "path", "type")
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
class Chip:
    """A filter that is active or offered."""

    name: str
    value: str
    count: int | None
    """Number of pages with this value."""
    is_on: bool


def results_view(answer: Answer, chosen: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the values of the template; `chosen` are the names and values of active filters.

    `found` and `misses` are pages with their passages, best first; the misses are near, but not relevant.
    """
    relevant = [hit for hit in answer.results if hit.relevant]
    found, misses = _by_page(relevant), _by_page(hit for hit in answer.results if not hit.relevant)
    chips = _chips(answer, chosen)
    shown = [chip for chip in chips if chip.is_on or (chip.count or 0) < len(found)]  # others would not narrow it down
    return {"found": found, "misses": misses, "chips": shown, "summary": _summary(len(relevant), len(found), answer.index)}


def _summary(passages: int, pages: int, index: Freshness) -> str:
    if not passages:
        is_behind = index.commit is None or index.pending_pages
        return "Nothing relevant was found yet." if is_behind else "Nothing relevant was found."
    return f"{passages} passage{'s' * (passages > 1)} on {pages} page{'s' * (pages > 1)}"


def _by_page(hits: Iterable[Hit]) -> list[list[Hit]]:
    by_path: dict[str, list[Hit]] = {}
    for hit in hits:
        by_path.setdefault(hit.path, []).append(hit)
    return list(by_path.values())


@pages.app_template_global("semantic_passage_url")
def passage_url(hit: Hit) -> str | None:
    """Return the URL of a passage, which browsers mark; None if the wiki cannot show its page."""
    url = page_url(hit.path, hit.anchor, hit.kind)
    if hit.kind:
        return url
    directive = text_fragment(hit.snippet, own_start(hit), hit.highlights, hit.best_sentence)
    return url and f"{url}{'' if hit.anchor or not directive else '#'}{directive}"


@pages.app_template_global("semantic_excerpt")
def passage_excerpt(hit: Hit) -> tuple[Span, ...]:
    """Return the excerpt of a passage."""
    return excerpt(hit.snippet, own_start(hit), hit.highlights, hit.best_sentence)


def own_start(hit: Hit) -> int:
    """Return where the passage's own text begins in its snippet."""
    return hit.prefix_length + hit.overlap_length


def trail(hit: Hit) -> tuple[str, ...]:
    """Return the headings above a passage, without the title of its page."""
    return hit.section_path[1:]


@pages.app_template_global("semantic_reasons")
def reasons(hit: Hit) -> tuple[str, ...]:
    """Return why a passage has its place; empty without its explanation."""
    why = hit.explain
    if why is None:
        return ()
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


def _chips(answer: Answer, chosen: Sequence[tuple[str, str]]) -> list[Chip]:
    """Return the active filters, then those of the relevant pages."""
    taken = {(name, value.casefold()) for name, value in chosen}
    single = {name for name, _ in chosen if name != "tag"}
    irrelevant = _irrelevant(answer.results)
    chips = [Chip(name, value, None, is_on=True) for name, value in chosen]
    for name in FILTERS:
        facets: dict[str, int] = getattr(answer.facets, name) if answer.facets and name not in single else {}
        counts = Counter({value: count - irrelevant[name, value.casefold()] for value, count in facets.items()})
        offered = [each for each in counts.most_common() if each[1] > 0 and (name, each[0].casefold()) not in taken]
        chips += [Chip(name, value, count, is_on=False) for value, count in offered[:_MAX_CHIPS]]
    return chips


def _irrelevant(hits: Sequence[Hit]) -> Counter[tuple[str, str]]:
    """Count the irrelevant pages that are included in the facets, by filter and value."""
    relevant = {hit.path for hit in hits if hit.relevant}
    near = {hit.path: hit for hit in hits if hit.path not in relevant}
    found: Counter[tuple[str, str]] = Counter()
    for hit in near.values():
        folder, _, rest = hit.path.partition("/")
        found.update(("tag", tag.casefold()) for tag in hit.tags)
        found.update([("category", (hit.category or "").casefold()), ("path", f"{folder}/".casefold() if rest else "")])
        found["type", hit.kind or "page"] += 1
    return found
