"""What the docs say of parameters, settings and tools is what the code defines."""

from __future__ import annotations

import re

import pytest

from otterwiki_semantic.core.settings import SETTING_NAMES
from tools.reference_tables import DOCS, with_tables


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_tables_of_parameters_are_those_of_the_code(path) -> None:  # type: ignore[no-untyped-def]
    text = path.read_text(encoding="utf-8")
    assert with_tables(text) == text, "run `make docs`"


def test_the_table_of_a_record_replaces_what_was_there() -> None:
    table = with_tables("before\n<!-- parameters of RelatedRequest -->\nold\n<!-- end -->\nafter\n")
    assert "old" not in table
    assert "| `n` | `5` | 1 to 50 | Number of pages. |" in table
    assert table.startswith("before\n")
    assert table.endswith("<!-- end -->\nafter\n")


def test_every_setting_is_documented() -> None:
    documented = set(re.findall(r"`([A-Z_]+)`", (DOCS / "configuration.md").read_text(encoding="utf-8")))
    assert set(SETTING_NAMES) <= documented
