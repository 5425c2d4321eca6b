"""A room is imported from as a whole. Which room may import which is for import-linter: see pyproject.toml."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.paths import ROOT

PACKAGE = ROOT / "otterwiki_semantic"
PUBLIC_MODULES = {
    "content.analysis.minhash",  # needs NumPy, which a wiki worker does without
    "daemon.page_reader",  # needs the parser, which the command line does without
    "daemon.engine",  # the heavy half, for the daemon itself and for a command that builds an index of its own
    "embedding.chroma_function",  # needs ChromaDB
    "search.evaluation",  # not a part of searching
}
"""Modules outside of `core` that other rooms import by their own names."""


def imports_of(path: Path) -> set[str]:
    """Return the modules of this package that a file imports from, without the package's name."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {module.partition(".")[2] for module in modules if module.partition(".")[0] == PACKAGE.name} - {""}


def test_other_rooms_are_imported_from_as_a_whole() -> None:
    offenders = []
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).parts[0]
        offenders += [
            (str(path.relative_to(PACKAGE)), module)
            for module in imports_of(path)
            if module.split(".")[0] not in {room, "core"}
            and module not in PUBLIC_MODULES
            and not PACKAGE.joinpath(*module.split("."), "__init__.py").exists()
        ]
    assert offenders == []


def test_there_are_ten_rooms_at_most() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert len(rooms) <= 10, rooms
    assert len(modules) <= 3, modules


def test_every_room_says_what_it_is_for() -> None:
    assert [path for path in PACKAGE.rglob("__init__.py") if not ast.get_docstring(ast.parse(path.read_text()))] == []
