from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from flask import Flask

from demo.run import PAGES
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.live_wiki import KEY, LiveWiki, eventually, make_repository

if TYPE_CHECKING:
    from playwright.sync_api import Browser

hypothesis.settings.register_profile("default", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("default")


@pytest.fixture(scope="session")
def model() -> BundledModel:
    return BundledModel()


_HEATING = """\
---
title: Heating
category: house
tags: [winter, pipes]
---

# Heating

The boiler in the cellar warms the radiators of every room from October to April, and the bath all year.

## Before the frost

When a cold night is announced, open the valves of the workshop by a quarter, so that water keeps moving in the pipe
along the outer wall. It burst once, in a January when nobody was at home, and the floor had to be laid again. Since
then a neighbour looks in every second day.

## Bleeding a radiator

If it gurgles and is only half warm there is air in it. Hold a cup under the screw at the top, turn the key to the
left until water comes instead of hissing, and close it again. Then look at the gauge of the boiler and fill up to one
and a half bar.
"""
HANDBOOK: dict[str, str | bytes] = {
    "home.md": "# Home\n\nThis wiki is about a house, its machines and its garden, for the people in it.\n",
    "house/heating.md": _HEATING,
    "house/alarm.md": "# Alarm\n\nThe siren is tested each March. Its code is kept in the safe, not here.\n",
    "garden.md": "# Garden\n\n## Tomatoes\n\nPlant them after the middle of May, tie them up, and never wet their leaves.\n",
    "machines/nas.md": "# NAS\n\nFour disks in two mirrors. A failed one is exchanged while the other works.\n",
}


@pytest.fixture(scope="session")
def handbook() -> dict[str, str | bytes]:
    return HANDBOOK


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Those of a small wiki that no index was made of yet, and that wants no map: it would take time from what is tested."""
    return Settings(make_repository(tmp_path / "repository", HANDBOOK), tmp_path / "index", sync_interval=3600, map=False)


@pytest.fixture(scope="module")
def wiki(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """A served, indexed wiki; tests of one module share it and leave its five pages as they are. `WIKI` is what it is told."""
    place = tmp_path_factory.mktemp("wiki")
    settings: dict[str, Any] = getattr(request.module, "WIKI", {})
    with LiveWiki(make_repository(place / "repository", HANDBOOK), place / "index", **settings) as live:
        live.wait_until_indexed()
        yield live


@pytest.fixture(scope="session")
def app(tmp_path_factory: pytest.TempPathFactory) -> Flask:
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

    wiki_app.config["SERVER_NAME"] = None
    return wiki_app  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    """An index of the demo wiki; tests only ask it."""
    place = tmp_path_factory.mktemp("demo")
    pages: dict[str, str | bytes] = {str(path.relative_to(PAGES)): path.read_bytes() for path in PAGES.rglob("*.md")}
    index = IndexEngine(Settings(make_repository(place / "repository", pages), place / "index", map=False))
    index.start()
    eventually(lambda: index.status().status == "ready" and index.status().index.pending_pages == 0)
    yield index
    index.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from tests.support.browser import started_chromium

    with started_chromium() as browser:
        yield browser
