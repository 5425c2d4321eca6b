"""How good a ranking is, against questions whose answers are known; and whether a difference is more than noise.

Recall, precision, reciprocal rank (Voorhees, 1999) and normalised discounted cumulative gain with binary judgements (Järvelin
and Kekäläinen, 2002); the mean difference of two rankings with a paired bootstrap interval (Efron, 1979; Sakai, 2006).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameters import QueryText, check_names, unique_names
from otterwiki_semantic.core.records import SearchOptions

CUTOFFS = (1, 5, 10)
GAINS = ("ndcg", "mrr", *(f"recall@{k}" for k in CUTOFFS), *(f"precision@{k}" for k in CUTOFFS))
"""Of each query, by page, at 10 ranks unless named otherwise; 1 is best."""
LOSSES = ("zero", "flagged")
"""Of each query: 1 if there is no result, and 1 if none counts as relevant; 0 is best."""
RECALL = "recall@10"
_DEPTH = 10
RANKED_PAGES = SearchOptions(n=2 * _DEPTH, max_chunks_per_page=1, rerank=False)
"""Ranks pages for these metrics: some of them are left out of a query's ranking."""
_RESAMPLES = 10_000
_INTERVAL = 0.95

Metrics = dict[str, float]
"""The metrics of one query, or their means over several, by name."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A question, the paths of the pages that answer it, and those that are left out of its ranking."""

    query: str
    relevant: tuple[str, ...]
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """How much a metric's mean changed, and the interval that holds the true change with a chance of 95 %."""

    mean: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether no change at all is among the likely ones."""
        return self.low <= 0 <= self.high


def parse_judged_queries(value: object) -> list[JudgedQuery]:
    """Return the judged questions of a query file's JSON; `ParameterError` names the first invalid entry."""
    if not isinstance(value, list) or not value:
        raise ParameterError(
            'the query file has to be a list of {"query": "…", "relevant": ["page", …]}, with at least one entry'
        )
    return [_judged(entry, position) for position, entry in enumerate(value)]


def _judged(entry: object, position: int) -> JudgedQuery:
    where = f"entry {position} of the query file"
    if isinstance(entry, dict):
        check_names(entry, ("query", "relevant", "exclude"), f" in {where}")
    if not isinstance(entry, dict) or not isinstance(entry.get("query"), str) or not entry["query"].strip():
        raise ParameterError(f'{where} has no query; it has to be {{"query": "…", "relevant": ["page", …]}}')
    relevant, exclude = (_paths(entry.get(name, []), f"{name} of {where}") for name in ("relevant", "exclude"))
    if not relevant:
        raise ParameterError(f"{where} ({entry['query']!r}) names no relevant page")
    if set(relevant) <= set(exclude):
        raise ParameterError(f"{where} ({entry['query']!r}) leaves out every relevant page")
    return JudgedQuery(entry["query"].strip(), relevant, exclude)


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
    """Return what identifies judged questions, in their order."""
    return hashlib.sha256(repr(list(questions)).encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def score(judged: JudgedQuery, ranking: Iterable[str], *, confident: bool = True) -> Metrics:
    """Return the metrics of one ranking of pages (their paths, best first); a path that comes again does not count."""
    pages = [path for path in dict.fromkeys(map(_key, ranking)) if path not in judged.exclude]
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


def means(rows: Sequence[Mapping[str, Any]]) -> Metrics:
    """Return the mean of each metric over the queries."""
    return {metric: fmean(row[metric] for row in rows) for metric in (*GAINS, *LOSSES)}


def percentiles(milliseconds: Sequence[float]) -> dict[str, float]:
    """Return the latencies that half, 95 % and 99 % of the queries do not exceed."""
    ordered = sorted(milliseconds)
    return {f"p{share}": ordered[min(len(ordered) - 1, math.ceil(len(ordered) * share / 100) - 1)] for share in (50, 95, 99)}


def difference(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Return the mean difference of two runs over the same queries, in the same order, with its bootstrap interval."""
    changes = np.array(after, dtype=float) - np.array(before, dtype=float)
    draw = np.random.default_rng(0)  # the same runs always give the same interval
    resampled = [changes[draw.integers(len(changes), size=len(changes))].mean() for _ in range(_RESAMPLES)]
    outside = (1 - _INTERVAL) / 2
    low, high = np.quantile(resampled, (outside, 1 - outside))
    return Difference(float(changes.mean()), float(low), float(high))


def read_judged_queries(path: Path) -> list[JudgedQuery]:
    """Return the judged questions of a file; `ParameterError` if it holds none, or one that cannot be asked."""
    questions = parse_judged_queries(read_json(path))
    for position, judged in enumerate(questions):
        QueryText().parse(judged.query, f"the query of entry {position}")
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
