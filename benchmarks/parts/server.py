"""ChromaDB in the process that owns the index, and on a server of its own: memory, room on the disk, filling, searches.

The pages are generated as everywhere here; their vectors are generated, too, since a model would take hours and changes none of
these figures: around 300 centres, as texts of a topic are. They say nothing about how well answers fit.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.support.corpus import questions
from benchmarks.support.local import owned, wait_until_settled
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.processes import in_fresh_process, resident, tree_bytes
from benchmarks.support.report import Figure, say
from benchmarks.support.wikis import generated, scratch
from otterwiki_semantic.core.records import Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.running_chroma import RunningChroma

_QUESTIONS, _WARM_UP = 100, 10
_SEED = 31
_CENTRES, _SPREAD = 300, 0.06
_LONGEST_SECONDS = 6 * 3600.0
_MB = 2**20


class GeneratedVectors(BundledModel):
    """The bundled model's tokenizer with vectors that are drawn by lot, the same for the same text."""

    @property
    def fingerprint(self) -> str:
        """Another one than the model's, whose vectors these are not."""
        return f"generated/{super().fingerprint}"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return unit vectors of texts (len(texts) x dimension)."""
        return np.stack([_vector(text, self.dimension) for text in texts])

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:  # noqa: ARG002 - it is never slow
        """Return unit vectors of queries (len(texts) x dimension)."""
        return self.embed(texts)


@cache
def _centres(dimension: int) -> Matrix:
    drawn: Matrix = np.random.default_rng(_SEED).normal(size=(_CENTRES, dimension)).astype(np.float32)
    unit: Matrix = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


def _vector(text: str, dimension: int) -> Matrix:
    lot = np.random.default_rng(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))
    drawn = _centres(dimension)[lot.integers(_CENTRES)] + _SPREAD * lot.normal(size=dimension)
    vector: Matrix = (drawn / np.linalg.norm(drawn)).astype(np.float32)
    return vector


@dataclass(frozen=True, slots=True)
class _Opened:
    """What a process found that opened an index: seconds until it was whole, memory (MB), and milliseconds of searches.

    `asked` are searches for which ChromaDB was asked, whatever the number of chunks; `usual` are as the system decides by
    itself; `words` are by words alone.
    """

    chunks: int
    seconds: float
    memory: float
    asked: list[float]
    usual: list[float]
    words: list[float]


def measure(options: Options) -> list[Figure]:
    """Return the figures at each size, with the embedded ChromaDB first and the same index moved to a server after that."""
    return [figure for pages in options.sizes for figure in _measure(pages)]


def _measure(pages: int) -> Iterator[Figure]:
    repository = generated(pages)
    with scratch() as place:
        data_dir = place / "index"
        say(f"building an index of {pages:,} pages with generated vectors")
        built = in_fresh_process(_open, repository, data_dir, pages, None)
        embedded = in_fresh_process(_open, repository, data_dir, pages, None)
        yield from _disk(data_dir, embedded.chunks)
        yield Figure(f"first build without a model, embedded, {built.chunks:,} chunks", built.seconds, "s")
        yield from _figures("embedded", embedded)
        server = RunningChroma(place / "server")
        server.start()
        try:
            say(f"moving {embedded.chunks:,} chunks to a ChromaDB server")
            moved = in_fresh_process(_open, repository, data_dir, pages, server.url)
            memory = resident(server.pid)
            again = in_fresh_process(_open, repository, data_dir, pages, server.url)
        finally:
            server.stop()
        size = f"{moved.chunks:,} chunks"
        yield Figure(
            f"filling the server, {size}", moved.seconds, "s", note="the whole start, from the catalog, without the model"
        )
        yield Figure(f"memory of the server, {size}", memory, "MB", note="resident, after it was filled and asked")
        yield Figure(f"disk of the server, {size}", tree_bytes(server.directory) / _MB, "MB")
        yield from _figures("server", again)


def _figures(kind: str, opened: _Opened) -> Iterator[Figure]:
    size = f"{kind}, {opened.chunks:,} chunks"
    yield Figure(f"start of an index that is whole, {size}", opened.seconds, "s")
    yield Figure(
        f"memory of the index's process, {size}", opened.memory, "MB", note=f"resident, after {3 * _QUESTIONS} searches"
    )
    for name, times in (
        ("search", opened.usual),
        ("search that asks ChromaDB", opened.asked),
        ("search by words", opened.words),
    ):
        yield Figure(f"{name}, p50, {size}", p50(times), "ms")
        yield Figure(f"{name}, p95, {size}", p95(times), "ms")


def _disk(data_dir: Path, chunks: int) -> Iterator[Figure]:
    (catalog,) = data_dir.glob("generations/*/catalog.sqlite3")
    with closing(sqlite3.connect(catalog)) as connection:
        words, vectors = (
            connection.execute("SELECT sum(pgsize) FROM dbstat WHERE name GLOB ?", (name,)).fetchone()[0] / _MB
            for name in ("keywords*", "vectors")
        )
    (chroma,) = data_dir.glob("generations/*/chroma-*")
    size = f"{chunks:,} chunks"
    yield Figure(f"disk of the catalog, {size}", catalog.stat().st_size / _MB, "MB")
    yield Figure(f"disk of its keyword index, {size}", words, "MB")
    yield Figure(f"disk of its vectors, {size}", vectors, "MB")
    yield Figure(f"disk of the embedded ChromaDB, {size}", tree_bytes(chroma) / _MB, "MB")


def _open(repository: Path, data_dir: Path, pages: int, chroma_url: str | None) -> _Opened:
    """Open an index in the process that calls, wait until it is whole, and search."""
    with _generated(repository, data_dir, chroma_url) as index:
        start = time.perf_counter()
        index.start()
        chunks = wait_until_settled(index, _LONGEST_SECONDS).chunks
        seconds = time.perf_counter() - start
        asked = questions(3 * (_WARM_UP + _QUESTIONS), pages, _SEED)
        with patch.object(index._manager.serving, "_exact_up_to", 0):
            by_chroma = _times(index, asked[0::3], Mode.HYBRID)
        memory = resident()
        usual = _times(index, asked[1::3], Mode.HYBRID)
        words = _times(index, asked[2::3], Mode.KEYWORD)
        return _Opened(chunks, seconds, max(memory, resident()), by_chroma, usual, words)


@contextmanager
def _generated(repository: Path, data_dir: Path, chroma_url: str | None) -> Iterator[IndexEngine]:
    with owned(data_dir), patch("otterwiki_semantic.daemon.engine.open_embedder", lambda _settings: GeneratedVectors()):
        index = IndexEngine(Settings(repository, data_dir, sync_interval=3600, chroma_url=chroma_url, pages=()))
        try:
            yield index
        finally:
            index.close()


def _times(index: IndexEngine, asked: Sequence[str], mode: Mode) -> list[float]:
    """Return the milliseconds of each search after the first ones."""
    times = []
    for question in asked:
        start = time.perf_counter()
        (answer,) = index.search([question], SearchOptions(mode=mode))
        times.append((time.perf_counter() - start) * 1e3)
        assert answer.degraded is None, answer.degraded
    return times[_WARM_UP:]
