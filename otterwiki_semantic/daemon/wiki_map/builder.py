"""Build the map of the wiki when it is due, store it, and position pages that are newer than it.

A map costs up to half a minute of one core, so it is not rebuilt after every save, but after twenty times as long as the last
one took. New pages are shown at once, between the pages nearest to them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import MapError
from otterwiki_semantic.core.files import write_atomically
from otterwiki_semantic.core.records import Freshness, MapPoint, MapState, PageUrls, WikiMap
from otterwiki_semantic.daemon.wiki_map.clusters import cluster_names
from otterwiki_semantic.daemon.wiki_map.process import ProjectionProcess
from otterwiki_semantic.daemon.wiki_map.projection import MIDDLE, Places, framed, near_places
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage import Generation

_DELAY_SECONDS = 1.0
"""Wait a moment: the index may change again, or its process end."""
_MIN_PAUSE_SECONDS, _PAUSE_FACTOR = 30.0, 20
"""Pause after a map: at least this long, and this many times as long as it took, which is a twentieth of one core at most."""
_RETRY_SECONDS = 600.0
"""Pause after a failure."""
_DIGITS = 5
_OFF = "the map is switched off; set SEMANTIC_MAP=true"

Place = tuple[float, float]

log = logging.getLogger(__name__)


class WikiMapBuilder:
    """Builds and serves the map of one data directory.

    `stable` returns the serving generation if it may be mapped now; `schedule` calls a function after some seconds, and
    replaces what was scheduled before.
    """

    def __init__(
        self, file: Path, stable: Callable[[], Generation | None], schedule: Callable[[float, Callable[[], None]], None]
    ) -> None:
        self._file = file
        self._stable = stable
        self._schedule = schedule
        self._map = read_map(file)
        self._process = ProjectionProcess()
        self._is_stopped = False
        self._is_stored = True
        self._building = threading.Lock()
        self._answering = threading.Lock()
        self._points: tuple[tuple[object, ...], tuple[MapPoint, ...]] = (), ()
        self._seen: tuple[str, str | None] | None = None
        """The generation and revision that the map is known to show."""
        self._message: str | None = None
        rested = _seconds_since(self._map.made) if self._map else 0.0
        self._cooldown = Cooldown(_DELAY_SECONDS)
        self._cooldown.start(max(_DELAY_SECONDS, _pause_after(self._map) - rested))

    def stop(self) -> None:
        """Stop building, and build no other map."""
        self._is_stopped = True
        self._process.stop()

    # Building

    def refresh_if_due(self) -> None:
        """Build a map if the index has changed since the last one; schedule it if it is not due yet."""
        if not self._building.acquire(blocking=False):
            self._schedule(_DELAY_SECONDS, self.refresh_if_due)
            return
        try:
            generation = self._stable()
            if generation is None or self._seen == _state_of(generation):
                return
            if self._cooldown.is_active:
                self._schedule(self._cooldown.remaining, self.refresh_if_due)
            else:
                self._build(generation)
        except Exception as error:  # noqa: BLE001 - the outermost frame of the job
            self._fail(error)
        finally:
            self._building.release()

    def _build(self, generation: Generation) -> None:
        with generation.catalog.snapshot():
            state, blobs = _state_of(generation), generation.catalog.blobs()
            content = _content(generation.vector_fingerprint, blobs)
            paths = sorted(blobs)
            is_other = self._map is None or self._map.content != content
            vectors = _vectors(generation, paths) if is_other else None
            titles = {path: title for path, title, _ in generation.catalog.pages.labels()} if is_other else {}
        if vectors is not None:
            begin = time.monotonic()
            places = self._process.project(vectors, _last_places(self._map, paths))
            clusters = cluster_names(paths, titles, vectors)
            made = _map_of(content, paths, places, clusters, time.monotonic() - begin)
            self._message = None
            self._map, self._is_stored = made, False
            self._cooldown.start(_pause_after(made))
            log.info("a map of %d pages was made in %.1f s", len(paths), made.seconds)
            self._schedule(_pause_after(made), self.refresh_if_due)
        self._store()
        self._seen, self._message = state, None

    def _store(self) -> None:
        """Write the map, unless it is written already."""
        if self._map is None or self._is_stored:
            return
        try:
            write_map(self._file, self._map)
        except OSError as error:
            hint = "make room on the disk of the data directory, or let the wiki's user write to it"
            raise MapError(f"the map cannot be stored: {error}; {hint}") from error
        self._is_stored = True

    def _fail(self, error: Exception) -> None:
        if self._is_stopped:
            return
        self._message = str(error)
        self._cooldown.start(_RETRY_SECONDS)
        log.warning("%s", error, exc_info=None if isinstance(error, MapError) else error)

    # Answering

    def answer(self, generation: Generation | None, index: Freshness, urls: PageUrls) -> WikiMap:
        """Return the map with the current pages of a generation; call it within `Catalog.snapshot`."""
        made, message = self._map, self._message
        if generation is None or generation.catalog.pages.is_empty:
            waits = index.head is not None and (index.commit is None or index.pending_pages)
            return WikiMap((), 0, MapState.MAKING if waits else MapState.EMPTY, None, index, message)
        if made is None:
            return WikiMap((), 0, MapState.UNAVAILABLE if message else MapState.MAKING, None, index, message)
        points = self._points_of(generation, made, urls)
        return WikiMap(points, len(points), MapState.READY, made.made, index, message)

    def _points_of(self, generation: Generation, made: StoredMap, urls: PageUrls) -> tuple[MapPoint, ...]:
        """Return the points, cached until the map or the catalog changes."""
        state = (*_state_of(generation), made.made, made.content, urls)
        with self._answering:
            known, points = self._points
            if known != state:
                points = tuple(_points(generation, made, urls))
                self._points = state, points
        return points


def switched_off(index: Freshness) -> WikiMap:
    """Return the answer if SEMANTIC_MAP is off."""
    return WikiMap((), 0, MapState.UNAVAILABLE, None, index, _OFF)


def _state_of(generation: Generation) -> tuple[str, str | None]:
    return generation.name, generation.catalog.meta("revision")


def _content(recipe: str | None, blobs: dict[str, str]) -> str:
    """Return a fingerprint of pages and their vectors: the same texts have the same vectors in one model."""
    lines = "\n".join(f"{blob} {path}" for path, blob in sorted(blobs.items()))
    return hashlib.sha256(f"{recipe}\n{lines}".encode()).hexdigest()[:16]


def _vectors(generation: Generation, paths: Sequence[str]) -> Matrix:
    """Return the mean vector of each page; zeros if it has none, so that such pages are placed together."""
    known, means = generation.catalog.reader.exact_index().page_means()
    row = {path: number for number, path in enumerate(known)}
    whole = np.vstack((means, np.zeros((1, means.shape[1]), dtype=np.float32)))
    return whole[[row.get(path, len(known)) for path in paths]]


def _last_places(last: StoredMap | None, paths: Sequence[str]) -> Places:
    """Return the positions of pages on the last map, in the projection's units; NaN for pages that it does not have."""
    if last is None:
        return np.full((len(paths), 2), np.nan)
    places = np.array([last.places.get(path, (np.nan, np.nan)) for path in paths], dtype=np.float64).reshape(-1, 2)
    return (places - MIDDLE) * last.span


