"""What the docs say of parameters, settings and tools is what the code defines."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

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


@pytest.mark.parametrize("page", [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")], ids=lambda page: page.stem)
def test_links_lead_to_pages_and_headings(page: Path) -> None:
    links = re.findall(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)", without_code(page))
    targets = [((page.parent / path).resolve() if path else page, anchor) for path, anchor in links]
    assert [str(path) for path, _ in targets if not path.exists()] == []
    assert [(path.name, anchor) for path, anchor in targets if anchor and anchor not in anchors(path)] == []


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def without_code(page: Path) -> str:
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
