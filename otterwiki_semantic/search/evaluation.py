"""Judged queries: read them, run them, and measure a ranking's quality and the significance of a difference.

The command line, the daily evaluation and the check of a new index all call `judge`.

The metrics are recall, precision, reciprocal rank (Voorhees, 1999) and normalised discounted cumulative gain with binary
judgements (Järvelin and Kekäläinen, 2002). The mean difference of two rankings has a paired bootstrap interval (Efron, 1979;
Sakai, 2006).

A judged question may also name the section and the text of its answer. `score_question` compares the passages that a search
shows with these.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from msgspec import structs

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import check_names, unique_names
from otterwiki_semantic.core.records import MAX_RESULTS, Hit, SearchOptions, query_text
from otterwiki_semantic.search.pipeline import SearchResult

CUTOFFS = (1, 5, 10)
GAINS = ("ndcg", "mrr", *(f"recall@{k}" for k in CUTOFFS), *(f"precision@{k}" for k in CUTOFFS))
"""Metrics of each query, by page, at 10 ranks unless named otherwise; 1 is best."""
LOSSES = ("zero", "flagged")
"""Metrics of each query: 1 if there is no result, and 1 if no result is relevant; 0 is best."""
RECALL = "recall@10"
_DEPTH = 10
RANKED_PAGES = SearchOptions(n=2 * _DEPTH, max_chunks_per_page=1, rerank=False)
"""Options for page rankings. More than 10 results, because some pages are excluded from a query's ranking."""
_RESAMPLES, _BATCH = 10_000, 100
_INTERVAL = 0.95

UNANSWERABLE = "unanswerable"
KINDS = ("question", "keywords", "situation", UNANSWERABLE)
"""How a question is phrased: as a sentence, in keywords, or by describing a situation; or that the wiki does not answer it."""
QUESTION_METRICS = ("r1", "r5", "ndcg", "s1", "s5", "a1", "a3", "a5", "labelled", "unit", "silent", "wrongly_silent")
"""Metrics of each question, 0 to 1, or None where they do not apply; 1 is best, except for `wrongly_silent`.

`r1`, `r5`: a relevant page is first, or among the first five. `ndcg`: how early the first relevant page is among ten. `s1`,
`s5`: the first result, or one of five, names the section of the answer. `a1`, `a3`, `a5`: one of the first 1, 3 or 5 results
contains the answer. `labelled`: the first result with the answer names the section. `unit`: the best unit of the first
passage with the answer is the answer. `silent`, `wrongly_silent`: no result is relevant, for unanswerable and for other
questions.
"""
QUESTION_LOSSES = ("wrongly_silent",)
PASSAGES = 5
"""Results that are compared with the answer of a question."""
_METRICS_OF_KINDS = ("r1", "r5", "a5")
_ANSWER_FIELDS = ("page", "section", "answer")
_RUN, _HELD_SHARE = 4, 0.8

Metrics = dict[str, float]
"""The metrics of one query, or their means over several, by name."""
QuestionMetrics = dict[str, float | None]
"""The metrics of one question, or their means over several, by name."""

Ask = Callable[[str, SearchOptions], SearchResult]
"""Runs a query on an index."""
Run = dict[str, Any]
"""``{"name", "metrics", "latency_ms", "queries": [{"query", metric: value, …}, …], "asked": […]}``: the results of one ranking.

A row has `degraded` if its answer was degraded. `asked` has an entry for each query, judged or not: its first ten `pages`,
its latency `ms`, and whether a result was `relevant`. With questions, a run also has
``"questions": {"metrics", "by_kind", "rows": [{"query", "kind", …}, …]}``.
"""
JUDGEMENTS = ("query", "kind", "page", "section", "answer")
"""Fields that a question's row copies from its entry in the query file."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query, the paths of the pages that answer it, and the pages to exclude from its ranking."""

    query: str
    relevant: tuple[str, ...]
    """Empty only if its kind is `UNANSWERABLE`."""
    exclude: tuple[str, ...] = ()
    kind: str = ""
    """One of `KINDS`; empty if only the page ranking is judged."""
    page: str = ""
    """The relevant page with the answer; empty if it may be on any of them."""
    section: str | None = None
    """The nearest heading above the answer; empty if there is none, None if unknown."""
    answer: str = ""
    """A sentence, item or row of the page, verbatim, if known."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The change of a metric's mean, with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether the interval includes zero."""
        return self.low <= 0 <= self.high


