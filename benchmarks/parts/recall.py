"""What the approximate search for vectors misses: ChromaDB's neighbours against those of a search that looks at all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.support.corpus import questions
from benchmarks.support.local import owned
from benchmarks.support.options import Options
from benchmarks.support.processes import in_fresh_process
from benchmarks.support.report import Figure, at_least, say
from benchmarks.support.wikis import BuiltWiki, built
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.storage.generation import Generation, GenerationStore

_QUESTIONS = 250
_WARM_UP = 10
_DEPTH, _GATHERED = 10, 100
"""What the target is for, and about how many neighbours a search gathers."""
_LEAST_RECALL = 0.99
_SEED = 11


@dataclass(frozen=True, slots=True)
class _Question:
    """The share of the true neighbours that was found: by the index, and by ChromaDB alone, of 10 and of 100.

    And the milliseconds of the index's search, of ChromaDB's, and of one that looks at every vector.
    """

    recall: float
    chroma_recall: float
    chroma_gathered: float
    index_ms: float
    chroma_ms: float
    exact_ms: float


def measure(options: Options) -> list[Figure]:
    """Return the recall, and the times of the searches, for each size."""
    found = []
    for pages in options.sizes:
        wiki = built(pages)
        say(f"{_QUESTIONS} questions, {wiki.chunks:,} chunks")
        found += _figures(wiki, in_fresh_process(_compare, wiki))
    return found


def _figures(wiki: BuiltWiki, asked: Sequence[_Question]) -> list[Figure]:
    size = f"{wiki.chunks:,} chunks"
    recalls = [each.recall for each in asked]
    note = f"{len(asked)} questions, the worst {min(recalls):.2f}"
    return [
        at_least(f"recall@{_DEPTH} of the index, {size}", statistics.mean(recalls), "", _LEAST_RECALL, note),
        Figure(f"recall@{_DEPTH} of ChromaDB alone, {size}", statistics.mean(each.chroma_recall for each in asked), ""),
        Figure(f"recall@{_GATHERED} of ChromaDB alone, {size}", statistics.mean(each.chroma_gathered for each in asked), ""),
        Figure(f"nearest {_DEPTH} by the index, median, {size}", statistics.median(each.index_ms for each in asked), "ms"),
        Figure(f"nearest {_DEPTH} by ChromaDB, median, {size}", statistics.median(each.chroma_ms for each in asked), "ms"),
        Figure(f"nearest {_DEPTH} by numpy, median, {size}", statistics.median(each.exact_ms for each in asked), "ms"),
    ]


def _compare(wiki: BuiltWiki) -> list[_Question]:
    model = BundledModel()
    asked = model.embed_queries(questions(_WARM_UP + _QUESTIONS, wiki.pages, _SEED))
    with owned(wiki.data_dir):
        generation = GenerationStore(wiki.data_dir).open_current()
        assert generation is not None
        try:
            generation.mirror.push()
            assert generation.mirror.is_current, generation.mirror.error
            ids, matrix = _all_vectors(generation)
            return [_ask(generation, ids, matrix, vector) for vector in asked][_WARM_UP:]
        finally:
            generation.close()


def _all_vectors(generation: Generation) -> tuple[list[str], Matrix]:
    """Return the ids that ChromaDB holds, and the catalog's vectors of them, which have to be all there are."""
    ids = sorted(generation.mirror.store.ids())
    known = generation.catalog.vectors.get(ids)
    assert len(known) == len(ids) == generation.catalog.counts().vectors
    return ids, np.stack([known[vector] for vector in ids])


def _ask(generation: Generation, ids: list[str], matrix: Matrix, vector: Matrix) -> _Question:
    start = time.perf_counter()
    found = sorted(generation.nearest(vector, _DEPTH).found, key=lambda pair: -pair[1])
    after_index = time.perf_counter()
    of_chroma = generation.mirror.store.query(vector, _DEPTH)
    after_chroma = time.perf_counter()
    places = _nearest(matrix, vector, _DEPTH)
    after_all = time.perf_counter()
    true, gathered = {ids[place] for place in places}, {ids[place] for place in _nearest(matrix, vector, _GATHERED)}
    return _Question(
        recall=len(true & {candidate.vector for candidate, _ in found[:_DEPTH]}) / len(true),
        chroma_recall=len(true & of_chroma.keys()) / len(true),
        chroma_gathered=len(gathered & generation.mirror.store.query(vector, _GATHERED).keys()) / len(gathered),
        index_ms=(after_index - start) * 1e3,
        chroma_ms=(after_chroma - after_index) * 1e3,
        exact_ms=(after_all - after_chroma) * 1e3,
    )


def _nearest(matrix: Matrix, vector: Matrix, count: int) -> list[int]:
    """Return the rows of the greatest cosines, in no order."""
    similarity = matrix @ vector
    count = min(count, len(similarity))
    return [int(place) for place in np.argpartition(-similarity, count - 1)[:count]]
