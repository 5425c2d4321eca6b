"""All that a stopped index holds, in a form that can be compared with another one's, and what is wrong with it by itself."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LOGS = {"owner.log", "owner.log.1"}
_KEPT = {
    "current",
    "previous",
    "chroma",
    "generations",
    "reading",
    "repository.json",
    "model.json",
    "start.lock",
    "owner.lock",
} | _LOGS
CATALOG = ("catalog.sqlite3", "catalog.sqlite3-wal", "catalog.sqlite3-shm")
_OWN_FACTS = {
    "chroma",
    "chroma whole",
    "counts",
    "searches",
    "dead places",
    "degraded answers",
    "median seconds",
    "revision",
    "seconds per chunk",
    "similarity scale",
}
"""Facts of the catalog's `meta` that two equal indexes have each for itself."""
_NUMBERS = {"chunks": {"id", "page"}, "pages": {"number"}, "words": {"number"}}
"""Columns that only count."""
_PASSING = ("suspects", "dropped", "stale", "pending")
"""Tables of what is left to do: nothing, in an index that equals a commit."""
_OF_VECTORS = {"vectors", "free_places"}
_OWN_TABLES = {"filled", "keyword_places"}
"""A log of what each did, and a view of the keyword index by the chunks' ids."""
_KEYWORDS = """
SELECT chunks.path AS path, chunks.ordinal AS ordinal, title, keywords.headings AS headings, body
FROM keywords LEFT JOIN chunks ON chunks.id = keywords.rowid"""
_LABELS = """
SELECT pages.path AS page, labels.rowid & ((1 << 24) - 1) AS place, labels.rowid >> 54 AS length, labels.*
FROM labels LEFT JOIN pages ON pages.number = labels.rowid >> 24 & ((1 << 30) - 1)"""
"""Rows that stand for a page and a place in it, as the number of the page and that of its label say."""
_STATEMENTS = {"keywords": _KEYWORDS, "labels": _LABELS}
_ROUNDING = 1e-6
_SAME = 1e-4
_OPENINGS = 4
_MOST_SHOWN = 3
_LONGEST_SHOWN = 160

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Contents:
    """What an index holds: the rows of every table (as texts, without what counts them), vectors by id, in both databases.

    `faults` are what is wrong whatever it is compared with.
    """

    rows: Mapping[str, Counter[str]] = field(default_factory=dict)
    vectors: Mapping[str, bytes] = field(default_factory=dict)
    embeddings: Mapping[str, Floats] = field(default_factory=dict)
    records: Mapping[str, str] = field(default_factory=dict)
    """The texts and metadata in ChromaDB."""
    faults: tuple[str, ...] = ()


def differences(found: Contents, expected: Contents) -> list[str]:
    """Return what is wrong with an index, as sentences; nothing if it is right by itself and equals the expected one."""
    said = list(found.faults)
    for table in sorted(found.rows.keys() | expected.rows.keys()):
        here, there = found.rows.get(table, Counter()), expected.rows.get(table, Counter())
        said += _named(f"{table} lacks", (there - here).elements())
        said += _named(f"{table} has in vain", (here - there).elements())
    said += _unequal_keys("the catalog's vectors", found.vectors, expected.vectors)
    changed = [name for name in found.vectors.keys() & expected.vectors.keys() if found.vectors[name] != expected.vectors[name]]
    said += _named("the catalog has another vector for", changed)
    said += _unequal_keys("ChromaDB", found.embeddings, expected.embeddings)
    moved = [
        name
        for name in found.embeddings.keys() & expected.embeddings.keys()
        if not np.allclose(found.embeddings[name], expected.embeddings[name], rtol=0, atol=_ROUNDING)
    ]
    said += _named("ChromaDB has another vector for", moved)
    other = [name for name in found.records.keys() & expected.records.keys() if found.records[name] != expected.records[name]]
    return said + _named("ChromaDB has another text or other metadata for", other)


def read_contents(data_dir: Path) -> Contents:
    """Return what the stopped index in a data directory holds; reads a copy, so that its files stay as they are."""
    faults = _named("stray in the data directory:", (path.name for path in data_dir.iterdir() if path.name not in _KEPT))
    generations = sorted((data_dir / "generations").iterdir())
    try:
        current = (data_dir / "current").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return Contents(faults=(*faults, "no generation serves"))
    previous = data_dir / "previous"
    kept = {current, previous.read_text().strip() if previous.exists() else current}
    faults += _named("a generation that nobody needs:", (path.name for path in generations if path.name not in kept))
    if current not in {path.name for path in generations}:
        return Contents(faults=(*faults, f"the serving generation {current} is gone"))
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / current
        shutil.copytree(data_dir / "generations" / current, copy)
        return _read_generation(copy, faults)


def _read_generation(directory: Path, faults: list[str]) -> Contents:
    others = [path for path in directory.iterdir() if path.name not in CATALOG]
    with closing(sqlite3.connect(directory / CATALOG[0])) as catalog:
        faults += _faults_of_catalog(catalog)
        rows = {table: _rows(catalog, table) for table in _tables(catalog)}
        vectors = dict(catalog.execute("SELECT id, embedding FROM vectors"))
        (chroma,) = catalog.execute("SELECT value FROM meta WHERE name = 'chroma'").fetchone()
    faults += _named("stray in the generation:", (path.name for path in others if path.name != chroma))
    if not (directory / chroma).is_dir():
        return Contents(rows, vectors, faults=(*faults, f"ChromaDB's directory {chroma} is gone"))
    faults += _faults_of_files(directory / chroma)
    embeddings, records, unfound = _read_collection(directory / chroma)
    return Contents(rows, vectors, embeddings, records, (*faults, *unfound))