def parse_judged_queries(value: object) -> list[JudgedQuery]:
    """Return the entries of a query file's JSON, with unanswerable questions; `ParameterError` names the first invalid one."""
    if not isinstance(value, list) or not value:
        raise ParameterError(
            'the query file has to be a list of {"query": "…", "relevant": ["page", …]}, with at least one entry'
        )
    parsed = [_judged(entry, position) for position, entry in enumerate(value)]
    if not any(judged.relevant for judged in parsed):
        raise ParameterError("the query file names no relevant page; at least one question needs one")
    return parsed


def _judged(entry: object, position: int) -> JudgedQuery:
    where = f"entry {position} of the query file"
    if isinstance(entry, dict):
        check_names(entry, ("query", "relevant", "exclude", "kind", *_ANSWER_FIELDS), f" in {where}")
    if not isinstance(entry, dict) or not isinstance(entry.get("query"), str) or not entry["query"].strip():
        raise ParameterError(f'{where} has no query; it has to be {{"query": "…", "relevant": ["page", …]}}')
    relevant, exclude = (_paths(entry.get(name, []), f"{name} of {where}") for name in ("relevant", "exclude"))
    kind, page, section, answer = (_text(entry.get(name, ""), f"{name} of {where}") for name in ("kind", *_ANSWER_FIELDS))
    where += f" ({entry['query']!r})"
    if kind and kind not in KINDS:
        raise ParameterError(f"the kind of {where} is {kind!r}; allowed are {', '.join(KINDS)}")
    if not kind and (page or section or answer):
        raise ParameterError(f"{where} has a page, section or answer, but no kind; allowed are {', '.join(KINDS)}")
    if kind == UNANSWERABLE and (relevant or page or section or answer):
        raise ParameterError(f"{where} has a page, section or answer, although its kind is {UNANSWERABLE}")
    relevant = tuple(dict.fromkeys((*filter(None, [_key(page)]), *relevant)))
    if not relevant and kind != UNANSWERABLE:
        raise ParameterError(f"{where} names no relevant page")
    if relevant and set(relevant) <= set(exclude):
        raise ParameterError(f"{where} leaves out every relevant page")
    known_section = section if "section" in entry else None
    return JudgedQuery(entry["query"].strip(), relevant, exclude, kind, _key(page), known_section, answer)


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ParameterError(f"{where} has to be a text")
    return value.strip()


def _paths(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(path, str) and _key(path) for path in value):
        raise ParameterError(f"{where} has to be a list of page paths")
    return tuple(dict.fromkeys(_key(path) for path in value))


def _key(path: str) -> str:
    return path.strip().strip("/").removesuffix(".md").casefold()


def answerable(questions: Sequence[JudgedQuery], paths: Iterable[str]) -> list[int]:
    """Return the positions of the questions that one of these pages answers."""
    known = set(map(_key, paths))
    return [position for position, judged in enumerate(questions) if not known.isdisjoint(judged.relevant)]


def fingerprint(questions: Sequence[JudgedQuery]) -> str:
    """Return a hash of judged questions and their order."""
    return hashlib.sha256(repr(list(questions)).encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def score(judged: JudgedQuery, ranking: Iterable[str], *, confident: bool = True) -> Metrics:
    """Return the metrics of one page ranking (paths, best first); repeated paths are ignored."""
    pages = _distinct(judged, ranking)
    ranks = [rank for rank, path in enumerate(pages, 1) if path in judged.relevant]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks if rank <= _DEPTH)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(_DEPTH, len(judged.relevant)) + 1))
    found = {k: sum(rank <= k for rank in ranks) for k in CUTOFFS}
    return {
        "ndcg": gain / ideal,
        "mrr": 1 / ranks[0] if ranks and ranks[0] <= _DEPTH else 0.0,
        **{f"recall@{k}": found[k] / len(judged.relevant) for k in CUTOFFS},
        **{f"precision@{k}": found[k] / k for k in CUTOFFS},
        "zero": float(not pages),
        "flagged": float(not confident),
    }


def _distinct(judged: JudgedQuery, ranking: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(map(_key, ranking)) if path not in judged.exclude]


def holds(text: str, answer: str) -> bool:
    """Return whether a text has at least 80 % of an answer's words, in runs of four or more; all words of a shorter answer."""
    among, words = f" {' '.join(_words(text))} ", _words(answer)
    run = min(_RUN, len(words))
    found: set[int] = set()
    for start in range(len(words) - run + 1):
        if f" {' '.join(words[start : start + run])} " in among:
            found.update(range(start, start + run))
    return bool(words) and len(found) >= _HELD_SHARE * len(words)


