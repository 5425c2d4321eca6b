"""Build the map of the wiki when it is due, store it, and position newer pages on it.

A map takes up to half a minute of one core. It is therefore not rebuilt after every save, but after twenty times the duration
of the last build. New pages appear at once, between the pages nearest to them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct, to_builtins

from otterwiki_semantic.content.pages import page_name, parent_path
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import LimitExceededError, MapError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.records import NO_URLS, MapPoint, MapState, PageUrls, WikiMap
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.daemon.serving_reader import ServingReader, State, state_of
from otterwiki_semantic.daemon.wiki_map.projection import MIDDLE, Labels, Places, framed, near_places, project
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.indexing import IndexManager, now
from otterwiki_semantic.storage import Generation

_DELAY_SECONDS = 1.0
"""Wait briefly: the index may change again, or its process exit."""
_MIN_PAUSE_SECONDS, _PAUSE_FACTOR = 30.0, 20
"""The pause after a map: at least this long, and this multiple of its duration, which is at most a twentieth of one core."""
_RETRY_SECONDS = 600.0
_TIMEOUT_SECONDS, _IDLE_SECONDS, _NICENESS, _MEMORY_BYTES = 3600.0, 1.0, 10, 8 << 30
_DIGITS = 5
_VERSION = 4
"""Counts changes to how maps are made. Maps of earlier versions are made again."""
_SLOT = "map"
_OFF = "the map is switched off; add map to SEMANTIC_PAGES"
_FULL = "make room on the disk of the data directory, or let the wiki's user write to it"

_Share = Annotated[float, Meta(ge=0, le=1)]
Place = tuple[_Share, _Share]

log = logging.getLogger(__name__)


class StoredMap(Struct, frozen=True):
    """A map, as stored in the data directory."""

    content: str
    """Fingerprint of its pages and vectors."""
    made: str
    """When it was built, ISO 8601 in UTC."""
    seconds: Annotated[float, Meta(ge=0)]
    """The duration of the build."""
    span: Annotated[float, Meta(gt=0)]
    """The length of the unit square's side in the projection's own units."""
    places: dict[str, Place]
    """Positions by path, from 0 to 1 in both directions."""
    clusters: dict[str, str]
    """The names of the pages' groups by path."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next map."""
        return max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * self.seconds)


class WikiMapBuilder:
    """Build and serve the map of one data directory."""

    def __init__(self, settings: Settings, manager: IndexManager, reader: ServingReader) -> None:
        self._file = settings.data_dir / "map.json"
        self._is_on = "map" in settings.pages
        self._manager = manager
        self._reader = reader
        self._map = read_record(self._file, StoredMap, "the map is made again") if self._is_on else None
        self._worker = WorkerProcess(_IDLE_SECONDS, _NICENESS, _MEMORY_BYTES)
        self._is_stopped = False
        self._answering = threading.Lock()
        self._points: tuple[tuple[object, ...], tuple[MapPoint, ...]] = (), ()
        self._seen: State | None = None
        self._message: str | None = None
        self._cooldown = Cooldown(_DELAY_SECONDS)
        self._cooldown.start(max(_DELAY_SECONDS, self._map.pause - _seconds_since(self._map.made)) if self._map else None)

    def stop(self) -> None:
        """Stop building."""
        self._is_stopped = True
        self._worker.close()

    def refresh(self, seconds: float = 0.0) -> None:
        """Build a map in the background after a pause, if the index has changed since the last one and it is due."""
        if self._is_on:
            self._manager.scheduler.run_in(seconds, _SLOT, self._build_if_due)

    def _build_if_due(self) -> None:
        try:
            generation = self._manager.stable_generation()
            if generation is None or self._seen == state_of(generation):
                return
            if self._cooldown.is_active:
                self.refresh(self._cooldown.remaining)
            else:
                self._make(generation)
        except Exception as error:  # noqa: BLE001 - the outermost frame of the job
            self._fail(error)

    def _make(self, generation: Generation) -> None:
        with generation.catalog.snapshot():
            state, blobs = state_of(generation), generation.catalog.pages.blobs()
            content = _content(generation.vector_fingerprint, blobs)
            is_other = self._map is None or self._map.content != content
            labels = {path: labels_of(path, title) for path, title, _ in generation.catalog.pages.labels()} if is_other else {}
            vectors = _vectors(generation, list(labels)) if is_other else None
        made = self._map
        if vectors is not None:
            made = self._build(content, labels, vectors)
            self._message = None
            self._cooldown.start(made.pause)
            log.info("a map of %d pages was made in %.1f s", len(labels), made.seconds)
            self.refresh(made.pause)
        try:
            write_atomically(self._file, json.dumps(to_builtins(made), separators=(",", ":")))
        except OSError as error:
            raise MapError(f"the map cannot be stored: {error}; {_FULL}") from error
        finally:
            self._map = made  # after the file, so that no stop loses the places that somebody has seen
        self._seen, self._message = state, None

    def _build(self, content: str, labels: Mapping[str, Labels], vectors: Matrix) -> StoredMap:
        begin = time.monotonic()
        try:
            found, groups = self._worker.call(
                _TIMEOUT_SECONDS, project, vectors, _last_places(self._map, list(labels)), list(labels.values())
            )
        except ImportError as error:
            raise MapError(
                f"the map cannot be made, because scikit-learn is not installed: {pip_install('map')}, then restart the wiki "
                f"({error})"
            ) from error
        except LimitExceededError as error:
            raise MapError(f"making the map {error}; it is retried automatically") from error
        inside, span = framed(found)
        places = {path: (x, y) for path, (x, y) in zip(labels, inside.round(_DIGITS).tolist(), strict=True)}
        clusters = {path: name for path, name in zip(labels, groups, strict=True) if name}
        return StoredMap(content, now(), round(time.monotonic() - begin, 3), span, places, clusters)

    def _fail(self, error: Exception) -> None:
        if self._is_stopped:
            return
        self._message = str(error)
        self._cooldown.start(_RETRY_SECONDS)
        level = logging.INFO if isinstance(error.__cause__, ImportError) else logging.WARNING  # scikit-learn is optional
        log.log(level, "%s", error, exc_info=None if isinstance(error, MapError) else error)

    def map(self, urls: PageUrls = NO_URLS) -> WikiMap:
        """Return the map with the current pages."""
        return self._reader.ask(lambda generation: self._answer(generation, urls)) or self._answer(None, urls)

    def _answer(self, generation: Generation | None, urls: PageUrls) -> WikiMap:
        made, message, index = self._map, self._message, self._reader.freshness(generation)
        if not self._is_on:
            return WikiMap((), 0, MapState.UNAVAILABLE, None, index, _OFF)
        if generation is None or not generation.catalog.counts().pages:
            waits = index.head is not None and (index.commit is None or index.pending_pages)
            return WikiMap((), 0, MapState.MAKING if waits else MapState.EMPTY, None, index, message)
        if made is None:
            return WikiMap((), 0, MapState.UNAVAILABLE if message else MapState.MAKING, None, index, message)
        points = self._points_of(generation, made, urls)
        return WikiMap(points, len(points), MapState.READY, made.made, index, message)

    def _points_of(self, generation: Generation, made: StoredMap, urls: PageUrls) -> tuple[MapPoint, ...]:
        """Return the points, cached until the map or the catalog changes."""
        state = (*state_of(generation), made.made, made.content, urls)
        with self._answering:
            known, points = self._points
            if known != state:
                points = tuple(_points(generation, made, urls))
                self._points = state, points
        return points


