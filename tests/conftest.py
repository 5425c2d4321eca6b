from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("default", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("default")

_HERE = Path(__file__).parent
_MARKERS = {
    "unit": (),
    "integration": ("model",),
    "system": ("model", "served"),
    "browser": ("model", "served", "browser"),
    "chaos": ("model",),
}
_SERVED = {"app": "Flask", "client": "FlaskClient", "wiki": "LiveWiki", "wikis": "Wikis"}
"""Fixtures that are a served wiki, by name, and their types: what is called so may be something else in some module."""
_LONGEST_ID, _SHORTENED_ID = 60, 30


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test after the beginning and the length of a long text, such as a huge number."""
    if isinstance(val, str | bytes) and len(ascii(val)) > _LONGEST_ID:
        return f"{ascii(val)[:_SHORTENED_ID]}...{len(val)}"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what it needs: see `markers` in pyproject.toml."""
    for item in items:
        for marker in _MARKERS[item.path.relative_to(_HERE).parts[0]]:
            item.add_marker(marker)
        if isinstance(item, pytest.Function) and _is_served(item):
            item.add_marker("served")


def _is_served(item: pytest.Function) -> bool:
    types = item.function.__annotations__
    return any(name in item.fixturenames and types.get(name, kind) == kind for name, kind in _SERVED.items())
