from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.support.model_servers import ModelServer, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")  # its event loop is in the way of asyncio in other tests
def chromium() -> Iterator[Browser]:
    from tests.support.browser import started_chromium

    with started_chromium() as browser:
        yield browser


@pytest.fixture
def held_model() -> Iterator[ModelServer]:
    """A model that embeds most of 11 long pages and then waits until it is released, so that a build can be watched."""
    with serving(ModelServer(held_after=90)) as server:
        yield server
        server.released.set()
