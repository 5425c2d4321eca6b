"""Fixtures of tests that run an index in this process; a directory's `conftest.py` imports those that it offers."""

from __future__ import annotations

from pathlib import Path

import pytest

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import make_repository


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
