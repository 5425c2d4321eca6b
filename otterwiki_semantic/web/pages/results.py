"""The view of an answer: passages by page with links and reasons, and menus of filters with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, chain
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from otterwiki_semantic.content.analysis import function_words, sentence_ranges
from otterwiki_semantic.core.humanize import count, day
from otterwiki_semantic.core.records import Answer, Hit, SuggestedLabel, cited_title
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.excerpts import Line, Span, excerpt, text_fragment
from otterwiki_semantic.web.pages.layout import page_url, pages

_MAX_CHOICES = 20
FILTERS = {"path": "Folder", "tag": "Tag", "updated_since": "Changed", "category": "Category", "type": "Kind"}
"""Filters in the words of the page."""
_PUNCTUATION = "\"'“”.,:;?!"
_MOST_REASONS = 2
_AGES = ((7, "past week"), (30, "past month"), (365, "past year"))
"""Days since a change, and the name of the period."""
_ALL = 0.99
"""Share of a query's words, by their weight, above which none is missing."""
_NAMED_WORDS = 3
_RANKS = {1: "closest in meaning", 2: "2nd closest in meaning", 3: "3rd closest in meaning"}
_RULES = {
    "exact title": "title matches",
    "pinned answer": "pinned to this question",
    "reranker": "moved by the reranker",
    "updated": "sorted by date",
    "diversity": "adds to those above",
}


class Choice(NamedTuple):
    """An entry of a menu."""

    value: str
    text: str
    is_chosen: bool = False


class Menu(NamedTuple):
    """A parameter of the search, and the values to choose from."""

    name: str
    label: str
    choices: Sequence[Choice]
    others: Sequence[str] = ()
    """Other values of the parameter, which stay when this one is removed."""


def results_view(answer: Answer, whole: Answer, *, is_filtered: bool, narrower: str | None = None) -> dict[str, Any]:
    """Return the values of the template: `found` and, not relevant, `misses` are pages with their passages, best first.

    With `narrower`, this part of the query was searched for because nothing in the answer to the `whole` query was about it.
    """
    relevant = relevant_hits(answer)
    paths = {hit.path for hit in relevant}
    found, misses = by_page(relevant), by_page(hit for hit in answer.results if hit.path not in paths)
    is_cut = answer.total_hits.relation == "gte" and 0 < len(relevant) == len(answer.results)
    counted = f"{'The best ' if is_cut else ''}{count(len(relevant), 'passage')} on {count(len(found), 'page')}"
    said = notice(answer, whole, is_filtered=is_filtered, narrower=narrower), counted if relevant else ""
    return {"found": found, "misses": misses, "summary": " ".join(filter(None, said)), "narrower": narrower}


def relevant_hits(answer: Answer) -> list[Hit]:
    """Return the results that are about the query."""
    return [hit for hit in answer.results if hit.relevant]


@pages.app_template_global("semantic_is_similar")
def is_similar(hit: Hit) -> bool:
    """Return whether a relevant passage has none of the words of the query."""
    return hit.relevant and not hit.highlights


def notice(answer: Answer, whole: Answer, *, is_filtered: bool, narrower: str | None = None) -> str:
    """Return what is said above results: the corrected words that were searched for, too, and that nothing fits the query.

    For `whole` and `narrower` see `results_view`.
    """
    relevant = relevant_hits(answer)
    narrower = narrower if relevant else None
    corrected = [f"“{each.corrected}”" for each in whole.corrections if each.corrected not in (narrower or "").split()]
    said = [f"Also searched for {', '.join(corrected)}."] if corrected else []
    if narrower or not relevant:
        said.append(_nothing_found(answer, is_filtered, narrower))
    return " ".join(said)


def _nothing_found(answer: Answer, is_filtered: bool, narrower: str | None) -> str:
    is_behind = answer.index.commit is None or answer.index.pending_pages
    where = " indexed so far" if is_behind else " with these filters" if is_filtered else ""
    if narrower:
        return f"Nothing{where} matches all the words. Results for “{narrower}”:"
    return f"Nothing{where or ' in this wiki'} seems to be about this."


def narrower_query(answer: Answer, query: str) -> str | None:
    """Return the part of a query that finds something if the whole query finds nothing relevant.

    These are the words of the first passage with any, if they are at least half of the query, and not all of it.
    """
    if relevant_hits(answer):
        return None
    corrected = {each.typed: each.corrected for each in answer.corrections}
    words = [corrected.get(word.casefold().strip(_PUNCTUATION), word) for word in query.split() if not is_function_word(word)]
    for hit in answer.results:
        matched = {hit.snippet[slice(*each)].casefold() for each in hit.highlights}
        if kept := [word for word in words if word.casefold().strip(_PUNCTUATION) in matched]:
            return " ".join(kept) if len(words) <= 2 * len(kept) < 2 * len(words) else None
    return None