def _content(recipe: str | None, blobs: dict[str, str]) -> str:
    """Return a fingerprint of the map's form, pages and vectors: with one model, equal texts have equal vectors."""
    lines = "\n".join(f"{blob} {path}" for path, blob in sorted(blobs.items()))
    return hashlib.sha256(f"{_VERSION}\n{recipe}\n{lines}".encode()).hexdigest()[:16]


def labels_of(path: str, title: str) -> Labels:
    """Return the title of a page, and the names of its folders in words."""
    return [title, *parent_path(path).replace("-", " ").replace("_", " ").split("/")]


def _vectors(generation: Generation, paths: Sequence[str]) -> Matrix:
    """Return the mean vector of each page, or zeros for a page without one, so that such pages are placed together."""
    known, means = generation.catalog.reader.exact_index().page_means()
    row = {path: number for number, path in enumerate(known)}
    whole = np.vstack((means, np.zeros((1, means.shape[1]), dtype=np.float32)))
    return whole[[row.get(path, len(known)) for path in paths]]


def _last_places(last: StoredMap | None, paths: Sequence[str]) -> Places:
    """Return the positions of pages on the last map, in the projection's units; NaN for new pages."""
    if last is None:
        return np.full((len(paths), 2), np.nan)
    places = np.array([last.places.get(path, (np.nan, np.nan)) for path in paths], dtype=np.float64).reshape(-1, 2)
    return (places - MIDDLE) * last.span


def _points(generation: Generation, made: StoredMap, urls: PageUrls) -> list[MapPoint]:
    labels = generation.catalog.pages.labels()
    new = _new_places(generation, made, [path for path, _, _ in labels])
    points = []
    for path, title, category in labels:
        (x, y), is_new, cluster = new.get(path) or made.places[path], path in new, made.clusters.get(path)
        folder = path.partition("/")[0] if "/" in path else ""
        points.append(MapPoint(path, title, page_name(path), x, y, folder, category, is_new, urls.of(path), cluster))
    return points


def _new_places(generation: Generation, made: StoredMap, paths: Sequence[str]) -> dict[str, Place]:
    """Return positions for pages missing on the map: between the nearest pages on it, or the middle if it has none."""
    missing, known = [path for path in paths if path not in made.places], [path for path in paths if path in made.places]
    if not missing or not known:
        return dict.fromkeys(missing, (MIDDLE, MIDDLE))
    vectors = _vectors(generation, [*missing, *known])
    places = np.array([made.places[path] for path in known])
    found = near_places(vectors[: len(missing)], vectors[len(missing) :], places).round(_DIGITS)
    return {path: (x, y) for path, (x, y) in zip(missing, found.tolist(), strict=True)}


def _seconds_since(moment: str) -> float:
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
