"""What following a folder costs, and leading the wikilinks of its notes."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.support.options import Options
from benchmarks.support.report import Figure, at_most
from otterwiki_semantic.content import Folder
from otterwiki_semantic.storage.schema import TABLES
from otterwiki_semantic.storage.wiki_links import resolve_wiki_links

_NOTES, _WORDS, _LINKS = 10_000, 300, 5
_MOST_UNCHANGED = 1.0


def measure(_options: Options) -> list[Figure]:
    """Return the processor time of a first commit and of later ones, git included, and of leading all wikilinks again."""
    with TemporaryDirectory() as place:
        notes = Path(place, "notes")
        _write(notes)
        folder = Folder(notes, Path(place, "index"))
        first, unchanged = _seconds(folder.commit), _seconds(folder.commit)
        (notes / "new.md").write_text("# New\n", encoding="utf-8")
        changed = _seconds(folder.commit)
    links = _links()
    resolve_wiki_links(links)
    again = _seconds(lambda: resolve_wiki_links(links))
    return [
        at_most(f"a folder of {_NOTES:,} notes, first commit", first, "s", 10.0),
        at_most("a commit without a change", unchanged, "s", _MOST_UNCHANGED),
        at_most("a commit of a new note", changed, "s", _MOST_UNCHANGED),
        at_most(f"leading {_NOTES * _LINKS:,} wikilinks again", again, "s", _MOST_UNCHANGED),
    ]


def _write(notes: Path) -> None:
    chance = random.Random(1)
    words = ["pump", "valve", "boiler", "radiator", "garden", "bean", "pond", "newt", "otter", "bee"]
    for number in range(_NOTES):
        path = notes / f"{number % 100:02}" / f"note {number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n{' '.join(chance.choices(words, k=_WORDS))}\n", encoding="utf-8")
        modified = 1_700_000_000 - chance.randrange(5 * 365 * 86_400)
        os.utime(path, (modified, modified))


def _links() -> sqlite3.Connection:
    """Return a catalog of notes with links, a tenth of them to notes that do not exist."""
    chance = random.Random(1)
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    columns = "path, path_key, blob, title, tags, word_count, chunk_count, language"
    for number in range(_NOTES):
        path = f"{number % 100:02}/note {number}"
        connection.execute(f"INSERT INTO pages ({columns}) VALUES (?, ?, '', '', '', 0, 0, '')", (path, path))
        names = {f"note {chance.randrange(_NOTES * 11 // 10)}" for _ in range(_LINKS)}
        targets = [target for name in names for target in (name, f"[[{name}|{name}")]
        connection.executemany("INSERT INTO links VALUES (?, ?)", ((path, target) for target in targets))
    return connection


def _seconds(work: Callable[[], object]) -> float:
    before = sum(os.times()[:4])
    work()
    return sum(os.times()[:4]) - before