def is_function_word(word: str) -> bool:
    """Return whether a word, such as "the", has no meaning of its own in a language of the wiki."""
    return any(word.casefold() in function_words(each) for each in extension().settings.languages)


H = TypeVar("H", Hit, SuggestedLabel)


def by_page(hits: Iterable[H]) -> list[list[H]]:
    """Return hits by page, in the order of the first hit of each. Hits of an attached file are together, on its page."""
    by_path: dict[str, dict[str, list[H]]] = {}
    for hit in hits:
        page = hit.attached_to if isinstance(hit, Hit) else None
        by_path.setdefault(page or hit.path, {}).setdefault(hit.path, []).append(hit)
    return [list(chain.from_iterable(page.values())) for page in by_path.values()]


@pages.app_template_global("semantic_passage_url")
def passage_url(hit: Hit) -> str | None:
    """Return the URL of a passage, which browsers highlight; None if the wiki cannot show its page."""
    url = page_url(hit.path, hit.anchor, hit.kind)
    if hit.kind:
        return url
    directive = text_fragment(*_excerpted(hit))
    return url and f"{url}{'' if hit.anchor or not directive else '#'}{directive}"


@pages.app_template_global("semantic_excerpt")
def passage_excerpt(hit: Hit) -> tuple[Line, ...]:
    """Return the excerpt of a passage."""
    return excerpt(*_excerpted(hit))


def _excerpted(hit: Hit) -> tuple[str, int, Sequence[tuple[int, int]], tuple[int, int] | None]:
    """Return a passage up to the end of the section that answers best, where this section begins, and what matches."""
    text, start, best = hit.snippet, hit.prefix_length + hit.overlap_length, hit.best_sentence
    lines = text[start:].split("\n")
    starts = accumulate((len(line) + 1 for line in lines), initial=start)
    headings = [(first, first + len(line)) for first, line in zip(starts, lines, strict=False) if line and line in hit.headings]
    place = best[0] if best else next((end for first, end in headings if text[first:end] == hit.section), start)
    first, begin = max((each for each in headings if each[1] <= place), default=(start, start))
    end = min((first for first, _ in headings if first > place), default=len(text))
    if not text[begin:end].strip():  # a passage of headings only
        first, begin, end = start, start, len(text)
    shown = [each for each in hit.highlights if each[0] < start or first <= each[0] < end]
    return text[:end], begin, shown, _with_a_match(hit, text[:end], begin, best) if best else None


def _with_a_match(hit: Hit, text: str, begin: int, best: tuple[int, int]) -> tuple[int, int]:
    """Return the best sentence; if all that matches is one word, which is elsewhere, the first sentence with it."""
    matched = {text[slice(*each)].casefold() for each in hit.highlights if each[0] < len(text)}
    match = next((at for at, _ in hit.highlights if begin <= at < len(text)), None)
    has_match = any(best[0] <= at < best[1] for at, _ in hit.highlights)
    if match is None or has_match or not all(min(matched, key=len) in each for each in matched):
        return best
    return next((each for each in sentence_ranges(text, begin) if each[0] <= match < each[1]), best)


def trail(hit: Hit) -> tuple[str, ...]:
    """Return the title of a passage's page, or the name of its file with the page in it, and the headings above the passage."""
    return (cited_title(hit.title, hit.kind, hit.page_number), *hit.section_path[1:])


@pages.app_template_global("semantic_section")
def section_trail(hit: Hit, before: Hit | None = None) -> tuple[str, ...]:
    """Return the headings above a passage, with a file's name; nothing if the passage `before` it on the page has the same."""
    names = trail(hit)
    if before and names == trail(before):
        return ()
    return names if hit.kind else names[1:]


@pages.app_template_filter("semantic_short")
def short_trail(names: Sequence[str]) -> Sequence[str]:
    """Return the first and the last of more than three names, with an ellipsis between them."""
    return (names[0], "…", names[-1]) if len(names) > 3 else names


@pages.app_template_filter("semantic_short_path")
def short_path(path: str) -> str:
    """Return the path of a page, or of a folder with a slash at its end, without the names between the first and the last."""
    return "/".join(short_trail(path.removesuffix("/").split("/"))) + "/" * path.endswith("/")


@pages.app_template_global("semantic_marked")
def marked_name(hit: Hit, name: str) -> Iterator[Span]:
    """Yield a title or heading of a passage in parts, with its words that match."""
    start, at = hit.snippet.find(name), 0
    for begin, end in hit.highlights:
        if 0 <= start <= begin and end <= start + len(name):
            yield from (Span(name[at : begin - start]), Span(hit.snippet[begin:end], is_match=True))
            at = end - start
    yield Span(name[at:])


