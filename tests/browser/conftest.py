from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")  # its event loop is in the way of asyncio in other tests
def chromium() -> Iterator[Browser]:
    from tests.support.browser import started_chromium

    with started_chromium() as browser:
        yield browser
