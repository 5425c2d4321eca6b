"""The room an index takes, and how it grows over thousands of edits that make no page longer."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.corpus import page
from benchmarks.support.local import opened, wait_until_settled
from benchmarks.support.options import Options
from benchmarks.support.processes import in_fresh_process, tree_bytes
from benchmarks.support.report import Figure, at_most, say
from benchmarks.support.wikis import BuiltWiki, built, copied, scratch
from tests.support.live_wiki import commit

_MOST_BYTES = 20 * 1024
"""With texts and metadata in ChromaDB, which take more than half."""
_MOST_GROWTH = 20.0
_EDITS_PER_COMMIT = 50
_COMMITS_PER_WORD = 20
_ELSEWHERE = 2_000_000
"""Pages from this number on are in no wiki that is measured: their words are new to it."""
_KINDS = {"catalog.": "catalog", "chroma.sqlite3": "ChromaDB's log", "data_level0": "HNSW graph"}
"""The beginnings of names of files, and what these hold."""
_OTHER = "other files"
_PARAGRAPH = re.compile(r"^[A-Z][a-z]+ [^\n]*\.$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Growth:
    """Bytes of the index's parts before and after the edits (closed), of all while still open, and chunks embedded."""

    before: dict[str, int]
    after: dict[str, int]
    still_open: int
    embedded: int
    chunks: int


def measure(options: Options) -> list[Figure]:
    """Return the bytes a chunk of each size, and the growth of the small wiki's index."""
    found = []
    for pages in options.sizes:
        wiki = built(pages)
        room = _room(wiki.data_dir)
        bytes_a_chunk = sum(room.values()) / wiki.chunks
        found.append(
            at_most(f"index on the disk, {wiki.chunks:,} chunks", bytes_a_chunk, "bytes/chunk", _MOST_BYTES, _shown(room))
        )
    with scratch() as place:
        growth = in_fresh_process(_edit, copied(built(options.small_pages), place), options.edits)
    return [*found, *_growth_figures(growth, options.edits)]


def _growth_figures(growth: _Growth, edits: int) -> list[Figure]:
    before, after = sum(growth.before.values()), sum(growth.after.values())
    note = f"before: {_shown(growth.before)}; after: {_shown(growth.after)}; while still open: {_megabytes(growth.still_open)}"
    name = f"growth of the index over {edits:,} page edits"
    return [
        at_most(name, 100 * (after / before - 1), "%", _MOST_GROWTH, note),
        Figure("index on the disk after the edits", after / growth.chunks, "bytes/chunk"),
        Figure("chunks embedded for the edits", growth.embedded, "", note=f"of an index of {growth.chunks:,} chunks"),
    ]


def _room(data_dir: Path) -> dict[str, int]:
    """Return the bytes of the index's files by what they belong to."""
    found: Counter[str] = Counter()
    for path in data_dir.rglob("*"):
        if path.is_file():
            found[next((kind for start, kind in _KINDS.items() if path.name.startswith(start)), _OTHER)] += path.stat().st_size
    return dict(found)


def _shown(room: dict[str, int]) -> str:
    return ", ".join(f"{kind} {_megabytes(room[kind])}" for kind in (*_KINDS.values(), _OTHER) if kind in room)


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.1f} MB"


def _edit(wiki: BuiltWiki, edits: int) -> _Growth:
    before = _room(wiki.data_dir)
    total = sum(before.values())
    with opened(wiki.repository, wiki.data_dir) as index:
        wait_until_settled(index)
        for number, changes in enumerate(_changes(wiki.repository, edits), 1):
            commit(wiki.repository, changes)
            index.notify()
            status = wait_until_settled(index)
            if number % _COMMITS_PER_WORD == 0:
                growth = tree_bytes(wiki.data_dir) / total - 1
                say(f"{number} commits, {status.embedded_texts:,} chunks embedded, {growth:+.0%} of the index's size")
        still_open = tree_bytes(wiki.data_dir)
    return _Growth(before, _room(wiki.data_dir), still_open, status.embedded_texts, status.chunks)


def _changes(repository: Path, edits: int) -> Iterator[dict[str, str | bytes | None]]:
    """Return the changed files of each commit: a paragraph of each is exchanged for another one of as many words."""
    chance = random.Random(1)
    sources = {str(path.relative_to(repository)): path.read_text(encoding="utf-8") for path in repository.rglob("*.md")}
    names = sorted(sources)
    step = min(_EDITS_PER_COMMIT, len(names))
    for start in range(0, edits, step):
        numbers = range(start, min(start + step, edits))
        chosen = chance.sample(names, len(numbers))
        for name, number in zip(chosen, numbers, strict=True):
            sources[name] = _edited(sources[name], number, chance)
        yield {name: sources[name] for name in chosen}


def _edited(source: str, number: int, chance: random.Random) -> str:
    paragraph = chance.choice(list(_PARAGRAPH.finditer(source)))
    new = " ".join(_PARAGRAPH.findall(page(_ELSEWHERE + number)[1])).split()
    words = new[: len(paragraph[0].split())]
    return f"{source[: paragraph.start()]}{' '.join(words).rstrip('.,')}.{source[paragraph.end() :]}"