@pages.app_template_global("semantic_reasons")
def reasons(hit: Hit, query: str) -> tuple[str, ...]:
    """Return the two main reasons for the rank of a passage among the results of a query; none without its explanation."""
    why = hit.explain
    if why is None:
        return ()
    matched: dict[str, str] = {}
    for start, end in hit.highlights:
        matched.setdefault(hit.snippet[start:end].casefold(), hit.snippet[start:end])
    named = ", ".join(f"“{word}”" for word in list(matched.values())[:_NAMED_WORDS])
    contained = "contains all words" if why.coverage >= _ALL else f"contains {named or 'some words'}"
    known = (
        _RULES.get(why.rule),
        f"words in {_place_of_names(hit)}" if why.names and why.rule != "exact title" else None,
        ("contains the word" if len(query.split()) == 1 else contained) if why.keyword.rank else None,
        _RANKS.get(rank, "similar meaning") if (rank := why.semantic.rank) else None,
        "the whole page fits" if why.page_credit else None,
        "many pages link here" if why.links else None,
        "changed recently" if why.recency else None,
    )
    return tuple(filter(None, known))[:_MOST_REASONS]


def _place_of_names(hit: Hit) -> str:
    headings = " ".join({*hit.section_path[1:], *hit.headings} - {hit.title}).casefold()
    is_heading = any(hit.snippet[begin:end].casefold() in headings for begin, end in hit.highlights)
    return "a heading" if is_heading else "the page title"


def filter_menus(
    answer: Answer | None, chosen: Sequence[tuple[str, str]], without: Mapping[tuple[str, str], Answer] = MappingProxyType({})
) -> list[Menu]:
    """Return a menu for each filter in use, and for each that can narrow the results. Only tags can be set more than once.

    `without` has the answers without one of the `chosen` filters, which offer its other values.
    """
    menus = []
    for name, label in FILTERS.items():
        values = [value for each, value in chosen if each == name]
        for value in values:
            others = _offered(without[name, value], name, values) if (name, value) in without else []
            choices = Choice("", label), Choice(value, filter_name(name, value), is_chosen=True), *others
            menus.append(Menu(name, label, choices, [other for other in values if other != value]))
        if (not values or name == "tag") and answer and (offered := _offered(answer, name, values)):
            menus.append(Menu(name, label, (Choice("", label), *offered)))
    return menus


def filter_name(name: str, value: str) -> str:
    """Return a filter that is in use, in words."""
    if name == "updated_since":
        value = next((period for start, period in _periods() if start == value), f"since {_day_of(value)}")
    return f"{FILTERS[name]}: {value}"


def _offered(answer: Answer, name: str, taken: Sequence[str]) -> list[Choice]:
    if name == "updated_since":
        return [each for each in _ages(answer) if each.value not in taken]
    return [Choice(value, f"{value} ({n})") for value, n in _narrowing(answer, name, taken)]


def _day_of(value: str) -> str:
    try:
        return day(date.fromisoformat(value))
    except ValueError:  # a time, or an invalid value
        return value


def _narrowing(answer: Answer, name: str, taken: Sequence[str]) -> list[tuple[str, int]]:
    """Return values of a filter with the number of relevant pages that pass, if these are not all."""
    relevant = {hit.path for hit in relevant_hits(answer)}
    irrelevant = _irrelevant(answer.results)
    facets: dict[str, int] = getattr(answer.facets, name) if answer.facets else {}
    counts = Counter({value: count - irrelevant[name, value.casefold()] for value, count in facets.items()})
    known = {value.casefold() for value in taken}
    offered = [(value, count) for value, count in counts.most_common() if value.casefold() not in known]
    return [each for each in offered if 0 < each[1] < len(relevant)][:_MAX_CHOICES]


def _ages(answer: Answer) -> list[Choice]:
    """Return the ages for which some of the relevant pages remain, but not all."""
    dates = {hit.path: hit.updated[:10] for hit in relevant_hits(answer) if hit.updated}
    kept = [(start, period, sum(at >= start for at in dates.values())) for start, period in _periods()]
    return [Choice(start, period.capitalize()) for start, period, count in kept if 0 < count < len(dates)]


def _periods() -> list[tuple[str, str]]:
    """Return the first day of each period, and its name."""
    today = datetime.now(UTC).date()
    return [((today - timedelta(days=days)).isoformat(), name) for days, name in _AGES]


def _irrelevant(hits: Sequence[Hit]) -> Counter[tuple[str, str]]:
    """Count the irrelevant pages that are included in the facets, by filter and value."""
    relevant = {hit.path for hit in hits if hit.relevant}
    near = {hit.path: hit for hit in hits if hit.path not in relevant}
    found: Counter[tuple[str, str]] = Counter()
    for hit in near.values():
        folders = accumulate(hit.path.split("/")[:-1], "{}/{}".format)
        found.update(("path", f"{folder}/".casefold()) for folder in folders)
        found.update(("tag", tag.casefold()) for tag in hit.tags)
        found.update([("category", (hit.category or "").casefold()), ("type", hit.kind or "page")])
    return found
