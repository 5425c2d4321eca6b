"""The demo wiki with its index, built once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support import light_parts
from tests.support.live_wiki import demo_pages, eventually, is_whole, make_repository


def copy_demo(factory: pytest.TempPathFactory, place: Path) -> Path:
    """Copy the demo's repository and its index to `place/repository` and `place/index`; return the repository."""
    shutil.copytree(_built(factory), place, dirs_exist_ok=True, symlinks=True)
    return place / "repository"


def _built(factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the demo, which the first process to ask for it builds while the others wait."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    built, unfinished = shared / "demo-built", shared / "demo-unfinished"
    with (shared / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            repository = make_repository(unfinished / "repository", demo_pages())
            with light_parts.installed():
                index = IndexEngine(Settings(repository, unfinished / "index", pages=()))
                index.start()
                eventually(lambda: is_whole(index.status()), 120)
                index.close()
            unfinished.rename(built)
    return built
