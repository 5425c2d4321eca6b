from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
def slow_model() -> Iterator[dict[str, Any]]:
    """Settings of a wiki whose model takes long, and no processor, so that a build can be watched."""
    with serving(ModelServer(seconds=0.05)) as server:
        yield {
            "SEMANTIC_MODEL": "openai:words",
            "SEMANTIC_MODEL_URL": f"{server.url}/v1",
            "SEMANTIC_MODEL_KEY": "key",
            "SEMANTIC_MODEL_WINDOW": "256",
        }
