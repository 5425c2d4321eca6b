"""Reading a wiki until it is found by its words: what each stage takes, and all of it with one process and with several."""

from __future__ import annotations

import os
import pickle
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.support.local import owned
from benchmarks.support.options import Options
from benchmarks.support.processes import in_fresh_process
from benchmarks.support.report import Figure, at_least
from benchmarks.support.wikis import generated, scratch
from otterwiki_semantic.content.analysis import minhash
from otterwiki_semantic.content.chunking import chunk_document
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.page import page_title
from otterwiki_semantic.content.pages.preparation import PageSettings, divide_page, page_words
from otterwiki_semantic.core.records import Page
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage import schema
from otterwiki_semantic.storage.generation import GenerationStore
from tests.support.syncing import sync

_PAGES_PER_BATCH = 64
_LEAST_WORDS = 125_000.0
"""Words a second: 11 million in 90 seconds."""


@dataclass(frozen=True, slots=True)
class _Wiki:
    """How much there is to read, and the processor seconds of each stage, in their order."""

    pages: int
    words: int
    chunks: int
    stages: dict[str, float]


def measure(options: Options) -> Iterator[Figure]:
    """Yield the stages of one process, and the pace with one process that reads, and with one for each processor."""
    repository = options.repository or generated(options.small_pages)
    with scratch() as place:
        wiki = in_fresh_process(_stages, repository, place)
    total = sum(wiki.stages.values())
    yield Figure("read", wiki.words, "words", note=f"{wiki.pages:,} pages, {wiki.chunks:,} chunks")
    for stage, seconds in wiki.stages.items():
        per_million = 1e6 * seconds / wiki.words
        yield Figure(stage, per_million, "s per million words", note=f"{100 * seconds / total:.0f} % of the processor's time")
    yield Figure("all of it", 1e6 * total / wiki.words, "s per million words")
    processors = len(os.sched_getaffinity(0))
    for processes in dict.fromkeys((1, processors)):
        with scratch() as place:
            seconds = in_fresh_process(_read_all, repository, place, processes)
        name = f"until all is found by its words, {processes} of {processors} processors reading"
        pace = wiki.words / seconds
        note = f"{wiki.pages / seconds:.0f} pages/s, {seconds:.1f} s"
        bound = _LEAST_WORDS if processes == processors > 1 else 0.0
        yield at_least(name, pace, "words/s", bound, note) if bound else Figure(name, pace, "words/s", note=note)


class _Clock:
    """Adds up the processor time of stages."""

    def __init__(self) -> None:
        self.stages: dict[str, float] = defaultdict(float)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the block for a stage."""
        start = time.process_time()
        yield
        self.stages[name] += time.process_time() - start

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is counted for a stage."""

        def call(*arguments: Any) -> Any:
            with self.stage(name):
                return work(*arguments)

        return call


class _TimedConnection:
    """A connection whose statements are counted for the kind of table that they write to."""

    def __init__(self, connection: sqlite3.Connection, clock: _Clock) -> None:
        self._connection = connection
        self._clock = clock

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        """Execute a statement."""
        with self._clock.stage(_stage_of(statement)):
            return self._connection.execute(statement, *values)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> sqlite3.Cursor:
        """Execute a statement for each row."""
        rows = list(rows)
        with self._clock.stage(_stage_of(statement)):
            return self._connection.executemany(statement, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def _stage_of(statement: str) -> str:
    if "keywords" in statement:
        return "storing: keyword index (FTS5)"
    if " words" in statement:
        return "storing: vocabulary"
    return "storing: commits" if statement == "COMMIT" else "storing: pages, chunks, names, links"


# Each in a process of its own


def _stages(place: Path, scratch_place: Path) -> _Wiki:
    repository, model, clock = Repository(place), BundledModel(), _Clock()
    recipe, counter = IndexRecipe(model, "auto"), model.word_counter
    counter.count_tokens([""])
    head = repository.head()
    assert head is not None
    with clock.stage("git"):
        files = sorted(repository.pages(head).values(), key=lambda file: (file.size, file.path))
        texts = [content.decode("utf-8", errors="replace") for content in repository.read_blobs(file.blob for file in files)]
    with clock.stage("parsing"):
        documents = [parse_markdown(text) for text in texts]
    timed = _TimedCounter(clock.timed("counting tokens", counter.count_tokens))
    start, before = time.process_time(), clock.stages["counting tokens"]
    for file, document in zip(files, documents, strict=True):
        chunk_document(document, page_title(file.path, document), timed, recipe.profile)
    counting = clock.stages.pop("counting tokens") - before
    clock.stages["dividing into chunks"] = time.process_time() - start - counting
    clock.stages["counting tokens"] = counting
    # Divided again, because `divide_page` also determines words, which are timed alone.
    settings = PageSettings(counter, recipe.profile, recipe.languages)
    pages = [divide_page(file.path, file.blob, document, settings) for file, document in zip(files, documents, strict=True)]
    with clock.stage("words: stems, vocabulary, names"):
        pages = [replace(page, words=page_words(page)) for page in pages]
    with clock.stage("to and from the process that reads"):
        pages = [pickle.loads(pickle.dumps(page)) for page in pages]
    _store(pages, scratch_place, recipe, clock)
    return _Wiki(len(pages), sum(page.word_count for page in pages), sum(len(page.chunks) for page in pages), clock.stages)


class _TimedCounter:
    def __init__(self, count_tokens: Callable[[Sequence[str]], list[int]]) -> None:
        self.count_tokens = count_tokens


def _store(pages: Sequence[Page], place: Path, recipe: IndexRecipe, clock: _Clock) -> None:
    """Store pages, each statement counted for its stage, and what is left for Python."""
    schema.minhash_signature = clock.timed("MinHash signatures", minhash.minhash_signature)  # type: ignore[attr-defined]
    with owned(place):
        generation = GenerationStore(place).create(recipe.embedder, recipe.profile, recipe.languages)
        catalog = generation.catalog
        catalog._writer = _TimedConnection(catalog._writer, clock)  # type: ignore[assignment]
        start, before = time.process_time(), sum(clock.stages.values())
        for place_of_first in range(0, len(pages), _PAGES_PER_BATCH):
            batch = pages[place_of_first : place_of_first + _PAGES_PER_BATCH]
            catalog.put_pages([(page, [vector_id(chunk.text) for chunk in page.chunks]) for page in batch])
        inside = sum(clock.stages.values()) - before
        clock.stages["storing: Python"] = time.process_time() - start - inside
        generation.close()


def _read_all(place: Path, data_dir: Path, processes: int) -> float:
    repository, model = Repository(place), BundledModel()
    recipe = IndexRecipe(model, "auto")
    with owned(data_dir), closing(PageLoader(repository, model, data_dir=data_dir, processes=processes)) as loader:
        generation = GenerationStore(data_dir).create(model, recipe.profile, recipe.languages)
        indexer = Indexer(repository, recipe, loader=loader)
        model.count_tokens([""])
        start = time.perf_counter()
        assert sync(indexer, generation, embed=False)
        seconds = time.perf_counter() - start
        generation.close()
    return seconds
