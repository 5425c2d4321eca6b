"""The process that makes a map: it ends with the index daemon, and needs a library that need not be there."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.records import MapState
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.wiki_map import builder
from tests.support.engines import opened
from tests.support.live_wiki import eventually
from tests.support.processes import is_running

pytestmark = pytest.mark.real_processes


def projecting(parent: int) -> list[int]:
    """Return the processes of this parent that make a map."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_worker = b"otterwiki_semantic.core.worker_process" in (place / "cmdline").read_bytes()
            is_one = is_worker and b"sklearn" in (place / "maps").read_bytes()
            if is_one and int((place / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(place.name))
    return found


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_it_does_not_outlive_the_daemon(settings: Settings, how: int) -> None:
    index = IndexClient(replace(settings, pages=("map",)))
    owner = eventually(lambda: index.status().owner_pid)
    (child,) = eventually(lambda: projecting(owner))
    os.kill(owner, how)
    eventually(lambda: not is_running(owner) and not is_running(child), 10)
    assert index.map().state is not MapState.UNAVAILABLE
    index.close()


def test_without_the_library_it_says_what_to_install(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "sklearn.py").write_text("raise ModuleNotFoundError(\"No module named 'sklearn'\")\n")
    monkeypatch.syspath_prepend(str(hidden))
    monkeypatch.setattr(builder, "_DELAY_SECONDS", 0.05)
    with closing(opened(replace(settings, pages=("map",)))) as index:
        found = eventually(lambda: found if (found := index.map()).message else None)
        assert found.state is MapState.UNAVAILABLE
        assert pip_install("map") in str(found.message)
        assert index.status().status == "ready"
