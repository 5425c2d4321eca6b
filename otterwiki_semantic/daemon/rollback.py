"""Roll back to the index that the serving one replaced: on request, or because searches became much worse.

The index of another model needs that model for queries. A rollback is therefore recorded in a file, together with the
settings that are in force until the configured ones change, and the index daemon restarts.
"""

from __future__ import annotations

import json
import logging
import threading
from contextlib import suppress
from statistics import fmean, median
from typing import Any

import msgspec

from otterwiki_semantic.core.errors import CatalogError, RollbackError, SemanticError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.core.records import ReindexStarted, Rollback
from otterwiki_semantic.core.settings import INDEX_SETTINGS, PREFIX, Settings, index_settings, with_index_settings
from otterwiki_semantic.core.telemetry import SearchEvent
from otterwiki_semantic.indexing import IndexManager, now
from otterwiki_semantic.storage import Generation

_WATCHED_ANSWERS = 200
_MAX_RATIO, _LEAST_SHARE = 1.5, 0.05
"""The largest share of degraded answers, relative to the previous index, and the share that is always acceptable."""
_MAX_LATENCY_RATIO, _LEAST_SECONDS = 2.0, 0.05
"""The longest median search, relative to the previous index, and the seconds that are always acceptable."""
_DEGRADED, _SECONDS, _CHOSEN = "degraded answers", "median seconds", "rollback chosen"
"""Facts in a catalog: the share of degraded answers and the median seconds of its last ones; whether a rollback involved it."""

log = logging.getLogger(__name__)


class _Record(msgspec.Struct):
    configured: dict[str, Any]
    """The settings configured at the time."""
    used: dict[str, Any]
    """The settings in force while the configured ones are unchanged."""
    at: str
    reason: str


class RollbackFile:
    """The record of a rollback in a data directory."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.data_dir / "rollback.json"
        self._configured = index_settings(settings)
        self._record = read_record(self._path, _Record, "the configured settings are in force")
        if self._record is not None and self._record.configured != self._configured:
            log.info("other settings are configured than those that were rolled back; they are in force")
            self._path.unlink(missing_ok=True)
            self._record = None

    def effective(self, settings: Settings) -> Settings:
        """Return the settings that are in force."""
        return settings if self._record is None else with_index_settings(settings, self._record.used)

    def write(self, used: dict[str, Any], reason: str) -> None:
        """Record a rollback to an index with these settings; for the configured settings, record that there is none."""
        self._write(None if used == self._configured else _Record(self._configured, used, now(), reason))

    def restore(self) -> None:
        """Restore the record after another rollback could not be completed."""
        with suppress(OSError):
            self._write(self._record)

    def _write(self, record: _Record | None) -> None:
        if record is None:
            self._path.unlink(missing_ok=True)
        else:
            write_atomically(self._path, json.dumps(msgspec.to_builtins(record), indent=1))

    @property
    def status(self) -> Rollback | None:
        """The rollback in force, or None for the configured settings."""
        record = self._record
        if record is None:
            return None
        unused = tuple(name for name in INDEX_SETTINGS if record.configured.get(name) != record.used.get(name))
        models = str(record.used.get("model")), str(record.configured.get("model"))
        return Rollback(record.at, record.reason, *models, tuple(f"{PREFIX}{name.upper()}" for name in unused))


class Rollbacks:
    """Roll the index back, and record that in a file for the next start: on request, or because searches became worse.

    The first 200 answers of a new index are compared with the last 200 of its predecessor. It is rolled back if the share of
    degraded answers is more than 50 % higher, or if the median search takes twice as long and more than 50 ms.
    """

    def __init__(self, manager: IndexManager, file: RollbackFile) -> None:
        self._manager = manager
        self._file = file
        self.is_done = False
        """Whether the index must be reopened with other settings."""
        self._lock = threading.Lock()
        self._watched = ""
        """The generation whose answers are recorded."""
        self._degraded: list[bool] = []
        self._seconds: list[float] = []

    def roll_back(self, reason: str = "an administrator asked for it") -> ReindexStarted:
        def record(previous: Generation, serving: Generation) -> None:
            for generation in (previous, serving):
                generation.catalog.set_meta(_CHOSEN, "1")
            self._file.write(previous.settings, reason)

        try:
            previous = self._manager.roll_back(record)
        except RollbackError:
            self._file.restore()
            raise
        self.is_done = True
        return ReindexStarted("started", generation=previous.name)

    def roll_back_automatically(self, reason: str) -> None:
        """Roll back a serving index that has become worse, unless a rollback has chosen it; failures are logged."""
        serving = self._manager.serving
        try:
            if serving is None or serving.catalog.meta(_CHOSEN) is not None:
                return
            self.roll_back(reason)
        except SemanticError as error:
            log.warning("searches are worse than before (%s), and the index is not rolled back: %s", reason, error)
        else:
            log.warning("the index was rolled back: %s", reason)

    def record_search(self, search: SearchEvent) -> None:
        """Record the answers of a search, if the serving index is complete and its own model embedded the queries."""
        generation, previous = self._manager.serving, self._manager.previous.generation
        if generation is None or not search.counts or any(answer.index.progress for answer in search.answers):
            return
        if self._manager.model.why_keywords_only(generation) is not None:
            return
        with self._lock:
            if generation.name != self._watched:
                self._watched, self._degraded, self._seconds = generation.name, [], []
            self._degraded += [answer.degraded is not None for answer in search.answers]
            self._seconds += [search.seconds / len(search.answers)] * len(search.answers)
            if len(self._degraded) < _WATCHED_ANSWERS:
                return
            share, seconds = fmean(self._degraded), median(self._seconds)
            self._degraded, self._seconds = [], []
        try:
            is_first = generation.catalog.meta(_DEGRADED) is None
            generation.catalog.set_meta(_DEGRADED, f"{share:.4f}")
            generation.catalog.set_meta(_SECONDS, f"{seconds:.6f}")
            if previous is None or not is_first:
                return
            reason = _why_worse(previous, share, seconds)
        except CatalogError as error:
            log.warning("how searches went was not recorded: %s", error)
            return
        if reason is not None:
            self._manager.scheduler.run_in(0, "rollback", lambda: self.roll_back_automatically(reason))


def _why_worse(previous: Generation, share: float, seconds: float) -> str | None:
    """Return how the answers of a new index are worse than the previous one's; None if they are not."""
    degraded, before = previous.catalog.meta(_DEGRADED), previous.catalog.meta(_SECONDS)
    if degraded is not None and share > max(float(degraded) * _MAX_RATIO, _LEAST_SHARE):
        return f"{share:.0%} of {_WATCHED_ANSWERS} answers were degraded, and {float(degraded):.0%} before"
    if before is not None and seconds >= _LEAST_SECONDS and seconds > float(before) * _MAX_LATENCY_RATIO:
        return f"the median search took {seconds * 1000:.0f} ms, and {float(before) * 1000:.0f} ms before"
    return None
