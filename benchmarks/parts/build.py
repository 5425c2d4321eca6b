"""A first build, a rebuild of what has not changed, and a sync that finds nothing to do."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.local import opened, owned, wait_until_settled
from benchmarks.support.options import Options
from benchmarks.support.processes import in_fresh_process
from benchmarks.support.report import Figure, at_least, at_most, say
from benchmarks.support.wikis import BuiltWiki, built, copied, generated, scratch
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.records import Chunk, RebuildState, SearchOptions
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.embedding.vectors import embed_passages
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage.generation import GenerationStore
from tests.support.chunks import read_page
from tests.support.live_wiki import git
from tests.support.syncing import sync

_STEP = 64
_LEAST_SHARE = 85.0
_LEAST_SPEEDUP = 20.0
_MOST_SYNC_MS = 60.0
_SYNCS = 20
_LOOK_SECONDS = 0.01
_LONGEST_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class _Alone:
    """Chunks, seconds to embed their texts, and to embed them with their heading paths, as the index needs them."""

    chunks: int
    texts: float
    passages: float


@dataclass(frozen=True, slots=True)
class _Build:
    """A first build and a reindex: chunks, seconds until all could be found, and chunks given to the model.

    ChromaDB is told afterwards in both cases, and is not waited for: searches compare the catalog's vectors until then.
    """

    chunks: int
    seconds: float
    embedded: int
    again_seconds: float
    again_embedded: int


@dataclass(frozen=True, slots=True)
class _Syncs:
    """Milliseconds of syncs with HEAD where it was and of syncs to commits without a change, and pages read by them all."""

    standing: list[float]
    empty_commits: list[float]
    pages_read: int


def measure(options: Options) -> list[Figure]:
    """Return the speed of a first build and of embedding the same chunks alone, in turns; of a reindex; and of empty syncs."""
    repository = generated(options.small_pages)
    alone: list[_Alone] = []
    builds: list[_Build] = []
    for number in range(options.rounds):
        alone.append(in_fresh_process(_embed_alone, repository))
        with scratch() as place:
            builds.append(in_fresh_process(_build_twice, repository, place / "index"))
        say(
            f"round {number + 1} of {options.rounds}: {alone[-1].texts:.1f} s embedding alone, {builds[-1].seconds:.1f} s built"
        )
    large = built(options.sizes[-1])
    with scratch() as place:
        syncs = in_fresh_process(_sync_nothing, copied(large, place))
    return [*_build_figures(alone, builds), *_reindex_figures(builds), *_sync_figures(large, syncs)]


def _build_figures(alone: list[_Alone], builds: list[_Build]) -> Iterator[Figure]:
    chunks, pairs = builds[0].chunks, list(zip(alone, builds, strict=True))
    shares = [100 * other.texts / own.seconds for other, own in pairs]
    yield Figure(
        "a first build", chunks / statistics.median(own.seconds for own in builds), "chunks/s", note=f"{chunks:,} chunks"
    )
    yield Figure("embedding the same texts alone", chunks / statistics.median(other.texts for other in alone), "chunks/s")
    note = f"median of {len(pairs)} rounds in turns, {min(shares):.0f} to {max(shares):.0f}"
    yield at_least("a first build, of the speed of embedding alone", statistics.median(shares), "%", _LEAST_SHARE, note)
    shares = [100 * other.passages / own.seconds for other, own in pairs]
    yield Figure(
        "the same, if heading paths are embedded, too", statistics.median(shares), "%", note="they are part of a vector"
    )


def _reindex_figures(builds: list[_Build]) -> Iterator[Figure]:
    seconds = statistics.median(own.again_seconds for own in builds)
    yield at_most("embedded by a reindex of an unchanged wiki", max(own.again_embedded for own in builds), "chunks", 0)
    speedup = statistics.median(own.seconds / own.again_seconds for own in builds)
    yield at_least("a reindex, of a first build's speed", speedup, "times", _LEAST_SPEEDUP, f"{seconds:.2f} s")


def _sync_figures(wiki: BuiltWiki, syncs: _Syncs) -> Iterator[Figure]:
    size = f"{wiki.pages:,} pages"
    standing, moved = statistics.median(syncs.standing), statistics.median(syncs.empty_commits)
    longest = f"longest of {_SYNCS}: {{:.3g}} ms"
    yield at_most(f"sync, HEAD where it was, {size}", standing, "ms", _MOST_SYNC_MS, longest.format(max(syncs.standing)))
    note = longest.format(max(syncs.empty_commits))
    yield at_most(f"sync to a new commit without a change, {size}", moved, "ms", _MOST_SYNC_MS, note)
    yield at_most("pages read by these syncs", syncs.pages_read, "pages", 0)


# Each in a process of its own


def _embed_alone(repository: Path) -> _Alone:
    model = BundledModel()
    chunks = _chunks(Repository(repository), model)
    steps = [chunks[start : start + _STEP] for start in range(0, len(chunks), _STEP)]
    model.embed([chunk.text for chunk in steps[0]])
    start = time.perf_counter()
    for step in steps:
        model.embed([chunk.text for chunk in step])
    texts = time.perf_counter() - start
    start = time.perf_counter()
    for step in steps:
        embed_passages(model, step, Profile().heading_weight)
    return _Alone(len(chunks), texts, time.perf_counter() - start)


def _chunks(repository: Repository, model: BundledModel) -> list[Chunk]:
    """Return all chunks in the order in which a first build embeds them: those of the smallest pages first."""
    head = repository.head()
    assert head is not None
    files = sorted(repository.pages(head).values(), key=lambda file: (file.size, file.path))
    contents = repository.read_blobs(file.blob for file in files)
    pairs = zip(files, contents, strict=True)
    return [chunk for file, text in pairs for chunk in read_page(file.path, file.blob, text, model, Profile()).chunks]


def _build_twice(repository: Path, data_dir: Path) -> _Build:
    start = time.perf_counter()
    with opened(repository, data_dir) as index:
        (answer,) = index.search(["anything"], SearchOptions(wait=True, wait_seconds=_LONGEST_SECONDS))
        seconds = time.perf_counter() - start
        assert answer.results
        assert answer.index.pending_pages == 0
        first = wait_until_settled(index)
        start = time.perf_counter()
        index.reindex()
        while (rebuild := index.status().rebuild).state is RebuildState.RUNNING:
            time.sleep(_LOOK_SECONDS)
        again_seconds = time.perf_counter() - start
        assert rebuild.state is RebuildState.DONE, rebuild.error
        again = wait_until_settled(index)
        assert again.generation != first.generation
    return _Build(first.chunks, seconds, first.embedded_texts, again_seconds, again.embedded_texts - first.embedded_texts)


class _CountingRepository(Repository):
    """Counts the pages that are read."""

    pages_read = 0

    def read_blobs(self, blobs: Iterable[str], max_bytes: int | None = None) -> Iterator[bytes]:
        for content in super().read_blobs(blobs, max_bytes):
            self.pages_read += 1
            yield content


def _sync_nothing(wiki: BuiltWiki) -> _Syncs:
    repository = _CountingRepository(wiki.repository)
    indexer = Indexer(repository, IndexRecipe(BundledModel(), "auto"))
    with owned(wiki.data_dir):
        generation = GenerationStore(wiki.data_dir).open_current()
        assert generation is not None

        def timed_sync() -> tuple[bool, float]:
            start = time.perf_counter()
            was_needed = sync(indexer, generation) is not None
            return was_needed, (time.perf_counter() - start) * 1e3

        standing, moved = [], []
        for number in range(_SYNCS + 1):
            git(wiki.repository, "commit", "-q", "--allow-empty", "-m", "nothing changes")
            was_needed, moving = timed_sync()
            assert was_needed
            was_needed, staying = timed_sync()
            assert not was_needed
            if number:  # the first one opens ChromaDB
                moved.append(moving)
                standing.append(staying)
        generation.close()
    return _Syncs(standing, moved, repository.pages_read)
