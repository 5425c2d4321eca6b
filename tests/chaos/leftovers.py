"""What a killed index has on disk, read from copies, so that the restart finds its files as they were left."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.chaos.contents import CATALOG


def facts(data_dir: Path) -> dict[str, str]:
    """Return what the serving generation's catalog says of itself; nothing if none serves."""
    with _catalog_copy(data_dir) as catalog:
        return dict(catalog.execute("SELECT name, value FROM meta")) if catalog else {}


def held_vectors(data_dir: Path, recipe: str) -> set[str]:
    """Return the ids of the vectors of a recipe that the serving generation has, wherever it was killed."""
    with _catalog_copy(data_dir) as catalog:
        if catalog is None or catalog.execute("SELECT value FROM meta WHERE name = 'recipe'").fetchone() != (recipe,):
            return set()
        return {name for (name,) in catalog.execute("SELECT id FROM vectors")}


@contextmanager
def _catalog_copy(data_dir: Path) -> Iterator[sqlite3.Connection | None]:
    """Lend a copy of the serving generation's catalog; None if there is none with tables."""
    pointer = data_dir / "current"
    directory = data_dir / "generations" / (pointer.read_text(encoding="ascii").strip() if pointer.exists() else "")
    with tempfile.TemporaryDirectory() as place:
        for name in CATALOG:
            if (directory / name).exists():
                shutil.copy(directory / name, Path(place) / name)
        with closing(sqlite3.connect(Path(place) / CATALOG[0])) as catalog:
            has_tables = catalog.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
            yield catalog if has_tables else None


def remains(data_dir: Path) -> str:
    """Say in a few words how far an index had come when it was killed."""
    with _catalog_copy(data_dir) as catalog:
        if catalog is None:
            return "nothing serves"
        state = dict(catalog.execute("SELECT name, value FROM meta"))
        tables = ("unstored", "suspects", "dropped")
        found = {table: catalog.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}
    found["generations"] = len(list((data_dir / "generations").iterdir()))
    said = [f"{number} {name}" for name, number in found.items() if number > (name == "generations")]
    return ", ".join(("changing" if "changing" in state else "settled", *said))
