"""Keeps a map of the wiki: when it is made, what of, and where pages stand that came since.

A map costs seconds to half a minute of one core, so that it is not made for every save: it rests for twenty times as long
as the last one took. Which pages there are shows at once all the same: those that are new stand amid those nearest to them.
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
from otterwiki_semantic.core.errors import MapError
from otterwiki_semantic.core.files import write_atomically
from otterwiki_semantic.core.records import Freshness, MapPoint, MapState, PageUrls, WikiMap
from otterwiki_semantic.daemon.wiki_map.process import ProjectionProcess
from otterwiki_semantic.daemon.wiki_map.projection import MIDDLE, Places, framed, near_places
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage import Generation

_FIRST_SECONDS = 1.0
"""What was just built may be changed again, or its process end, in a moment."""
_LEAST_REST_SECONDS, _REST = 30.0, 20
"""A map rests for so long at least, and for so many times as long as it took: a twentieth of one core at most."""
_AGAIN_SECONDS = 600.0
"""How long one that could not be made is left alone."""
_DIGITS = 5
_OFF = "the map is switched off; set SEMANTIC_MAP=true"

log = logging.getLogger(__name__)


class WikiMapBuilder:
    """The map of one data directory.

    `settled` gives the generation that serves if it may be mapped now; `run_in` runs something after so many seconds, in place
    of what it was asked for before.
    """

    def __init__(
        self, file: Path, settled: Callable[[], Generation | None], run_in: Callable[[float, Callable[[], None]], None]
    ) -> None:
        self._file = file
        self._settled = settled
        self._run_in = run_in
        self._map = read_map(file)
        self._process = ProjectionProcess()
        self._is_stopped = False
        self._is_kept = True
        self._making = threading.Lock()
        self._answering = threading.Lock()
        self._points: tuple[tuple[object, ...], tuple[MapPoint, ...]] = (), ()
        self._seen: tuple[str, str | None] | None = None
        """The generation and revision that the map was last found to be of."""
        self._message: str | None = None
        rested = _seconds_since(self._map.made) if self._map else 0.0
        self._not_before = time.monotonic() + max(_FIRST_SECONDS, _rest_after(self._map) - rested)

    def stop(self) -> None:
        """End the making of a map, and begin no other."""
        self._is_stopped = True
        self._process.stop()

    # Making it

    def look(self) -> None:
        """Make a map of what the index holds now, unless the last one is of the same; at the time when it is due."""
        if not self._making.acquire(blocking=False):
            self._run_in(_FIRST_SECONDS, self.look)
            return
        try:
            generation = self._settled()
            if generation is None or self._seen == _state_of(generation):
                return
            rest = self._not_before - time.monotonic()
            if rest > 0:
                self._run_in(rest, self.look)
            else:
                self._make(generation)
        except Exception as error:  # noqa: BLE001 - the job's outermost frame: nothing above would tell anybody
            self._fail(error)
        finally:
            self._making.release()

    def _make(self, generation: Generation) -> None:
        with generation.catalog.snapshot():
            state, blobs = _state_of(generation), generation.catalog.blobs()
            content = _content(generation.vector_fingerprint, blobs)
            paths = sorted(blobs)
            is_other = self._map is None or self._map.content != content
            vectors = _vectors(generation, paths) if is_other else None
        if vectors is not None:
            begin = time.monotonic()
            places = self._process.project(vectors, _last_places(self._map, paths))
            made = _map_of(content, paths, places, time.monotonic() - begin)
            self._message = None
            self._map, self._is_kept, self._not_before = made, False, time.monotonic() + _rest_after(made)
            log.info("a map of %d pages was made in %.1f s", len(paths), made.seconds)
            self._run_in(_rest_after(made), self.look)
        self._keep()
        self._seen, self._message = state, None

    def _keep(self) -> None:
        """Write the map, unless that was done."""
        if self._map is None or self._is_kept:
            return
        try:
            write_map(self._file, self._map)
        except OSError as error:
            what_to_do = "make room on the disk of the data directory, or let the wiki's user write to it"
            raise MapError(f"the map cannot be kept: {error}; {what_to_do}") from error
        self._is_kept = True

    def _fail(self, error: Exception) -> None:
        if self._is_stopped:
            return
        self._message = str(error)
        self._not_before = time.monotonic() + _AGAIN_SECONDS
        log.warning("%s", error, exc_info=None if isinstance(error, MapError) else error)

    # Telling it

    def answer(self, generation: Generation | None, index: Freshness, urls: PageUrls) -> WikiMap:
        """Return the map with the pages that the generation has now; call it within `Catalog.snapshot`."""
        made, message = self._map, self._message
        if generation is None or generation.catalog.pages.is_empty:
            waits = index.head is not None and (index.commit is None or index.pending_pages)
            return WikiMap((), 0, MapState.MAKING if waits else MapState.EMPTY, None, index, message)
        if made is None:
            return WikiMap((), 0, MapState.UNAVAILABLE if message else MapState.MAKING, None, index, message)
        points = self._points_of(generation, made, urls)
        return WikiMap(points, len(points), MapState.READY, made.made, index, message)

    def _points_of(self, generation: Generation, made: StoredMap, urls: PageUrls) -> tuple[MapPoint, ...]:
        """Give the points; they are remembered until the map or the catalog changes."""
        state = (*_state_of(generation), made.made, made.content, urls)
        with self._answering:
            known, points = self._points
            if known != state:
                points = tuple(_points(generation, made, urls))
                self._points = state, points
        return points


def switched_off(index: Freshness) -> WikiMap:
    """Give the answer of a wiki that wants no map."""
    return WikiMap((), 0, MapState.UNAVAILABLE, None, index, _OFF)


def _state_of(generation: Generation) -> tuple[str, str | None]:
    return generation.name, generation.catalog.meta("revision")


def _content(recipe: str | None, blobs: dict[str, str]) -> str:
    """Tell pages and their vectors from others: the same texts of one model have the same vectors."""
    lines = "\n".join(f"{blob} {path}" for path, blob in sorted(blobs.items()))
    return hashlib.sha256(f"{recipe}\n{lines}".encode()).hexdigest()[:16]


def _vectors(generation: Generation, paths: Sequence[str]) -> Matrix:
    """Give the mean vector of each page. One without any gets zeros: such pages stand together."""
    known, means = generation.catalog.reader.exact_index().page_means()
    row = {path: number for number, path in enumerate(known)}
    whole = np.vstack((means, np.zeros((1, means.shape[1]), dtype=np.float32)))
    return whole[[row.get(path, len(known)) for path in paths]]


def _last_places(last: StoredMap | None, paths: Sequence[str]) -> Places:
    """Give the places of pages on the last map, in the projection's units; NaN for those that it has not."""
    if last is None:
        return np.full((len(paths), 2), np.nan)
    places = np.array([last.places.get(path, (np.nan, np.nan)) for path in paths], dtype=np.float64).reshape(-1, 2)
    return (places - MIDDLE) * last.span


