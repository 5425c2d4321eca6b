"""The comparison of two models: a share of the users' questions, and the judged ones, are asked of both in the background.

Users never wait for it nor see any of it: one thread builds the shadow index, follows HEAD every few minutes, and asks, with
long rests, one question after another; those that come while it is busy are dropped. No question is stored.
"""

from __future__ import annotations

import json
import logging
import random
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from queue import Empty, Full, Queue

import msgspec
from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.backoff import Backoff, Cooldown
from otterwiki_semantic.core.errors import CatalogError, IndexUnavailableError, ParameterError, SemanticError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.core.records import Answer, ComparedModel, Mode, ModelComparison, Problem, SearchOptions
from otterwiki_semantic.core.serialization import to_builtins
from otterwiki_semantic.core.settings import SHADOW, Settings, shadow_settings
from otterwiki_semantic.indexing import IndexManager, ParseQuery, RecallGate, ShadowIndex, Stopped, now
from otterwiki_semantic.search import SearchResult
from otterwiki_semantic.search.evaluation import RANKED_PAGES, JudgedQuery, Metrics, fingerprint, means, percentiles, score
from otterwiki_semantic.storage import Generation

_MAX_SEARCHES = 1_000
_MAX_WAITING = 4
_RANKED = 10
_FOLLOW_SECONDS = 300.0
"""The shortest time between two looks at HEAD."""
_POLL_SECONDS = 5.0
"""How often to look whether the serving index is at HEAD, before the first build and after a failure."""
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 60.0, 3600.0
_ANSWERED_SECONDS = 0.2
"""How long after a search its question is asked again: its answer has been sent."""
_REST_FACTOR = 4
"""How much longer than its work the thread rests."""
_DAY = 86_400.0
_CLOSE_SECONDS = 2.0
_DIGITS = 4
_INDEXING, _SEARCHING = "indexing", "searching"
_FILE = "comparison.json"
_HINT = (
    "correct the SEMANTIC_SHADOW settings, start that model's server, or make room on the disk, as the message says; it is "
    "tried again automatically, and searches do not depend on it"
)
_SETTING = re.compile(r"SEMANTIC_MODEL(_(?:KEY|URL|OPTIONS))?\b")

SearchGeneration = Callable[[Generation, str, SearchOptions], SearchResult]
"""Searches the serving generation as for a user, without a reranker."""

log = logging.getLogger(__name__)


class _Judged(msgspec.Struct):
    """How both indexes answered the judged queries, if there are any: the means of their metrics."""

    queries: str
    """The fingerprint of the queries."""
    count: int
    at: float
    """A Unix time."""
    serving: Metrics = {}
    shadow: Metrics = {}


class _Figures(msgspec.Struct):
    """What was measured of two recipes, as it is stored."""

    recipes: tuple[str | None, str | None] = (None, None)
    """The fingerprints of the serving index and of the shadow index."""
    since: str | None = None
    searches: list[tuple[float, float, float]] = []
    """The last 1,000: overlap, milliseconds of the serving index, and of the shadow index; oldest first."""
    judged: _Judged | None = None


def remove_shadow(data_dir: Path) -> None:
    """Remove what a shadow index left in a data directory."""
    shutil.rmtree(data_dir / SHADOW, ignore_errors=True)


