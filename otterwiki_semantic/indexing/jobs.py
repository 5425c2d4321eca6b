"""The jobs that callers request (rebuilds, and refreshed pages) and their results."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import structs

from otterwiki_semantic.core.errors import JobNotFoundError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.records import RebuildState, RebuildStatus
from otterwiki_semantic.indexing.progress import now

_KEPT = 100


class JobLog:
    """The most recent jobs by id, in memory. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, RebuildStatus] = {}

    def begin(self, job: RebuildStatus) -> RebuildStatus:
        """Return a job that starts now, with its id."""
        return self._keep(structs.replace(job, job=secrets.token_hex(4), state=RebuildState.RUNNING, started=now()))

    def end(self, job: RebuildStatus, error: Exception | None) -> RebuildStatus:
        """Return a job that ends now; without an id it is not stored."""
        reason = problem(error) if error else None
        return self._keep(
            structs.replace(
                job,
                state=RebuildState.FAILED if error else RebuildState.DONE,
                finished=now(),
                seconds_left=None,
                error=reason and reason.message,
                hint=reason and reason.hint,
            )
        )

    @contextmanager
    def syncing(self) -> Iterator[list[RebuildStatus]]:
        """End the jobs that the block adds to the list, with the block's result."""
        jobs: list[RebuildStatus] = []
        try:
            yield jobs
        except Exception as error:
            for job in jobs:
                self.end(job, error)
            raise
        for job in jobs:
            self.end(structs.replace(job, pages_done=job.pages_total), None)

    def find(self, job: str) -> RebuildStatus:
        """Return a job; `JobNotFoundError` if the id is unknown or has expired."""
        with self._lock:
            found = self._jobs.get(job)
        if found is None:
            raise JobNotFoundError(f"there is no job {job!r}; the last {_KEPT} are kept until the index daemon ends")
        return found

    def _keep(self, job: RebuildStatus) -> RebuildStatus:
        with self._lock:
            if job.job is not None:
                self._jobs[job.job] = job
            while len(self._jobs) > _KEPT:
                del self._jobs[next(iter(self._jobs))]
        return job
