"""What the index is doing when it is killed."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.wikis import Change, Pages, Wiki


@dataclass(frozen=True, slots=True)
class Scenario:
    """A work of the index, on a wiki that it holds already if it is `built`.

    `change` makes the commits that HEAD moves along. If the index `runs` it is whole when they come, and `reindex` asks it for
    a new generation just before; otherwise they come while it is stopped, and `spoil` does something to its files; if it
    `is_outdated` then, another generation has to take its place. HEAD ends at the last commit, or goes `back` to the first one
    after the kill. `seconds` is how long the work takes from the first commit or the start on: the span in which the real
    owner is killed.
    """

    name: str
    change: Change
    seconds: float
    built: bool = True
    runs: bool = False
    reindex: bool = False
    back: bool = False
    spoil: Callable[[Path], None] | None = None
    is_outdated: bool = False


def _nothing(_: Wiki) -> list[Pages]:
    return []


def _edits(wiki: Wiki) -> list[Pages]:
    """Several pages changed, some added, some removed, in three commits."""
    states = []
    for _ in range(3):
        for name in wiki.some(3):
            wiki.edit(name)
        wiki.remove(wiki.some(1)[0])
        wiki.add()
        wiki.add()
        states.append(dict(wiki.pages))
    return states


def _renames(wiki: Wiki) -> list[Pages]:
    """A page, a directory, and only the case of a name."""
    states = []
    (page,) = wiki.some(1)
    wiki.rename(page, f"moved/{Path(page).name}")
    states.append(dict(wiki.pages))
    for name in [name for name in wiki.pages if name.startswith("house/")]:
        wiki.rename(name, f"home/{name.removeprefix('house/')}")
    states.append(dict(wiki.pages))
    (other,) = wiki.some(1)
    wiki.rename(other, str(Path(other).with_name(Path(other).name.capitalize())))
    states.append(dict(wiki.pages))
    return states


def _one_commit(wiki: Wiki) -> list[Pages]:
    for name in wiki.some(2):
        wiki.edit(name)
    wiki.add()
    return [dict(wiki.pages)]


def _losses(wiki: Wiki) -> list[Pages]:
    """Most pages go or are written anew, so that many vectors are no longer needed; one of two equal pages goes, too."""
    states = []
    for _ in range(2):
        for name in wiki.some(4):
            wiki.remove(name)
        for name in wiki.some(2):
            wiki.rewrite(name)
        states.append(dict(wiki.pages))
    wiki.remove("notes/liability.md")
    return [*states, dict(wiki.pages)]


def _another_way(data_dir: Path) -> None:
    """Let the index be one of another chunking."""
    _set_fact(data_dir, "fingerprint")


def _another_model(data_dir: Path) -> None:
    """Let the index be one of another model."""
    _set_fact(data_dir, "fingerprint")
    _set_fact(data_dir, "recipe")


def _set_fact(data_dir: Path, name: str) -> None:
    (catalog,) = data_dir.glob("generations/*/catalog.sqlite3")
    with closing(sqlite3.connect(catalog)) as connection, connection:
        changed = connection.execute("UPDATE meta SET value = 'of an older version' WHERE name = ?", (name,)).rowcount
        assert changed == 1, f"the catalog has no fact {name!r}"


def _lose_vectors(data_dir: Path) -> None:
    """Take ChromaDB's files away."""
    (chroma,) = data_dir.glob("generations/*/chroma-*")
    shutil.rmtree(chroma)


SCENARIOS = (
    Scenario("first build", _nothing, 2.0, built=False),
    Scenario("edits", _edits, 0.6, runs=True),
    Scenario("renames", _renames, 2.0),
    Scenario("reindex", _one_commit, 0.8, runs=True, reindex=True),
    Scenario("another way", _one_commit, 2.5, spoil=_another_way, is_outdated=True),
    Scenario("another model", _one_commit, 2.5, spoil=_another_model, is_outdated=True),
    Scenario("losses", _losses, 0.6, runs=True),
    Scenario("lost vectors", _one_commit, 2.0, spoil=_lose_vectors),
    Scenario("HEAD goes back", _edits, 0.6, runs=True, back=True),
)