class ShadowComparison:
    """Compares the serving index with the one of `SEMANTIC_SHADOW_MODEL`. No method but `search` raises an error."""

    def __init__(
        self,
        settings: Settings,
        repository: Repository,
        manager: IndexManager,
        gate: RecallGate,
        search_serving: SearchGeneration,
        parse: ParseQuery,
        search_slots: AbstractContextManager[object],
    ) -> None:
        self._settings = settings
        self._manager = manager
        self._gate = gate
        self._search_serving = search_serving
        self._stopping = threading.Event()
        self._open = partial(ShadowIndex, shadow_settings(settings), repository, self._stopping.is_set, parse, search_slots)
        self._index: ShadowIndex | None = None
        self._file = settings.data_dir / SHADOW / _FILE
        self._figures = read_record(self._file, _Figures, "the figures of the comparison begin anew") or _Figures()
        self._is_stored = True
        self._lock = threading.Lock()
        """Guards the figures."""
        self._waiting: Queue[tuple[str, SearchOptions] | None] = Queue(_MAX_WAITING)
        self._pause = Cooldown(_POLL_SECONDS)
        self._backoff = Backoff(_RETRY_SECONDS, _MAX_RETRY_SECONDS)
        self._errors: dict[str, Exception] = {}
        """Why a part of the work fails, by its name."""
        self._logged: dict[str, str] = {}
        """The error of each part that was logged last."""
        self._thread = threading.Thread(target=self._work, name="shadow", daemon=True)

    def start(self) -> None:
        """Begin to work in the background, in a moment: others start now, too."""
        self._pause.start()
        self._thread.start()

    def close(self) -> None:
        """Stop the work, for which it waits up to two seconds, and close the files."""
        self._stopping.set()
        with suppress(Full):
            self._waiting.put_nowait(None)
        if self._index is not None:
            self._index.interrupt()
        if self._thread.is_alive():
            self._thread.join(_CLOSE_SECONDS)
        self._store()
        if self._index is not None:
            self._index.close()

    # What users ask

    def record(self, queries: Sequence[str], options: SearchOptions, answers: Sequence[Answer]) -> None:
        """Take note of a search that was answered; a share of them is compared later, and never waited for."""
        if not options.counts or options.mode is Mode.KEYWORD or self._index is None or self._index.generation is None:
            return
        for query, answer in zip(queries, answers, strict=True):
            if answer.degraded is None and random.random() < self._settings.shadow_share:
                try:
                    self._waiting.put_nowait((query, options))
                except Full:
                    return

    def search(self, query: str, options: SearchOptions) -> tuple[SearchResult, str | None]:
        """Search the shadow index; return what it finds, and its commit. Errors: those of `ShadowIndex.search`."""
        index = self._index
        generation = index.generation if index else None
        if index is None or generation is None:
            problem = self.problem
            raise IndexUnavailableError(problem.message if problem else "the index of SEMANTIC_SHADOW_MODEL is not built yet")
        return index.search(query, options), generation.catalog.commit

    # The report

    def report(self) -> ModelComparison:
        """Return what was measured."""
        figures = self._current_figures()
        overlaps, *milliseconds = zip(*figures.searches, strict=True) if figures.searches else ((), (), ())
        judged = figures.judged or _Judged("", 0, 0.0)
        index = self._index
        generation = index.generation if index else None
        names = self._gate.recipe.embedder.name, index.recipe.embedder.name if index else str(self._settings.shadow_model)
        serving, shadow = map(_compared, names, milliseconds, (judged.serving, judged.shadow))
        return ModelComparison(
            serving=serving,
            shadow=shadow,
            is_ready=generation is not None,
            progress=index.progress.snapshot() if index else None,
            share=self._settings.shadow_share,
            since=figures.since,
            searches=len(overlaps),
            overlap_at_10=round(sum(overlaps) / len(overlaps), _DIGITS) if overlaps else None,
            judged_queries=judged.count,
        )

    def _current_figures(self) -> _Figures:
        """Return the figures of the two indexes as they are now; none while one of them is built."""
        serving, index = self._manager.serving, self._index
        if serving is not None and index is not None and index.generation is not None:
            with self._lock, suppress(CatalogError):
                if self._figures.recipes == (serving.fingerprint, index.recipe.fingerprint):
                    return msgspec.structs.replace(self._figures)
        return _Figures()

    @property
    def problem(self) -> Problem | None:
        """Why models are not compared now; None if they are."""
        error = next(iter(list(self._errors.values())), None)
        return None if error is None else Problem(_message(error), _HINT)

    # In the background

    def _work(self) -> None:
        while not self._stopping.is_set():
            if not self._pause.is_active:
                self._attempt(_INDEXING, self._follow)
            try:
                asked = self._waiting.get(timeout=max(self._pause.remaining, 0.01))
            except Empty:
                continue
            if asked is not None and not self._stopping.wait(_ANSWERED_SECONDS):
                self._attempt(_SEARCHING, partial(self._compare, *asked))

    def _attempt(self, name: str, work: Callable[[], None]) -> None:
        """Do a part of the work; keep its error, and log it if it is new."""
        try:
            work()
        except Stopped:
            return
        except Exception as error:
            if self._stopping.is_set():
                return
            message = _message(error)
            if message != self._logged.get(name):
                log.warning("%s", message, exc_info=None if isinstance(error, SemanticError | OSError) else error)
            self._errors[name], self._logged[name] = error, message
            if name == _INDEXING:
                self._pause.start(self._backoff.failed())
        else:
            self._errors.pop(name, None)
            self._logged.pop(name, None)

    def _follow(self) -> None:
        """Bring the shadow index to HEAD once the serving one is there, and ask the judged queries if they are due."""
        self._pause.start()
        serving = self._manager.stable_generation()
        if serving is None or not self._gate.recipe.matches_vectors(serving):
            return
        self._index = self._index or self._open()
        self._index.bring_to_head(serving)
        self._judge(serving, self._index)
        self._store()
        self._errors.pop(_SEARCHING, None)  # the next search tells
        self._backoff.reset()
        self._pause.start(_FOLLOW_SECONDS)

    def _compare(self, query: str, options: SearchOptions) -> None:
        """Ask both indexes a question for pages, one after the other, and record how they answer."""
        serving, index = self._manager.serving, self._index
        if serving is None or index is None or index.generation is None or not self._gate.recipe.matches_vectors(serving):
            return
        options = _for_pages(options)
        try:
            ours, our_milliseconds = self._timed(lambda: self._search_serving(serving, query, options))
        except SemanticError:  # users' searches report it
            return
        theirs, their_milliseconds = self._timed(lambda: index.search(query, options))
        pages, other_pages = ({hit.path for hit in found.hits} for found in (ours, theirs))
        if ours.degraded or theirs.degraded or not (pages or other_pages):
            return
        overlap = len(pages & other_pages) / max(len(pages), len(other_pages))
        row = round(overlap, _DIGITS), round(our_milliseconds, 2), round(their_milliseconds, 2)
        with self._lock:
            figures = self._figures_of(serving, index)
            figures.searches = [*figures.searches, row][-_MAX_SEARCHES:]
            self._is_stored = False

    def _judge(self, serving: Generation, index: ShadowIndex) -> None:
        """Ask both indexes the judged queries: once a day, and when the queries or one of the recipes changed."""
        try:
            queries = self._gate.read_queries()
        except ParameterError:  # reported in the status
            return
        asked, moment = fingerprint(queries), time.time()
        with self._lock:
            last = self._figures_of(serving, index).judged
            if last is not None and last.queries == asked and 0 <= moment - last.at < _DAY:
                return
        judged = _Judged(asked, len(queries), moment)
        if queries:
            judged.serving = means(self._gate.measure(serving, queries))
            judged.shadow = means([self._judged(index, each) for each in queries])
        with self._lock:
            self._figures_of(serving, index).judged = judged
            self._is_stored = False

    def _judged(self, index: ShadowIndex, judged: JudgedQuery) -> Metrics:
        found, _ = self._timed(lambda: index.search(judged.query, RANKED_PAGES))
        return score(judged, (hit.path for hit in found.hits))

    def _timed(self, search: Callable[[], SearchResult]) -> tuple[SearchResult, float]:
        """Return what a search finds and its milliseconds, after a rest. Errors: `Stopped`; those of the search."""
        start = time.perf_counter()
        found = search()
        seconds = time.perf_counter() - start
        if self._stopping.wait(_REST_FACTOR * seconds):
            raise Stopped
        return found, 1000 * seconds

    def _figures_of(self, serving: Generation, index: ShadowIndex) -> _Figures:
        """Return the figures, which begin anew with another recipe; call it with the lock."""
        recipes = serving.fingerprint, index.recipe.fingerprint
        if self._figures.recipes != recipes:
            self._figures = _Figures(recipes=recipes, since=now())
        return self._figures

    def _store(self) -> None:
        with self._lock:
            if self._is_stored:
                return
            try:
                write_atomically(self._file, json.dumps(to_builtins(self._figures)))
                self._is_stored = True
            except OSError as error:
                log.warning("the figures of the comparison cannot be stored: %s", error)


def _for_pages(options: SearchOptions) -> SearchOptions:
    """Return options for a ranking of pages, with the user's filters."""
    return structs.replace(
        options, n=_RANKED, limit=None, offset=0, max_chunks_per_page=1, rerank=False, context=0, facets=False, explain=False
    )


def _compared(name: str, milliseconds: Sequence[float], judged: Metrics) -> ComparedModel:
    shares = percentiles(milliseconds) if milliseconds else {}
    figures = {name: round(value, _DIGITS) for name, value in judged.items()}
    return ComparedModel(
        model=name,
        p50_ms=shares.get("p50"),
        p95_ms=shares.get("p95"),
        recall_at_10=figures.get("recall@10"),
        precision_at_10=figures.get("precision@10"),
        mrr=figures.get("mrr"),
    )


def _message(error: Exception) -> str:
    """Return what is wrong, with the names of the settings that this model has."""
    text = _SETTING.sub(lambda found: f"SEMANTIC_SHADOW{found[1] or '_MODEL'}", str(error) or type(error).__name__)
    return f"the model of SEMANTIC_SHADOW_MODEL is not compared: {text}"
