"""A sync is one line of the log for programs: facts in logfmt."""

from __future__ import annotations

import logging
import re

import pytest

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.live_wiki import eventually, git


def test_a_sync_that_changed_something_is_one_line(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "otterwiki_semantic")
    index = IndexEngine(settings)
    index.start()
    try:
        eventually(lambda: index.insight().syncs)
        index.notify()
        eventually(lambda: re.search(r'syncs_total{outcome="unchanged"} [1-9]', index.metrics()))
        (line,) = [record.getMessage() for record in caplog.records if "event=sync" in record.getMessage()]
    finally:
        index.close()
    head = git(settings.repository, "rev-parse", "HEAD")
    assert line.startswith(f"index equals {head}: 5 pages, 6 chunks; event=sync ")
    told = dict(part.split("=") for part in line.rsplit("; ", maxsplit=1)[-1].split(" "))
    assert float(told.pop("seconds")) > 0
    assert told == {"event": "sync", "commit": head, "pages": "5", "chunks": "6", "changed": "5"}