def _tables(catalog: sqlite3.Connection) -> list[str]:
    """Return the tables whose rows are compared: neither the vectors nor what two equal indexes have each for itself."""
    names = [name for (name,) in catalog.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    left_out = _OF_VECTORS | _OWN_TABLES
    return [name for name in names if not name.startswith(("sqlite_", "keywords_", "labels_")) and name not in left_out]


def _rows(catalog: sqlite3.Connection, table: str) -> Counter[str]:
    """Return the rows of a table; the numbers of chunks are not the same in two indexes, and stand for page and place."""
    cursor = catalog.execute(_STATEMENTS.get(table, f"SELECT * FROM {table}"))
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, values, strict=True)) for values in cursor]
    if table == "meta":
        rows = [row for row in rows if row["name"] not in _OWN_FACTS]
    unequal = _NUMBERS.get(table, set())
    return Counter("; ".join(f"{name}={row[name]!r}" for name in names if name not in unequal) for row in rows)


def _faults_of_catalog(catalog: sqlite3.Connection) -> list[str]:
    (verdict,) = catalog.execute("PRAGMA integrity_check").fetchone()
    faults = [] if verdict == "ok" else [f"SQLite says of the catalog: {verdict}"]
    try:
        catalog.execute("INSERT INTO keywords (keywords) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        faults.append(f"SQLite says of the keyword index: {error}")
    for table in _PASSING:
        (number,) = catalog.execute(f"SELECT COUNT(*) FROM {table}").fetchone()
        faults += [f"{table} has {number} rows"] if number else []
    (unstored,) = catalog.execute("SELECT COUNT(*) FROM unstored").fetchone()
    faults += [f"{unstored} vectors are not said to be in ChromaDB"] if unstored else []
    if catalog.execute("SELECT 1 FROM meta WHERE name = 'changing'").fetchone():
        faults.append("the catalog is said to be changing")
    return faults


def _faults_of_files(chroma: Path) -> list[str]:
    with closing(sqlite3.connect(chroma / "chroma.sqlite3")) as database:
        (verdict,) = database.execute("PRAGMA integrity_check").fetchone()
    faults = [] if verdict == "ok" else [f"SQLite says of ChromaDB: {verdict}"]
    graphs = [path.name for path in chroma.iterdir() if path.is_dir()]
    return faults + ([f"ChromaDB has several graphs: {', '.join(graphs)}"] if len(graphs) > 1 else [])


def _read_collection(directory: Path) -> tuple[dict[str, Floats], dict[str, str], list[str]]:
    """Return the vectors of ChromaDB, their texts and metadata, and what a search does not find however often it is opened.

    Whenever ChromaDB opens a small collection it builds its graph anew, at random, and now and then leaves a vector out.
    """
    for _ in range(_OPENINGS):
        with tempfile.TemporaryDirectory() as place:
            copy = Path(place) / "chroma"
            shutil.copytree(directory, copy)
            with _collection(copy) as collection:
                everything = collection.get(include=["embeddings", "documents", "metadatas"])
                embeddings = dict(zip(everything["ids"], everything["embeddings"], strict=True))
                parts = (everything[part] for part in ("ids", "documents", "metadatas"))
                records = {each: f"{text}; {sorted((facts or {}).items())}" for each, text, facts in zip(*parts, strict=True)}
                unfound = _faults_of_graph(collection, embeddings)
        if not unfound:
            break
    return embeddings, records, unfound


@contextmanager
def _collection(directory: Path) -> Iterator[Any]:
    import chromadb
    from chromadb.config import Settings

    client: Any = chromadb.PersistentClient(str(directory), settings=Settings(anonymized_telemetry=False))
    try:
        (collection,) = client.list_collections()
        yield client.get_collection(collection.name, embedding_function=None)
    finally:
        client.close()


def _faults_of_graph(collection: Any, embeddings: Mapping[str, Floats]) -> list[str]:
    """Every vector is found by itself, and one search for all of them finds them all and no other."""
    if not embeddings:
        return []
    answer = collection.query(query_embeddings=np.stack(list(embeddings.values())), n_results=1, include=["distances"])
    nearest = zip(embeddings, answer["distances"], strict=True)
    lost = [name for name, distances in nearest if not distances or distances[0] > _SAME]
    some = next(iter(embeddings.values()))
    answer = collection.query(query_embeddings=some[np.newaxis], n_results=len(embeddings) + 10, include=["distances"])
    everything = dict.fromkeys(answer["ids"][0])
    return _named("a search does not find", lost) + _unequal_keys("a search for everything", everything, embeddings)


def _unequal_keys(what: str, found: Mapping[str, object], expected: Mapping[str, object]) -> list[str]:
    lacking, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    return _named(f"{what} lacks", lacking) + _named(f"{what} has in vain", extra)


def _named(what: str, things: Iterable[str]) -> list[str]:
    """Return a sentence that names the things, the first of them in full; none if there are none."""
    names = sorted(things)
    shown = "; ".join(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}…" for name in names[:_MOST_SHOWN])
    return [f"{what} {shown}" + (f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else "")] if names else []
