from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.small_index import SmallIndex


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SmallIndex]:
    made = SmallIndex(tmp_path / "generation")
    yield made
    made.generation.close()
