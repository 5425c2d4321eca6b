"""The states of a reindexing job."""

from __future__ import annotations

import pytest

from otterwiki_semantic.core.errors import CatalogError, JobNotFoundError
from otterwiki_semantic.core.records import RebuildState, RebuildStatus
from otterwiki_semantic.indexing.jobs import JobLog


def begun(log: JobLog) -> tuple[RebuildStatus, str]:
    job = log.begin(RebuildStatus(pages_total=2))
    assert job.job is not None
    return job, job.job


def test_a_job_is_found_from_its_begin_on() -> None:
    log = JobLog()
    job, name = begun(log)
    assert log.find(name) == job
    assert (job.state, job.finished, job.error) == (RebuildState.RUNNING, None, None)
    assert job.started is not None


def test_jobs_end_with_the_sync_that_has_taken_them() -> None:
    log = JobLog()
    first, name = begun(log)
    _, other = begun(log)
    with log.syncing() as taken:
        taken.append(first)
    done = log.find(name)
    assert (done.state, done.pages_done, done.pages_total, done.error) == (RebuildState.DONE, 2, 2, None)
    assert done.finished is not None
    assert log.find(other).state is RebuildState.RUNNING


def test_jobs_fail_with_the_sync_that_has_taken_them() -> None:
    log = JobLog()
    job, name = begun(log)

    def sync() -> None:
        with log.syncing() as taken:
            taken.append(job)
            raise CatalogError("the disk is gone")

    with pytest.raises(CatalogError):
        sync()
    failed = log.find(name)
    assert (failed.state, failed.pages_done, failed.error) == (RebuildState.FAILED, 0, "the disk is gone")
    assert "data directory" in (failed.hint or "")


def test_the_last_hundred_jobs_are_kept() -> None:
    log = JobLog()
    names = [begun(log)[1] for _ in range(101)]
    assert len(set(names)) == 101
    with pytest.raises(JobNotFoundError, match=f"there is no job '{names[0]}'; the last 100 are kept"):
        log.find(names[0])
    assert log.find(names[1]).job == names[1]
    log.end(RebuildStatus(), ValueError("it could not begin"))
    assert log.find(names[1]).job == names[1], "what never began is none of them"
