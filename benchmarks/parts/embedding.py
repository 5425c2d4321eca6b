"""The bundled model's speed, against sentence-transformers with the same weights, and against what the processor can do."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from benchmarks.support.baseline import HOW_TO_GET_IT, Baseline, is_there
from benchmarks.support.corpus import page
from benchmarks.support.int8_peak import peak
from benchmarks.support.machine import processors
from benchmarks.support.options import Options
from benchmarks.support.report import Figure, at_least, missing, say
from otterwiki_semantic.embedding.local.bundled import BundledModel

_WORDS = 150
_CHUNKS = 192
_STEP = 64
"""Texts of one call, as the indexer makes them."""
_QUERIES = 40
_QUERY_WORDS = 8
_LAYERS, _WIDTH, _INNER = 6, 384, 1536
_LEAST_RATIO = 3.0
_SENTENCE = re.compile(r"^[A-Z][a-z, ]+\.", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Side:
    """Seconds of each round for all chunks, and of each query."""

    chunks: list[float] = field(default_factory=list)
    queries: list[float] = field(default_factory=list)

    @property
    def pace(self) -> float:
        """Chunks a second, median of the rounds."""
        return _CHUNKS / statistics.median(self.chunks)

    @property
    def query(self) -> float:
        """Milliseconds of a query, median."""
        return statistics.median(self.queries) * 1e3


def measure(options: Options) -> list[Figure]:
    """Return the speed of both, their ratio, and the share of the processor's 8-bit peak that embedding reaches."""
    texts, queries = chunks_and_queries(_CHUNKS, _QUERIES)
    model = BundledModel()
    _embed(model, texts[:_STEP])
    limit = _limit(model, texts)
    if not is_there():
        say(HOW_TO_GET_IT)
        return [*_alone(model, texts, queries, options.rounds, limit), *_without_baseline()]
    with Baseline() as baseline:
        baseline.seconds(texts[:_STEP])
        return _compared(model, baseline, texts, queries, options.rounds, limit)


def _compared(
    model: BundledModel, baseline: Baseline, texts: Sequence[str], queries: Sequence[str], rounds: int, limit: _Limit
) -> list[Figure]:
    ours, theirs = _Side(), _Side()
    for number in range(rounds):
        _round(model, ours, texts, queries)
        theirs.chunks.extend(baseline.seconds(texts))
        theirs.queries.extend(baseline.seconds(queries, one_by_one=True))
        say(f"round {number + 1} of {rounds}: {theirs.chunks[-1] / ours.chunks[-1]:.2f} times as fast")
    ratios = [other / own for own, other in zip(ours.chunks, theirs.chunks, strict=True)]
    span = f"median of {rounds} rounds in turns, {min(ratios):.2f} to {max(ratios):.2f}"
    return [
        *_own_figures(ours, limit),
        Figure("embedding with sentence-transformers", theirs.pace, "chunks/s", note=baseline.facts),
        at_least("bundled model, of sentence-transformers' speed", statistics.median(ratios), "times", _LEAST_RATIO, span),
        Figure("a query with sentence-transformers", theirs.query, "ms"),
        Figure("a query, of sentence-transformers' speed", theirs.query / ours.query, "times"),
    ]


def _alone(model: BundledModel, texts: Sequence[str], queries: Sequence[str], rounds: int, limit: _Limit) -> list[Figure]:
    ours = _Side()
    for _ in range(rounds):
        _round(model, ours, texts, queries)
    return _own_figures(ours, limit)


def _without_baseline() -> list[Figure]:
    target = f"≥ {_LEAST_RATIO:.0f}"
    return [missing("bundled model, of sentence-transformers' speed", "times", HOW_TO_GET_IT, target)]


def _round(model: BundledModel, side: _Side, texts: Sequence[str], queries: Sequence[str]) -> None:
    start = time.perf_counter()
    _embed(model, texts)
    side.chunks.append(time.perf_counter() - start)
    for query in queries:
        start = time.perf_counter()
        model.embed_queries([query])
        side.queries.append(time.perf_counter() - start)


def _embed(model: BundledModel, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), _STEP):
        model.embed(texts[start : start + _STEP])


# What is embedded


def chunks_and_queries(chunks: int, queries: int) -> tuple[list[str], list[str]]:
    """Return chunks of 150 words and queries of 8, all from the generated wiki's sentences."""
    words = (word for number in count() for sentence in _SENTENCE.findall(page(number)[1]) for word in sentence.split())
    texts = [" ".join(islice(words, _WORDS)) for _ in range(chunks)]
    return texts, [" ".join(islice(words, _QUERY_WORDS)).lower() for _ in range(queries)]


# What the processor can do


@dataclass(frozen=True, slots=True)
class _Limit:
    """Mean word pieces and multiply-adds (10^9) of a chunk, and the most multiply-adds a second (10^9) of the processor."""

    tokens: float
    work: float
    peak: float
    shape: tuple[int, int, int]


def multiply_adds(tokens: int) -> int:
    """Return the multiply-adds of a text: in each layer four projections, the feed-forward pair, and attention's products."""
    projections, feed_forward, attention = 4 * tokens * _WIDTH**2, 2 * tokens * _WIDTH * _INNER, 2 * tokens**2 * _WIDTH
    return _LAYERS * (projections + feed_forward + attention)


def _limit(model: BundledModel, texts: Sequence[str]) -> _Limit:
    tokens = [number + 2 for number in model.count_tokens(texts)]
    best, shape = peak(processors())
    return _Limit(statistics.mean(tokens), statistics.mean(map(multiply_adds, tokens)) / 1e9, best, shape)


def _own_figures(side: _Side, limit: _Limit) -> list[Figure]:
    rows, inner, columns = limit.shape
    reached = side.pace * limit.work
    parts = f"{limit.tokens:.0f} word pieces with both special ones; {_LAYERS} layers of {_WIDTH} and {_INNER}"
    of_peak = (
        f"{reached:.0f} of {limit.peak:.0f}; attention and all between the products counted as if they were 8-bit, or free"
    )
    return [
        Figure("embedding", side.pace, "chunks/s", note=f"{_WORDS} words each, {processors()} threads"),
        Figure("a query", side.query, "ms", note=f"{_QUERY_WORDS} words"),
        Figure("work of a chunk", limit.work, "10^9 multiply-adds", note=parts),
        Figure("8-bit peak of ONNX Runtime", limit.peak, "10^9/s", note=f"{rows} x {inner} x {columns}, a session a core"),
        Figure("chunks at that peak", limit.peak / limit.work, "chunks/s", note="if nothing but multiply-adds took time"),
        Figure("share of the peak that embedding reaches", 100 * reached / limit.peak, "%", note=of_peak),
    ]