def _words(text: str) -> list[str]:
    """Return the words of Markdown or of plain text, without link targets."""
    return re.findall(r"\w+", re.sub(r"\]\([^)]{0,300}\)", "]", text.lower()))


def score_question(
    judged: JudgedQuery, ranking: Iterable[str], hits: Iterable[Hit], marked: Iterable[Hit] = ()
) -> QuestionMetrics:
    """Return the metrics of one question, from a page ranking (see `score`) and the passages that a search shows.

    `marked` are the passages of the same search with `best_sentence`, for `unit`.
    """
    shown = [hit for hit in hits if _key(hit.path) not in judged.exclude][:PASSAGES]
    found: QuestionMetrics = dict.fromkeys(QUESTION_METRICS)
    silent = float(not any(hit.relevant for hit in shown))
    if judged.kind == UNANSWERABLE:
        return found | {"silent": silent}
    found |= page_metrics(judged, ranking) | {"wrongly_silent": silent}
    named = [names_section(judged, hit) for hit in shown]
    held = [has_answer(judged, hit.path, hit.text) for hit in shown]
    if judged.section is not None:
        found |= {"s1": float(any(named[:1])), "s5": float(any(named))}
    if judged.answer:
        found |= {f"a{count}": float(any(held[:count])) for count in (1, 3, 5)}
    if judged.section is not None and any(held):
        found["labelled"] = float(named[held.index(True)])
    units = [hit for hit in marked if _key(hit.path) not in judged.exclude][:PASSAGES]
    if best := next((hit for hit in units if has_answer(judged, hit.path, hit.snippet)), None):
        start, end = best.best_sentence or (0, 0)
        found["unit"] = float(gives_answer(judged, best.path, best.snippet[start:end]))
    return found


def page_metrics(judged: JudgedQuery, ranking: Iterable[str]) -> Metrics:
    """Return `r1`, `r5` and `ndcg` of a question, from a page ranking (see `score`)."""
    pages = _distinct(judged, ranking)
    first = next((rank for rank, path in enumerate(pages, 1) if path in judged.relevant), math.inf)
    gain = 1 / math.log2(first + 1) if first <= _DEPTH else 0.0
    return {"r1": float(first == 1), "r5": float(first <= PASSAGES), "ndcg": gain}


def gives_answer(judged: JudgedQuery, path: str, unit: str) -> bool:
    """Return whether a sentence of a page contains the answer to a question, or is a substantial part of it."""
    is_part = len(_words(unit)) >= _RUN and holds(judged.answer, unit)
    return _is_on_page(judged, path) and (is_part or holds(unit, judged.answer))


def names_section(judged: JudgedQuery, hit: Hit) -> bool:
    """Return whether a result names the page and the section of the answer."""
    return _is_on_page(judged, hit.path) and _words(hit.section) == _words(judged.section or "")


def has_answer(judged: JudgedQuery, path: str, text: str) -> bool:
    """Return whether a text contains the answer to a question and is from the page with the answer."""
    return _is_on_page(judged, path) and holds(text, judged.answer)


def _is_on_page(judged: JudgedQuery, path: str) -> bool:
    return _key(path) in ((judged.page,) if judged.page else judged.relevant)


def question_means(rows: Sequence[Mapping[str, Any]]) -> QuestionMetrics:
    """Return the mean of each metric over the questions to which it applies, or None if there are none."""
    return {metric: mean_of_known(row[metric] for row in rows) for metric in QUESTION_METRICS}


