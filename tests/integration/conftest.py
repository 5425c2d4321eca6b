from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support import light_parts
from tests.support.demo_index import copy_demo
from tests.support.fixtures import chat, chroma, handbook, model, settings, shared_chroma
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import KEY, LiveWiki, eventually, is_settled, make_repository

__all__ = ["chat", "chroma", "handbook", "model", "settings", "shared_chroma"]


@pytest.fixture
def opened() -> Iterator[Callable[[Settings], IndexEngine]]:
    """Opens indexes, and closes them after the test."""
    made: list[IndexEngine] = []

    def start(settings: Settings) -> IndexEngine:
        made.append(IndexEngine(settings))
        made[-1].start()
        return made[-1]

    yield start
    for index in made:
        index.close()


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Whoever runs the tests in the background has them ignore this signal, and so would all that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def wiki(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """A served, indexed wiki; tests of one module share it and leave its pages as they are.

    The module's `WIKI` has settings, and its `MORE_PAGES` pages besides the handbook's five.
    """
    place = tmp_path_factory.mktemp("wiki")
    settings: dict[str, Any] = getattr(request.module, "WIKI", {})
    pages = HANDBOOK | getattr(request.module, "MORE_PAGES", {})
    with LiveWiki(make_repository(place / "repository", pages), place / "index", **settings) as live:
        live.wait_until_indexed()
        yield live


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """The wiki's own Flask application with the plugin, in this process. It can be imported once only."""
    place: Path = tmp_path_factory.mktemp("app")
    os.environ.update(
        REPOSITORY=str(make_repository(place / "repository", HANDBOOK)),
        SECRET_KEY="0123456789abcdef0123456789",
        SQLALCHEMY_DATABASE_URI=f"sqlite:///{place / 'wiki.sqlite'}",
        OTTERWIKI_SETTINGS="",
        OTTERWIKI_API_KEY=KEY,
        SEMANTIC_DATA_DIR=str(place / "index"),
    )
    from otterwiki.server import app as wiki_app
    from otterwiki.server import storage

    wiki_app.config["SERVER_NAME"] = None
    yield wiki_app
    wiki_app.extensions["otterwiki_semantic"].index.close()
    storage.repo.close()  # ends the wiki's own processes of git


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    """An index of the demo wiki; tests only ask it."""
    place = tmp_path_factory.mktemp("demo")
    with light_parts.installed():
        index = IndexEngine(Settings(copy_demo(tmp_path_factory, place), place / "index", pages=()))
        index.start()
        eventually(lambda: is_settled(index.status()) and index.status().index.pending_pages == 0)
    yield index
    index.close()
