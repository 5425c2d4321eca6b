"""The promotion of a new index: its estimated cost, and the checks before it serves."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from msgspec import structs

from otterwiki_semantic.core.errors import ModelError, RebuildRefusedError
from otterwiki_semantic.core.files import directory_size
from otterwiki_semantic.core.records import Estimate, Figures, Mode, fall
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.search.evaluation import (
    RANKED_PAGES,
    RECALL,
    Ask,
    JudgedQuery,
    Run,
    answerable,
    fingerprint,
    judge,
)
from otterwiki_semantic.storage import Generation

_BYTES_PER_CHUNK = 18_000
_TEXT_BYTES_PER_CHUNK = 900
_SECONDS_PER_CHUNK, _SECONDS_PER_TEXT, _SECONDS_PER_COPY = 0.004, 0.01, 0.0002
"""Seconds per chunk in a first build: without embedding, for embedding, and for a copy. Later builds use measured values."""
_MIN_SECONDS = 0.1
_SAMPLE = 8
_DISK_MARGIN = 1.2
PACE = "seconds per chunk"

Rows = list[tuple[float, float | None, float]]
"""For each judged query: recall@10, recall@10 by meaning alone (None if unknown), and reciprocal rank."""


def estimate(
    serving: Generation | None, text_bytes: int, embedder: Embedder, *, embeds: bool, copies: bool, place: Path
) -> Estimate:
    """Estimate the cost of a new index: from the serving one if it is complete, otherwise from the size of the pages.

    The model is timed with a few chunks. `place` is a directory on the disk of the new index.
    """
    free = shutil.disk_usage(place).free
    if serving is None or serving.catalog.meta("commit") is None:
        chunks = text_bytes // _TEXT_BYTES_PER_CHUNK + 1
        return Estimate(chunks, chunks * _BYTES_PER_CHUNK, free, round(chunks * (_SECONDS_PER_CHUNK + _SECONDS_PER_TEXT), 1))
    chunks = serving.catalog.counts().chunks
    disk = directory_size(serving.path)
    if copies:
        return Estimate(0, disk, free, round(max(chunks * _SECONDS_PER_COPY, _MIN_SECONDS), 1))
    pace = float(serving.catalog.meta(PACE) or _SECONDS_PER_CHUNK)
    embedding = _seconds_per_text(serving, embedder) if embeds else 0.0
    return Estimate(chunks if embeds else 0, disk, free, round(chunks * (pace + embedding), 1))


def _seconds_per_text(serving: Generation, embedder: Embedder) -> float:
    if not serving.catalog.is_current:  # it may have texts that no model may see any more
        return _SECONDS_PER_TEXT
    texts = serving.catalog.reader.sample_texts(_SAMPLE)
    if not texts:
        return 0.0
    start = time.perf_counter()
    try:
        embedder.embed(texts)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"the embedding model failed: {error}") from error
    return (time.perf_counter() - start) / len(texts)


def check_disk_space(wanted: Estimate, place: Path) -> None:
    """Refuse a build for which the disk has no room; `RebuildRefusedError` contains both numbers."""
    if wanted.disk_bytes * _DISK_MARGIN > wanted.free_bytes:
        raise RebuildRefusedError(
            f"a rebuild needs about {wanted.disk_bytes / 1e6:.0f} MB in addition to the serving index,"
            f" and {wanted.free_bytes / 1e6:.0f} MB are free in {place}; make room there or set SEMANTIC_DATA_DIR"
        )


def check_complete(generation: Generation, allowed: int) -> None:
    """Raise `ModelError` if the model failed on more pages than `allowed`, and on more than one in a hundred."""
    counts, unfinished = generation.catalog.counts(), generation.catalog.unfinished
    if unfinished > max(1, counts.pages // 100, allowed):
        raise ModelError(f"the embedding model failed on {unfinished} of {counts.pages} pages")


_RANKINGS = {"hybrid": RANKED_PAGES, "semantic": structs.replace(RANKED_PAGES, mode=Mode.SEMANTIC)}


@dataclass(frozen=True, slots=True)
class QualityGate:
    """Compare a new index with the serving one on the judged queries of the wiki, if there are any."""

    recipe: IndexRecipe
    read_queries: Callable[[], Sequence[JudgedQuery]]
    asking: Callable[[Generation], Ask]

    def measure(self, generation: Generation, queries: Sequence[JudgedQuery]) -> tuple[Run, Run]:
        """Return the runs of hybrid searches and of searches by meaning; with the index's model, they are recorded in it."""
        hybrid, semantic = judge(self.asking(generation), queries, _RANKINGS, only_pages=True)
        if self.recipe.matches_vectors(generation) and generation.catalog.is_current:
            generation.catalog.set_meta(_cache_key(queries), json.dumps(_rows(hybrid, semantic)))
        return hybrid, semantic

    def compare(self, serving: Generation, new: Generation, queries: Sequence[JudgedQuery]) -> tuple[Figures, Figures] | None:
        """Return the metrics of both over the queries that still have a page; None if there are none."""
        return _figures_of_answerable(self._known_rows(serving, queries), self._known_rows(new, queries), queries, new)

    def fall(
        self, previous: Generation, queries: Sequence[JudgedQuery], runs: tuple[Run, Run], serving: Generation
    ) -> str | None:
        """Return which metric of the serving index, from its runs, is much lower than the last of the previous one, if any."""
        before = _cached_rows(previous, queries)
        both = _figures_of_answerable(before, _rows(*runs), queries, serving) if before else None
        return fall(*both) if both else None

    def _known_rows(self, generation: Generation, queries: Sequence[JudgedQuery]) -> Rows:
        if self.recipe.matches_vectors(generation):
            return _rows(*self.measure(generation, queries))
        return _cached_rows(generation, queries) or _rows(self.measure(generation, queries)[0], None)


def _cached_rows(generation: Generation, queries: Sequence[JudgedQuery]) -> Rows | None:
    cached = generation.catalog.meta(_cache_key(queries))
    return None if cached is None else [(recall, semantic, rank) for recall, semantic, rank in json.loads(cached)]


def _figures_of_answerable(
    before: Rows, after: Rows, queries: Sequence[JudgedQuery], newer: Generation
) -> tuple[Figures, Figures] | None:
    kept = answerable(queries, newer.catalog.pages.blobs())
    if not kept:
        return None
    old, new = ([rows[number] for number in kept] for rows in (before, after))
    return _figures(old), _figures(new)


def _rows(hybrid: Run, semantic: Run | None) -> Rows:
    others = semantic["queries"] if semantic else [{RECALL: None}] * len(hybrid["queries"])
    return [(row[RECALL], other[RECALL], row["mrr"]) for row, other in zip(hybrid["queries"], others, strict=True)]


def _figures(rows: Rows) -> Figures:
    recalls, semantic, ranks = zip(*rows, strict=True)
    return Figures(fmean(recalls), None if None in semantic else fmean(semantic), fmean(ranks))


def _cache_key(queries: Sequence[JudgedQuery]) -> str:
    return f"judged {fingerprint(queries)}"