def means_by_kind(rows: Sequence[Mapping[str, Any]]) -> dict[str, QuestionMetrics]:
    """Return the means of some metrics by kind of question, without unanswerable ones."""
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS if kind != UNANSWERABLE}
    return {
        kind: {metric: mean_of_known(row[metric] for row in found) for metric in _METRICS_OF_KINDS}
        for kind, found in of_kind.items()
        if found
    }


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def means(rows: Sequence[Mapping[str, Any]]) -> Metrics:
    """Return the mean of each metric over the queries."""
    return {metric: fmean(row[metric] for row in rows) for metric in (*GAINS, *LOSSES)}


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the 50th, 95th and 99th percentile of the latencies."""
    ordered = sorted(milliseconds)
    return {f"p{share}": ordered[min(len(ordered) - 1, math.ceil(len(ordered) * share / 100) - 1)] for share in (50, 95, 99)}


def difference(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Return the mean difference of two runs over the same queries in the same order, with its bootstrap interval."""
    changes = np.array(after, dtype=float) - np.array(before, dtype=float)
    draw = np.random.default_rng(0)  # fixed seed: the same runs give the same interval
    batch = (_BATCH, len(changes))
    resampled = [changes[draw.integers(len(changes), size=batch)].mean(axis=1) for _ in range(_RESAMPLES // _BATCH)]
    outside = (1 - _INTERVAL) / 2
    low, high = np.quantile(resampled, (outside, 1 - outside))
    return Difference(float(changes.mean()), float(low), float(high))


def read_judged_queries(path: Path) -> list[JudgedQuery]:
    """Return the entries of a query file that name a relevant page; errors as for `read_query_file`."""
    return [judged for judged in read_query_file(path) if judged.relevant]


def read_query_file(path: Path) -> list[JudgedQuery]:
    """Return the entries of a query file, including unanswerable questions; `ParameterError` if a query is invalid."""
    questions = parse_judged_queries(read_json(path))
    for position, judged in enumerate(questions):
        query_text(judged.query, f"the query of entry {position}")
    return questions


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; `ParameterError` if it cannot be read, is not JSON, or repeats a name."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error
    try:
        return json.loads(text, object_pairs_hook=unique_names)
    except ParameterError as error:
        raise ParameterError(f"{path} is ambiguous: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{path} is not JSON: {error}") from error


def judge(
    ask: Ask, queries: Iterable[JudgedQuery], rankings: Mapping[str, SearchOptions], *, only_pages: bool = False
) -> list[Run]:
    """Run every query with the options of every ranking, and return one run per ranking.

    Questions are searched a second time for the passages that a user sees, unless `only_pages`. Raises the errors of `ask`.
    """
    runs: dict[str, Run] = {name: {"queries": [], "asked": [], "questions": []} for name in rankings}
    for judged in queries:
        for name, options in rankings.items():
            ranking = _judge_pages(ask, judged, options, runs[name])
            if judged.kind and not only_pages:
                _judge_passages(ask, judged, options, ranking, runs[name])
    return [_with_means(name, run) for name, run in runs.items()]


def _judge_pages(ask: Ask, judged: JudgedQuery, options: SearchOptions, run: Run) -> list[str]:
    """Search for a query, add the results to a run, and return the paths of the pages in order."""
    start = time.perf_counter()
    found = ask(judged.query, options)
    milliseconds = round(1000 * (time.perf_counter() - start), 3)
    ranking = [hit.path for hit in found.hits]
    pages = list(dict.fromkeys(ranking))[:_DEPTH]
    run["asked"].append({"query": judged.query, "pages": pages, "ms": milliseconds, "relevant": found.confident})
    if judged.relevant:
        facts: dict[str, Any] = {part: getattr(judged, part) for part in ("query", "relevant", "exclude")}
        facts |= {"degraded": found.degraded} if found.degraded else {}
        run["queries"].append(facts | score(judged, ranking, confident=found.confident))
    return ranking


def _judge_passages(ask: Ask, judged: JudgedQuery, options: SearchOptions, ranking: Sequence[str], run: Run) -> None:
    """Search for the passages that a user sees, and add the metrics of their answers to a run."""
    per_page = SearchOptions().max_chunks_per_page
    wanted = min(MAX_RESULTS, PASSAGES + per_page * len(judged.exclude))
    as_shown = structs.replace(options, n=wanted, limit=None, max_chunks_per_page=per_page)
    shown, marked = (ask(judged.query, each).hits for each in (as_shown, structs.replace(as_shown, best_sentence=True)))
    facts = {part: getattr(judged, part) for part in JUDGEMENTS}
    run["questions"].append(facts | score_question(judged, ranking, shown, marked))


def _with_means(name: str, run: Run) -> Run:
    rows, questions = run["queries"], run.pop("questions")
    latencies = percentiles([row["ms"] for row in run["asked"]])
    whole = {"name": name, "metrics": means(rows) if rows else {}, "latency_ms": latencies, **run}
    if questions:
        whole["questions"] = {"metrics": question_means(questions), "by_kind": means_by_kind(questions), "rows": questions}
    return whole


def overlap(pages: Sequence[str], others: Sequence[str]) -> float:
    """Return the share of pages that two answers have in common; 1 if both are empty."""
    longest = max(len(pages), len(others))
    return len({*pages} & {*others}) / longest if longest else 1.0
