"""Fixtures of tests that run an index in this process; a directory's `conftest.py` imports those that it offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chat_server import ChatServer, saying
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import make_repository
from tests.support.running_chroma import RunningChroma


@pytest.fixture(scope="session")
def model() -> BundledModel:
    return BundledModel()


@pytest.fixture(scope="session")
def handbook() -> dict[str, str | bytes]:
    return HANDBOOK


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Those of a small wiki that no index was made of yet, and that wants no map: it would take time from what is tested."""
    return Settings(
        make_repository(tmp_path / "repository", HANDBOOK), tmp_path / "index", sync_interval=3600, pages=("metrics",)
    )


@pytest.fixture(scope="module")
def chat() -> Iterator[ChatServer]:
    """A chat model that answers nothing until a test gives it a script."""
    with ChatServer(saying("")) as server:
        yield server


@pytest.fixture(scope="session")
def shared_chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningChroma]:
    """A ChromaDB server that no test stops; each has collections of its own."""
    with RunningChroma(tmp_path_factory.mktemp("chroma")) as server:
        yield server


@pytest.fixture
def chroma(tmp_path: Path) -> Iterator[RunningChroma]:
    """A ChromaDB server of the test's own."""
    with RunningChroma(tmp_path / "server") as server:
        yield server