def _map_of(content: str, paths: Sequence[str], places: Places, seconds: float) -> StoredMap:
    inside, span = framed(places)
    found = {path: (x, y) for path, (x, y) in zip(paths, inside.round(_DIGITS).tolist(), strict=True)}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return StoredMap(content, now, round(seconds, 3), span, found)


def _points(generation: Generation, made: StoredMap, urls: PageUrls) -> list[MapPoint]:
    labels = generation.catalog.pages.labels()
    missing = [path for path, _, _ in labels if path not in made.places]
    new = _places_amid(generation, made, [path for path, _, _ in labels], missing) if missing else {}
    return [
        MapPoint(path, title, page_name(path), *place, _folder(path), category, path in new, urls.of(path))
        for path, title, category in labels
        for place in [new.get(path) or made.places[path]]
    ]


def _places_amid(generation: Generation, made: StoredMap, paths: Sequence[str], missing: Sequence[str]) -> dict[str, Place]:
    """Give places for pages that the map does not have: amid the nearest of those that it has, else in the middle."""
    known = [path for path in paths if path in made.places]
    if not known:
        return dict.fromkeys(missing, (MIDDLE, MIDDLE))
    vectors = _vectors(generation, [*missing, *known])
    places = np.array([made.places[path] for path in known])
    found = near_places(vectors[: len(missing)], vectors[len(missing) :], places).round(_DIGITS)
    return {path: (x, y) for path, (x, y) in zip(missing, found.tolist(), strict=True)}


def _folder(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _rest_after(made: StoredMap | None) -> float:
    return 0.0 if made is None else max(_LEAST_REST_SECONDS, _REST * made.seconds)


def _seconds_since(moment: str) -> float:
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


Place = tuple[float, float]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredMap:
    """A map that was made: of what `content`, when (ISO 8601 in UTC), in how many seconds, and each page's place by path.

    Places are 0 to 1 in both directions; `span` is what 1 stands for in the projection's own units.
    """

    content: str
    made: str
    seconds: float
    span: float
    places: dict[str, Place]


def read_map(path: Path) -> StoredMap | None:
    """Give the map that was kept; None if there is none that can be read."""
    try:
        values = json.loads(path.read_bytes())
        places = {page: (float(x), float(y)) for page, (x, y) in values.pop("places").items()}
        found = StoredMap(**values, places=places)
        is_sound = all(0 <= x <= 1 and 0 <= y <= 1 for x, y in places.values()) and 0 < found.span < float("inf")
        return found if is_sound and found.seconds >= 0 else None
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("the map cannot be read, and is made again: %s", error)
        return None


def write_map(path: Path, made: StoredMap) -> None:
    """Keep a map in place of the last one. Errors: `OSError`."""
    write_atomically(path, json.dumps(asdict(made), separators=(",", ":")))
