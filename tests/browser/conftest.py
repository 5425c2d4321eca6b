from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from otterwiki_semantic.core.records import MapState
from tests.support import light_parts
from tests.support.demo_index import copy_demo
from tests.support.fixtures import chat
from tests.support.live_wiki import LiveWiki, eventually
from tests.support.model_servers import ModelServer, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chat"]


@pytest.fixture(scope="package")  # its event loop is in the way of asyncio in other tests
def chromium() -> Iterator[Browser]:
    from tests.support.browser import started_chromium

    with started_chromium() as browser:
        yield browser


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki with all that the plugin adds without a model, and one unanswered question; nobody changes its pages.

    Its own browser is the administrator's.
    """
    from tests.support.browser import serve

    place = tmp_path_factory.mktemp("demo")
    copy_demo(tmp_path_factory, place)
    settings = {"WRITE_ACCESS": "ANONYMOUS", "SEMANTIC_SEARCH_LOG": "true", "SEMANTIC_PAGES": ""}
    answers = {"SEMANTIC_ANSWERS": "extractive", "SEMANTIC_ANSWERS_PER_HOUR": "0"}
    with light_parts.installed(), serve(place, **settings, **answers) as live:
        live.wait_until_indexed()
        live.log_in()
        live.search("constitutional law of rome")
        eventually(lambda: live.api("GET", "/semantic-search/insight").json["unanswered"], why="the question is noted")
        eventually(lambda: live.api("GET", "/semantic-search/map").json["state"] == MapState.READY, why="there is a map")
        yield live


@pytest.fixture
def held_model() -> Iterator[ModelServer]:
    """A model that embeds most of 11 long pages and then waits until it is released, so that a build can be watched."""
    with serving(ModelServer(held_after=90)) as server:
        yield server
        server.released.set()