def _map_of(content: str, paths: Sequence[str], places: Places, clusters: dict[str, str], seconds: float) -> StoredMap:
    inside, span = framed(places)
    found = {path: (x, y) for path, (x, y) in zip(paths, inside.round(_DIGITS).tolist(), strict=True)}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return StoredMap(content, now, round(seconds, 3), span, found, clusters)


def _points(generation: Generation, made: StoredMap, urls: PageUrls) -> list[MapPoint]:
    labels = generation.catalog.pages.labels()
    missing = [path for path, _, _ in labels if path not in made.places]
    new = _place_new_pages(generation, made, [path for path, _, _ in labels], missing) if missing else {}
    return [
        MapPoint(
            path, title, page_name(path), *place, _folder(path), category, path in new, urls.of(path), made.clusters.get(path)
        )
        for path, title, category in labels
        for place in [new.get(path) or made.places[path]]
    ]


def _place_new_pages(generation: Generation, made: StoredMap, paths: Sequence[str], missing: Sequence[str]) -> dict[str, Place]:
    """Return positions for pages missing on the map: between the nearest pages on it, or the middle if it has none."""
    known = [path for path in paths if path in made.places]
    if not known:
        return dict.fromkeys(missing, (MIDDLE, MIDDLE))
    vectors = _vectors(generation, [*missing, *known])
    places = np.array([made.places[path] for path in known])
    found = near_places(vectors[: len(missing)], vectors[len(missing) :], places).round(_DIGITS)
    return {path: (x, y) for path, (x, y) in zip(missing, found.tolist(), strict=True)}


def _folder(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _pause_after(made: StoredMap | None) -> float:
    return 0.0 if made is None else max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * made.seconds)


def _seconds_since(moment: str) -> float:
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A map as it is stored in the data directory."""

    content: str
    """Fingerprint of the pages and vectors that it shows."""
    made: str
    """When it was built, ISO 8601 in UTC."""
    seconds: float
    """How long that took."""
    span: float
    """What 1 stands for in the projection's own units."""
    places: dict[str, Place]
    """Positions by path, from 0 to 1 in both directions."""
    clusters: dict[str, str]
    """The names of the pages' clusters by path."""


def read_map(path: Path) -> StoredMap | None:
    """Read the stored map; None if there is none or it is corrupt."""
    try:
        values = json.loads(path.read_bytes())
        places = {page: (float(x), float(y)) for page, (x, y) in values.pop("places").items()}
        found = StoredMap(**values, places=places)
        is_sound = all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places.values()) and 0 < found.span < float("inf")
        has_names = all(isinstance(name, str) for name in found.clusters.values())
        return found if is_sound and has_names and found.seconds >= 0 else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("the map cannot be read and is built again: %s", error)
        return None


def write_map(path: Path, made: StoredMap) -> None:
    """Store a map in place of the last one. Errors: `OSError`."""
    write_atomically(path, json.dumps(asdict(made), separators=(",", ":")))
