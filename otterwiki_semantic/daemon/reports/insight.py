"""Insight for administrators: memory and disk, recent syncs, and searches."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from otterwiki_semantic.core.files import directory_size
from otterwiki_semantic.core.records import Insight, Problem, QualityRecord, UnansweredQuery
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import SearchEvent
from otterwiki_semantic.daemon.reports.quality import QualityMonitor
from otterwiki_semantic.daemon.reports.search_log import NAME, SearchLog, remove_searches
from otterwiki_semantic.daemon.rollback import Rollbacks
from otterwiki_semantic.indexing import IndexManager, now

_HINT = f"make sure that the wiki's user may write to {NAME} in the data directory and that its disk is not full"


class Insights:
    """Collect the insight: log searches if that is enabled, and evaluate judged queries if there are any."""

    def __init__(self, settings: Settings, manager: IndexManager, rollbacks: Rollbacks) -> None:
        self._data_dir = settings.data_dir
        self._syncs = manager.syncs
        self.quality = QualityMonitor(settings.data_dir / "quality.json", manager, rollbacks) if settings.eval_queries else None
        self._keeps_searches = settings.search_log
        self._searches: SearchLog | None = None
        self._started = now()
        self._undeleted: OSError | None = None

    def start(self) -> None:
        """Start the search log, or delete an earlier one if logging is disabled."""
        if self._keeps_searches:
            self._searches = SearchLog(self._data_dir)
            return
        try:
            remove_searches(self._data_dir)
        except OSError as error:
            self._undeleted = error

    def close(self) -> None:
        """Flush and close the search log."""
        if self._searches is not None:
            self._searches.close()

    def record_search(self, search: SearchEvent) -> None:
        """Log a search of a user, if logging is enabled."""
        if self._searches is not None and search.counts:
            self._searches.record(search.answers, search.options.mode, time.time(), search.seconds)

    def insight(self) -> Insight:
        until = time.time()
        return Insight(
            disk_bytes=directory_size(self._data_dir, allocated=True),
            free_bytes=shutil.disk_usage(self._data_dir).free,
            memory_bytes=_memory_bytes(),
            started=self._started,
            syncs=self._syncs.history(),
            keeps_searches=self._searches is not None,
            searches=self._searches.hours(until) if self._searches else (),
            searched=self._searches.total(until) if self._searches else None,
            unanswered=self.unanswered(),
            has_judged_queries=self.quality is not None,
            quality=self.quality.newest_first() if self.quality else (),
        )

    @property
    def last_quality(self) -> QualityRecord | None:
        """The last evaluation with judged queries; None if there was none."""
        return next(iter(self.quality.newest_first()), None) if self.quality else None

    def unanswered(self) -> tuple[UnansweredQuery, ...]:
        """Return the most frequent queries without a relevant result; none if logging is disabled."""
        return self._searches.unanswered(time.time()) if self._searches is not None else ()

    def problems(self) -> list[Problem]:
        """Return why reports are not stored, or an earlier search log was not deleted."""
        found = [self.quality.problem] if self.quality and self.quality.problem else []
        if self._undeleted is not None:
            found.append(Problem(f"the earlier search log cannot be deleted: {self._undeleted}", _HINT))
        if self._searches is not None and self._searches.error is not None:
            found.append(Problem(f"searches are not logged: {self._searches.error}", _HINT))
        return found


def _memory_bytes() -> int | None:
    """Return the resident memory of this process; None if the system has no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
