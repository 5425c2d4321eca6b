"""What a new generation costs, and what it has to show before it takes the serving one's place."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean

from otterwiki_semantic.core.errors import ModelError, RebuildRefusedError, VectorStoreError
from otterwiki_semantic.core.files import directory_size
from otterwiki_semantic.core.records import Estimate, Recall, SearchOptions
from otterwiki_semantic.embedding import Calibration, Embedder, Matrix
from otterwiki_semantic.search import parse_query, search_chunks
from otterwiki_semantic.search.evaluation import JudgedQuery, answerable, score
from otterwiki_semantic.storage import Generation, MirrorState

_BYTES_PER_CHUNK = 6_500
_BYTES_OF_TEXT_PER_CHUNK = 900
_SECONDS_PER_CHUNK, _SECONDS_PER_TEXT, _SECONDS_PER_COPY = 0.004, 0.01, 0.0002
"""What a passage takes in a first build besides the embedding, the embedding, and a copy. One that was built knows better."""
_SHORTEST_SECONDS = 0.1
_SAMPLE = 8
_SPARE = 1.2
_RANKED = 20
_MOST_LOST = 0.1
"""Share of recall@10 that a new generation may lose."""
PACE = "seconds per chunk"

VectorOf = Callable[[str], Matrix]


def estimate(
    serving: Generation | None, text_bytes: int, embedder: Embedder, *, embeds: bool, copies: bool, place: Path
) -> Estimate:
    """Tell what a new generation will take: from the serving one if there is a whole one, else from the size of the pages.

    The model is timed with a few of the wiki's own passages; one that `copies` the serving one needs neither it nor the pages.
    `place` is a directory on the disk that it will stand on.
    """
    free = shutil.disk_usage(place).free
    if serving is None or serving.catalog.meta("commit") is None:
        chunks = text_bytes // _BYTES_OF_TEXT_PER_CHUNK + 1
        return Estimate(chunks, chunks * _BYTES_PER_CHUNK, free, round(chunks * (_SECONDS_PER_CHUNK + _SECONDS_PER_TEXT), 1))
    chunks = serving.catalog.counts().chunks
    disk = directory_size(serving.path)
    if copies:
        return Estimate(0, disk, free, round(max(chunks * _SECONDS_PER_COPY, _SHORTEST_SECONDS), 1))
    pace = float(serving.catalog.meta(PACE) or _SECONDS_PER_CHUNK)
    embedding = _seconds_per_text(embedder, serving.catalog.sample_texts(_SAMPLE)) if embeds else 0.0
    return Estimate(chunks if embeds else 0, disk, free, round(chunks * (pace + embedding), 1))


def _seconds_per_text(embedder: Embedder, texts: Sequence[str]) -> float:
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


def check_room(wanted: Estimate, place: Path) -> None:
    """Refuse a build that the disk has no room for; `RebuildRefusedError` names both numbers."""
    if wanted.disk_bytes * _SPARE > wanted.free_bytes:
        raise RebuildRefusedError(
            f"a rebuild needs about {wanted.disk_bytes / 1e6:.0f} MB beside the serving index,"
            f" and {wanted.free_bytes / 1e6:.0f} MB are free in {place}; make room there or set SEMANTIC_DATA_DIR"
        )


def check_whole(generation: Generation, allowed: int) -> None:
    """Refuse a generation that is not whole.

    Errors: `VectorStoreError` if ChromaDB does not hold all of it, or cannot search it; `ModelError` if the model failed on
    more pages than `allowed` (as many as in the serving one) and than one in a hundred.

    One that fills ChromaDB later needs nothing of it: the catalog was checked as a whole when it was copied, and until ChromaDB
    was filled, compared and searched like any that was lost, searches compare the catalog's vectors, each of them.
    """
    counts, unfinished = generation.catalog.counts(), generation.catalog.unfinished
    if unfinished > max(1, counts.pages // 100, allowed):
        raise ModelError(f"the embedding model failed on {unfinished} of {counts.pages} pages")
    if generation.mirror.state is MirrorState.DEFERRED:
        return
    if not generation.mirror.is_current:
        raise generation.mirror.error or VectorStoreError("ChromaDB does not hold the whole new index")
    found = generation.vector_store.count()
    if found != counts.vectors:
        raise VectorStoreError(f"the new index is not whole: {counts.vectors} vectors, of which ChromaDB holds {found}")
    generation.mirror.probe()


def recalls(
    generation: Generation, questions: Sequence[JudgedQuery], vector_of: VectorOf | None, calibration: Calibration
) -> list[float]:
    """Give the recall@10 by page (0 to 1) of each judged question; without `vector_of` they are answered by words alone.

    What was measured is noted in the generation: one whose model is not there any more is judged by what it reached with it.
    """
    noted = noted_recalls(generation, questions)
    if vector_of is None and noted is not None:
        return noted
    found: list[float] = []
    for judged in questions:
        query = parse_query(judged.query)
        vector = partial(vector_of, query.text) if vector_of else _no_vector
        with generation.catalog.snapshot():
            hits = search_chunks(generation, query, vector, SearchOptions(_RANKED, 1), calibration).hits
        found.append(score(judged, (hit.path for hit in hits))["recall@10"])
    if vector_of is not None and generation.catalog.is_current:
        generation.catalog.set_meta(_note(questions), json.dumps(found))
    return found


def noted_recalls(generation: Generation, questions: Sequence[JudgedQuery]) -> list[float] | None:
    """Give what a generation was last seen to reach with these questions; None if it was not asked them."""
    noted = generation.catalog.meta(_note(questions))
    return None if noted is None else [float(value) for value in json.loads(noted)]


def compared(
    new: Generation, questions: Sequence[JudgedQuery], before: Sequence[float], after: Sequence[float]
) -> Recall | None:
    """Give the mean of both over the questions that the wiki still has a page for; None if there are none."""
    kept = answerable(questions, new.catalog.blobs())
    if not kept:
        return None
    return Recall(*(fmean(values[number] for number in kept) for values in (before, after)))


def check_recall(found: Recall, questions: int) -> None:
    """Refuse a generation that finds much less than the serving one; `RebuildRefusedError` names both figures."""
    if found.after < found.before * (1 - _MOST_LOST):
        raise RebuildRefusedError(
            f"the new index finds less: recall@10 over {questions} judged questions is {found.after:.3f}, and was"
            f" {found.before:.3f}; the old index goes on serving. To take the new one all the same unset SEMANTIC_EVAL_QUERIES"
        )


def _no_vector() -> None:
    """Stand for the vector of a question where words alone are to answer."""


def _note(questions: Sequence[JudgedQuery]) -> str:
    mark = hashlib.sha256(repr(list(questions)).encode("utf-8", errors="surrogatepass")).hexdigest()[:16]
    return f"recall@10 {mark}"
