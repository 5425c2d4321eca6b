"""The promotion of a new index: what it costs, and the checks that it has to pass before it serves."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from otterwiki_semantic.core.errors import ModelError, RebuildRefusedError
from otterwiki_semantic.core.files import directory_size
from otterwiki_semantic.core.records import Estimate, Recall
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.search import SearchResult
from otterwiki_semantic.search.evaluation import RECALL, JudgedQuery, Metrics, answerable, fingerprint, score
from otterwiki_semantic.storage import Generation

_BYTES_PER_CHUNK = 18_000
_TEXT_BYTES_PER_CHUNK = 900
_SECONDS_PER_CHUNK, _SECONDS_PER_TEXT, _SECONDS_PER_COPY = 0.004, 0.01, 0.0002
"""What a chunk takes in a first build apart from its embedding, the embedding, and a copy; later builds know better."""
_MIN_SECONDS = 0.1
_SAMPLE = 8
_DISK_MARGIN = 1.2
_MAX_LOSS = 0.1
"""Share of recall@10 that a new index may lose."""
PACE = "seconds per chunk"

Search = Callable[[Generation, str], SearchResult]
"""Searches a generation, serving or not, for the pages that answer a query."""


def estimate(
    serving: Generation | None, text_bytes: int, embedder: Embedder, *, embeds: bool, copies: bool, place: Path
) -> Estimate:
    """Estimate what a new index takes: from the serving one if it is complete, else from the size of the pages.

    The model is timed with a few chunks of the wiki; an index that `copies` the serving one needs neither it nor the pages.
    `place` is a directory on the disk of the new index.
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
    if not serving.catalog.is_current:  # it may have texts that no model gets any more
        return _SECONDS_PER_TEXT
    texts = serving.catalog.sample_texts(_SAMPLE)
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
    """Refuse a build that the disk has no room for; `RebuildRefusedError` contains both numbers."""
    if wanted.disk_bytes * _DISK_MARGIN > wanted.free_bytes:
        raise RebuildRefusedError(
            f"a rebuild needs about {wanted.disk_bytes / 1e6:.0f} MB in addition to the serving index,"
            f" and {wanted.free_bytes / 1e6:.0f} MB are free in {place}; make room there or set SEMANTIC_DATA_DIR"
        )


def check_complete(generation: Generation, allowed: int) -> None:
    """Refuse an index that is not complete.

    ChromaDB is filled when the index serves: until then searches compare the catalog's vectors. Errors: `ModelError` if the
    model failed on more pages than `allowed` (as many as in the serving index), and on more than one in a hundred.
    """
    counts, unfinished = generation.catalog.counts(), generation.catalog.unfinished
    if unfinished > max(1, counts.pages // 100, allowed):
        raise ModelError(f"the embedding model failed on {unfinished} of {counts.pages} pages")


def _cached_recall(generation: Generation, queries: Sequence[JudgedQuery]) -> list[float] | None:
    cached = generation.catalog.meta(_cache_key(queries))
    return None if cached is None else [float(value) for value in json.loads(cached)]


def _cache_key(queries: Sequence[JudgedQuery]) -> str:
    return f"recall@10 {fingerprint(queries)}"


@dataclass(frozen=True, slots=True)
class RecallGate:
    """Compares the recall of a new index with that of the serving one, on the judged queries of the wiki, if there are any."""

    recipe: IndexRecipe
    read_queries: Callable[[], Sequence[JudgedQuery]]
    search: Search

    def measure(self, generation: Generation, queries: Sequence[JudgedQuery]) -> list[Metrics]:
        """Ask judged queries, and return the metrics of each; recall is also recorded, while the model is available."""
        rows = [score(judged, (hit.path for hit in self.search(generation, judged.query).hits)) for judged in queries]
        if self.recipe.matches_vectors(generation) and generation.catalog.is_current:
            generation.catalog.set_meta(_cache_key(queries), json.dumps([row[RECALL] for row in rows]))
        return rows

    def compare(self, serving: Generation, new: Generation, queries: Sequence[JudgedQuery]) -> Recall | None:
        """Return the mean recall of both for the queries that still have a page; None if there are none."""
        before, after = self._recall(serving, queries), self._recall(new, queries)
        kept = answerable(queries, new.catalog.blobs())
        if not kept:
            return None
        return Recall(*(fmean(values[number] for number in kept) for values in (before, after)))

    def _recall(self, generation: Generation, queries: Sequence[JudgedQuery]) -> list[float]:
        """Return what an index achieves, or what it achieved while its model was available."""
        cached = None if self.recipe.matches_vectors(generation) else _cached_recall(generation, queries)
        return cached or [row[RECALL] for row in self.measure(generation, queries)]


def check_recall(found: Recall, queries: int) -> None:
    """Refuse an index that finds much less than the serving one; `RebuildRefusedError` contains both figures."""
    if found.after < found.before * (1 - _MAX_LOSS):
        raise RebuildRefusedError(
            f"the new index finds less: recall@10 over {queries} judged questions is {found.after:.3f}, and was"
            f" {found.before:.3f}; the old index continues to serve. To use the new one anyway, unset SEMANTIC_EVAL_QUERIES"
        )
