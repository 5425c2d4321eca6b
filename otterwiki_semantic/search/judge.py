"""Ask judged queries of an index and return figures.

The command line, the daily evaluation and the check of a new index all call `judge`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from otterwiki_semantic.core.records import MAX_RESULTS, SearchOptions
from otterwiki_semantic.search.evaluation import (
    PASSAGES,
    JudgedQuery,
    means,
    means_by_kind,
    percentiles,
    question_means,
    score,
    score_question,
)
from otterwiki_semantic.search.pipeline import SearchResult

Ask = Callable[[str, SearchOptions], SearchResult]
"""Searches an index for a query."""
Run = dict[str, Any]
"""``{"name", "metrics", "latency_ms", "queries": [{"query", metric: value, …}, …], "asked": […]}``: the figures of one ranking.

A row has `degraded` if its answer was. `asked` has for every query, judged or not, its first ten `pages`, its latency `ms`, and
whether a result was `relevant`. With questions: ``"questions": {"metrics", "by_kind", "rows": [{"query", "kind", …}, …]}``.
"""
JUDGEMENTS = ("query", "kind", "page", "section", "answer")
"""What a question's row repeats of its entry in the query file."""
_FIRST_PAGES = 10
_MAX_LOSS = 0.1


class Figures(NamedTuple):
    """What decides whether an index may serve: means over the judged queries, 0 to 1."""

    recall: float
    """Recall@10 of hybrid searches."""
    semantic_recall: float | None
    """Recall@10 of searches by meaning alone; None: the model of the index is not available."""
    mrr: float
    """Mean reciprocal rank of hybrid searches."""


_NAMES = Figures("recall@10", "recall@10 by meaning alone", "MRR")  # type: ignore[arg-type]


def judge(
    ask: Ask, queries: Iterable[JudgedQuery], rankings: Mapping[str, SearchOptions], *, only_pages: bool = False
) -> list[Run]:
    """Search for every query with the options of every ranking, and return the run of each ranking.

    For a question, search again for the passages that a user sees, unless `only_pages` are judged. Errors: those of `ask`.
    """
    runs: dict[str, Run] = {name: {"queries": [], "asked": [], "questions": []} for name in rankings}
    for judged in queries:
        for name, options in rankings.items():
            ranking = _judge_pages(ask, judged, options, runs[name])
            if judged.kind and not only_pages:
                _judge_passages(ask, judged, options, ranking, runs[name])
    return [_with_means(name, run) for name, run in runs.items()]


def _judge_pages(ask: Ask, judged: JudgedQuery, options: SearchOptions, run: Run) -> list[str]:
    """Search for a query, add what is found to a run, and return the paths of the pages in their order."""
    start = time.perf_counter()
    found = ask(judged.query, options)
    seconds = time.perf_counter() - start
    ranking = [hit.path for hit in found.hits]
    pages = list(dict.fromkeys(ranking))[:_FIRST_PAGES]
    run["asked"].append({"query": judged.query, "pages": pages, "ms": round(1000 * seconds, 3), "relevant": found.confident})
    if judged.relevant:
        facts: dict[str, Any] = {part: getattr(judged, part) for part in ("query", "relevant", "exclude")}
        facts |= {"degraded": found.degraded} if found.degraded else {}
        run["queries"].append(facts | score(judged, ranking, confident=found.confident))
    return ranking


def _judge_passages(ask: Ask, judged: JudgedQuery, options: SearchOptions, ranking: Sequence[str], run: Run) -> None:
    """Search for the passages that a user sees, and add to a run how they answer a question."""
    as_shown = _as_shown(options, judged)
    shown, marked = (ask(judged.query, each).hits for each in (as_shown, structs.replace(as_shown, best_sentence=True)))
    facts = {part: getattr(judged, part) for part in JUDGEMENTS}
    run["questions"].append(facts | score_question(judged, ranking, shown, marked))


def _as_shown(options: SearchOptions, judged: JudgedQuery) -> SearchOptions:
    """Return the options of a search by default, with enough results to leave out excluded pages."""
    default = SearchOptions()
    per_page = default.max_chunks_per_page
    wanted = min(MAX_RESULTS, PASSAGES + per_page * len(judged.exclude))
    return structs.replace(options, n=wanted, limit=None, max_chunks_per_page=per_page)


def _with_means(name: str, run: Run) -> Run:
    rows, questions = run["queries"], run.pop("questions")
    latencies = percentiles([row["ms"] for row in run["asked"]])
    whole = {"name": name, "metrics": means(rows) if rows else {}, "latency_ms": latencies, **run}
    if questions:
        of_questions = {"metrics": question_means(questions), "by_kind": means_by_kind(questions), "rows": questions}
        whole["questions"] = of_questions
    return whole


def overlap(pages: Sequence[str], others: Sequence[str]) -> float:
    """Return the share of the first pages that two answers have in common; 1 if both have none."""
    longest = max(len(pages), len(others))
    return len({*pages} & {*others}) / longest if longest else 1.0


def fall(before: Figures, after: Figures) -> str | None:
    """Return which figure fell by more than a tenth, with both values; None if none did or it is not known."""
    for name, old, new in zip(_NAMES, before, after, strict=True):
        if old is not None and new is not None and new < old * (1 - _MAX_LOSS):
            return f"{name} of judged queries is {new:.3f}, and was {old:.3f}"
    return None
