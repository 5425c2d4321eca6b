"""Return to the index that the serving one replaced: by request, or because searches became much worse.

The index of another model needs that model for queries. So a rollback is recorded in a file, with the settings that are in
force until others are configured, and the index daemon starts again.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np

from otterwiki_semantic.core.errors import CatalogError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.core.records import Answer, Rollback
from otterwiki_semantic.core.settings import Settings, index_settings, with_index_settings
from otterwiki_semantic.storage import Generation

_WATCHED_SEARCHES = 200
_MAX_DEGRADED_RATIO, _LEAST_DEGRADED = 1.5, 0.05
_MAX_P95_RATIO, _LEAST_P95_SECONDS = 2.0, 0.25
"""What a new index may be worse by, and what is never too bad: noise, and the price of a better model."""
_SEARCHES, _SEARCHES_BEFORE = "searches", "searches before"
"""Facts in a catalog: how its own last searches went, and how those of the index that it replaced."""

log = logging.getLogger(__name__)


class _Record(msgspec.Struct):
    """The file of a rollback."""

    configured: dict[str, Any]
    """The settings that were configured then."""
    used: dict[str, Any]
    """Those that are in force as long as the same are configured."""
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
        """Record a rollback to an index with these settings; if they are the configured ones, that nothing is rolled back."""
        if used == self._configured:
            self._path.unlink(missing_ok=True)
        else:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            self._write(_Record(self._configured, used, at, reason))

    def restore(self) -> None:
        """Record again what is in force: another rollback could not be completed."""
        with suppress(OSError):
            if self._record is None:
                self._path.unlink(missing_ok=True)
            else:
                self._write(self._record)

    def _write(self, record: _Record) -> None:
        write_atomically(self._path, json.dumps(msgspec.to_builtins(record), indent=1))

    @property
    def status(self) -> Rollback | None:
        """The rollback that is in force; None: the configured settings are."""
        record = self._record
        if record is None:
            return None
        return Rollback(record.at, record.reason, str(record.used.get("model")), str(record.configured.get("model")))


class SearchSummary(msgspec.Struct):
    """How 200 searches of one index went."""

    degraded: float
    """Share of answers that lacked a half of the search."""
    p95: float
    """Seconds in which 95 % were answered."""


class SwapWatch:
    """Compares the first 200 searches of a new index with the last 200 of the one that it replaced.

    `roll_back` is called with the reason if they are much worse.
    """

    def __init__(self, roll_back: Callable[[str], None]) -> None:
        self._roll_back = roll_back
        self._lock = threading.Lock()
        self._generation = ""
        self._searches: list[tuple[float, bool]] = []

    def record(self, generation: Generation, answers: Sequence[Answer], seconds: float) -> None:
        """Record answers of an index whose own model embedded their queries."""
        with self._lock:
            if generation.name != self._generation:
                self._generation, self._searches = generation.name, []
            self._searches += [(seconds / len(answers), answer.degraded is not None) for answer in answers]
            if len(self._searches) < _WATCHED_SEARCHES:
                return
            found, self._searches = _summary(self._searches), []
        try:
            self._compare(generation, found)
        except CatalogError as error:
            log.warning("how searches went was not recorded: %s", error)

    def _compare(self, generation: Generation, found: SearchSummary) -> None:
        catalog = generation.catalog
        catalog.set_meta(_SEARCHES, msgspec.json.encode(found).decode())
        before = catalog.meta(_SEARCHES_BEFORE)
        if before is not None:
            catalog.set_meta(_SEARCHES_BEFORE, None)
            reason = _reason(msgspec.json.decode(before, type=SearchSummary), found)
            if reason is not None:
                self._roll_back(reason)


def begin_watch(new: Generation, replaced: Generation) -> None:
    """Let the first searches of an index be compared with the last ones of the index that it replaces."""
    new.catalog.set_meta(_SEARCHES_BEFORE, replaced.catalog.meta(_SEARCHES))


def end_watch(generation: Generation) -> None:
    """Compare an index no longer: an administrator has chosen."""
    generation.catalog.set_meta(_SEARCHES_BEFORE, None)


def _summary(searches: Sequence[tuple[float, bool]]) -> SearchSummary:
    seconds, degraded = zip(*searches, strict=True)
    return SearchSummary(float(np.mean(degraded)), float(np.percentile(seconds, 95)))


def _reason(before: SearchSummary, after: SearchSummary) -> str | None:
    """Return why an index should not serve; None if it may."""
    if after.degraded > max(before.degraded * _MAX_DEGRADED_RATIO, _LEAST_DEGRADED):
        return f"{after.degraded:.0%} of {_WATCHED_SEARCHES} answers were degraded, and {before.degraded:.0%} before"
    if after.p95 > max(before.p95 * _MAX_P95_RATIO, _LEAST_P95_SECONDS):
        return (
            f"95 % of {_WATCHED_SEARCHES} searches took up to {after.p95 * 1000:.0f} ms, and {before.p95 * 1000:.0f} ms before"
        )
    return None
