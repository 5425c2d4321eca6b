"""Evaluate judged queries in the background, and store the history of their metrics in a file.

They are evaluated once a day, after a promotion, and when they change.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from otterwiki_semantic.core.backoff import Backoff
from otterwiki_semantic.core.errors import ParameterError, SemanticError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.core.records import Problem, QualityRecord
from otterwiki_semantic.daemon.rollback import Rollbacks
from otterwiki_semantic.indexing import IndexManager, Stopped, now
from otterwiki_semantic.search.evaluation import RECALL, JudgedQuery, Run, answerable, fingerprint
from otterwiki_semantic.storage import Generation

MAX_RECORDS = 400
DAY = 86_400.0
_RETRY_SECONDS = 600.0
"""The first pause after a failure; it grows up to a day."""
_WATCHED_EVALUATIONS = 7
_SLOT = "quality"
_DIGITS = 4
_NAMED = 3
"""Questions of which a missing page is named."""
_HINT = "make room on the disk of the data directory, or let the wiki's user write to it; until then they are kept in memory"

log = logging.getLogger(__name__)


class StoredQuality(msgspec.Struct, frozen=True):
    """The history, as stored in the data directory. Times are Unix times."""

    records: tuple[QualityRecord, ...] = ()
    """Oldest first."""
    asked: float = 0.0
    """When the last evaluation started."""
    queries: str = ""
    """The fingerprint of its judged queries."""
    clock_set: float | None = None
    """When the clock was first seen to be before `asked`."""


class QualityMonitor:
    """Evaluate the judged queries of the serving index when they are due, and store the last 400 results in a file."""

    def __init__(self, file: Path, manager: IndexManager, rollbacks: Rollbacks) -> None:
        self._file = file
        self._gate = manager.gate
        self._manager = manager
        self._clock = time.time
        self._rollbacks = rollbacks
        self._stored = _read_quality(file)
        self._backoff = Backoff(_RETRY_SECONDS, DAY)
        self.problem: Problem | None = None
        """Why the history is not stored."""

    def newest_first(self) -> tuple[QualityRecord, ...]:
        """Return the history."""
        return self._stored.records[::-1]

    def refresh(self) -> None:
        """Evaluate the judged queries in the background, if due."""
        self._manager.scheduler.run_in(0, _SLOT, self._evaluate_if_due)

    def _evaluate_if_due(self) -> None:
        try:
            generation = self._manager.stable_generation()
            if generation is None or not self._gate.recipe.matches_vectors(generation) or not self._backoff.is_due:
                return
            try:
                queries = self._gate.read_queries()
            except ParameterError:  # reported in the status
                return
            wait = self._seconds_until_due(generation, queries)
            if wait <= 0:
                wait = self._evaluate(generation, queries)
            self._manager.scheduler.run_in(wait, _SLOT, self._evaluate_if_due)
        except Stopped:
            return
        except Exception as error:  # noqa: BLE001 - the outermost frame of the job
            if not self._manager.index.is_stopping:
                minutes = self._backoff.failed() / 60
                log.warning("the judged queries could not be asked, and are asked again in %.0f min: %s", minutes, error)

    def _seconds_until_due(self, generation: Generation, queries: Sequence[JudgedQuery]) -> float:
        """Return the seconds to the next evaluation: up to a day for the same queries and index, even if the clock was set."""
        stored, moment = self._stored, self._clock()
        is_known = bool(stored.records) and stored.records[-1].generation == generation.name
        if not is_known or stored.queries != fingerprint(queries):
            return 0.0
        if stored.asked <= moment:
            return stored.asked + DAY - moment
        since = stored.clock_set
        if since is None or since > moment:
            since = moment
            self._store(msgspec.structs.replace(stored, clock_set=since))
        return since + DAY - moment

    def _evaluate(self, generation: Generation, queries: Sequence[JudgedQuery]) -> float:
        """Evaluate the judged queries, and return the seconds until the next evaluation."""
        asked, start, commit = self._clock(), time.perf_counter(), generation.catalog.commit
        try:
            hybrid, semantic = self._gate.measure(generation, queries)
        except SemanticError:
            if self._manager.serving is generation:
                raise
        if self._manager.serving is not generation:  # replaced in the meantime
            return 0.0
        figures = {name: round(value, _DIGITS) for name, value in hybrid["metrics"].items()}
        found = answerable(queries, generation.catalog.pages.blobs())
        lost = [each for at, each in enumerate(queries) if at not in found]
        record = QualityRecord(
            finished=now(),
            seconds=round(time.perf_counter() - start, 3),
            commit=commit,
            model=self._gate.recipe.embedder.name,
            generation=generation.name,
            recipe=generation.fingerprint or "",
            queries=len(queries),
            unanswerable=len(lost),
            missing=tuple(dict.fromkeys(each.relevant[0] for each in lost[:_NAMED])),
            recall_at_10=figures[RECALL],
            precision_at_10=figures["precision@10"],
            mrr=figures["mrr"],
            zero_result_rate=figures["zero"],
            semantic_recall_at_10=round(semantic["metrics"][RECALL], _DIGITS),
        )
        self._store(StoredQuality((*self._stored.records, record)[-MAX_RECORDS:], asked, fingerprint(queries)))
        self._backoff.reset()
        log.info("%d judged queries: recall@10 %.3f, MRR %.3f", record.queries, record.recall_at_10, record.mrr)
        self._compare(generation, queries, (hybrid, semantic))
        return DAY

    def _compare(self, generation: Generation, queries: Sequence[JudgedQuery], runs: tuple[Run, Run]) -> None:
        """Roll back an index that scores lower than its predecessor in its first evaluations."""
        previous = self._manager.previous.generation
        evaluations = sum(record.generation == generation.name for record in self._stored.records)
        if previous is None or evaluations > _WATCHED_EVALUATIONS:
            return
        worse = self._gate.fall(previous, queries, runs, generation)
        if worse is not None:
            self._rollbacks.roll_back_automatically(worse)

    def _store(self, stored: StoredQuality) -> None:
        try:
            write_atomically(self._file, json.dumps(msgspec.to_builtins(stored)))
        except OSError as error:
            self.problem = Problem(f"the figures of judged queries cannot be stored: {error}", _HINT)
        else:
            self.problem = None
        self._stored = stored  # shown once it is in the file, which outlives a stop


def _read_quality(path: Path) -> StoredQuality:
    stored = read_record(path, StoredQuality, "the history of judged queries starts over") or StoredQuality()
    try:
        for record in stored.records:
            datetime.fromisoformat(record.finished)
    except ValueError as error:
        log.warning("%s cannot be read (%s); the history of judged queries starts over", path, error)
        return StoredQuality()
    return stored
