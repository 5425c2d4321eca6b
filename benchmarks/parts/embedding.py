"""The bundled model's speed, against sentence-transformers with the same weights, and against what the processor can do."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, islice

from benchmarks.support.baseline import HOW_TO_GET_IT, Baseline, is_there
from benchmarks.support.corpus import page
from benchmarks.support.machine import processors
from benchmarks.support.operators import operator_seconds
from benchmarks.support.options import Options
from benchmarks.support.product_peak import float_peak, int8_peak
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
_PROFILED = {_QUERY_WORDS: 200, 60: 60, _WORDS: 40, 250: 30}
"""Texts that are profiled, by their length in words."""
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
    """Return both speeds, their ratio, the share of the processor's peak that embedding reaches, and that of each operator."""
    return [*_speed(options), *_operators()]


def _speed(options: Options) -> list[Figure]:
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
    words = _words()
    texts = _texts(words, chunks, _WORDS)
    return texts, [text.lower() for text in _texts(words, queries, _QUERY_WORDS)]


def _words() -> Iterator[str]:
    return (word for number in count() for sentence in _SENTENCE.findall(page(number)[1]) for word in sentence.split())


def _texts(words: Iterator[str], number: int, length: int) -> list[str]:
    return [" ".join(islice(words, length)) for _ in range(number)]


# What the processor can do


@dataclass(frozen=True, slots=True)
class _Limit:
    """Mean word pieces and multiply-adds (10^9) of a chunk, and the most multiply-adds a second (10^9) of the processor."""

    tokens: float
    work: float
    attention: float
    """Those of `work` that are computed in floats."""
    peak: float
    float_peak: float
    shape: tuple[int, int, int]

    @property
    def seconds(self) -> float:
        """Seconds of a chunk if nothing but its multiply-adds took time, each in its own number format."""
        return (self.work - self.attention) / self.peak + self.attention / self.float_peak


def multiply_adds(tokens: int) -> int:
    """Return the multiply-adds of a text: in each layer four projections, the feed-forward pair, and attention's products."""
    projections, feed_forward = 4 * tokens * _WIDTH**2, 2 * tokens * _WIDTH * _INNER
    return _LAYERS * (projections + feed_forward) + _of_attention(tokens)


def _of_attention(tokens: int) -> int:
    return _LAYERS * 2 * tokens**2 * _WIDTH


def _limit(model: BundledModel, texts: Sequence[str]) -> _Limit:
    tokens = model.input_tokens(texts)
    work, attention = (statistics.mean(map(of, tokens)) / 1e9 for of in (multiply_adds, _of_attention))
    best, shape = int8_peak(processors())
    return _Limit(statistics.mean(tokens), work, attention, best, float_peak(processors()), shape)


def _own_figures(side: _Side, limit: _Limit) -> list[Figure]:
    rows, inner, columns = limit.shape
    reached = side.pace * limit.work
    parts = f"{limit.tokens:.0f} word pieces with both special ones; {_LAYERS} layers of {_WIDTH} and {_INNER}"
    of_peak = (
        f"{reached:.0f} of {limit.peak:.0f}; attention and all between the products counted as if they were 8-bit, or free"
    )
    of_floats = f"floats: {limit.float_peak:.0f} x 10^9/s"
    return [
        Figure("embedding", side.pace, "chunks/s", note=f"{_WORDS} words each, {processors()} threads"),
        Figure("a query", side.query, "ms", note=f"{_QUERY_WORDS} words"),
        Figure("work of a chunk", limit.work, "10^9 multiply-adds", note=parts),
        Figure("8-bit peak of ONNX Runtime", limit.peak, "10^9/s", note=f"{rows} x {inner} x {columns}, a session a core"),
        Figure("chunks at that peak", limit.peak / limit.work, "chunks/s", note="if nothing but multiply-adds took time"),
        Figure("share of the peak that embedding reaches", 100 * reached / limit.peak, "%", note=of_peak),
        Figure("the same, attention at the peak of floats", 100 * side.pace * limit.seconds, "%", note=of_floats),
    ]


# What takes the time


def _operators() -> list[Figure]:
    """Return the share of each kind of operator in the time of a chunk, and in that of shorter and longer texts."""
    tokenizer, words = BundledModel().open().tokenizer, _words()
    shares: dict[int, dict[str, float]] = {}
    for length, number in _PROFILED.items():
        seconds = operator_seconds([encoding.ids for encoding in tokenizer.encode_batch_fast(_texts(words, number, length))])
        shares[length] = {kind: 100 * value / sum(seconds.values()) for kind, value in seconds.items()}
    others = [length for length in _PROFILED if length != _WORDS]
    return [
        Figure(kind, share, "%", note=", ".join(f"{length} words: {shares[length][kind]:.1f} %" for length in others))
        for kind, share in shares[_WORDS].items()
    ]
