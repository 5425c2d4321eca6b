"""Labels of pages and sections (titles, aliases, paths and headings), found by word prefixes and as a whole.

Labels are in an FTS5 table with prefix indexes. FTS5 returns rows in the order of their ids, and the id of a label begins with
its length. So the shortest labels come first, and a lookup ends as soon as it has enough.
"""

from __future__ import annotations

import sqlite3
import string
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from otterwiki_semantic.content.analysis import name_key, name_parts
from otterwiki_semantic.content.markdown import slug
from otterwiki_semantic.content.pages import page_name
from otterwiki_semantic.storage.filters import Filter
from otterwiki_semantic.storage.schema import WordChanges, decode_list, read_revision
from otterwiki_semantic.storage.sqlite import LAST_CHARACTER, SqliteFile

_CUT = "…"
_CONTROLS = dict.fromkeys((*range(33), 127))
"""Token separators: every character that `_TOKENIZER` does not count as part of a token."""
_MAX_KEY = 200
_MAX_KEYS = 1_000
_MAX_CACHED_FILTERS = 16
_PLACE_BITS, _CHUNK_BITS, _PAGE_BITS, _LENGTH_BITS = 8, 16, 30, 8
_SECTIONS = 1 << _PLACE_BITS + _CHUNK_BITS + _PAGE_BITS + _LENGTH_BITS
"""The lowest id of a section label."""


def _quoted(text: str, mark: str = '"') -> str:
    return mark + text.replace(mark, mark * 2) + mark


_TOKENIZER = f"ascii tokenchars {_quoted(string.punctuation, chr(39))}"
_OPTIONS = f"tokenize = {_quoted(_TOKENIZER)}, prefix = '1 2', detail = column, columnsize = 0"
TABLES = {
    "labels": f"CREATE VIRTUAL TABLE labels USING fts5 (key, path_key, words, page_words, {_OPTIONS})",
    "label_words": "CREATE TABLE label_words (word TEXT PRIMARY KEY, pages INTEGER NOT NULL) WITHOUT ROWID",
}
"""Empty in catalogs of earlier versions.

`key` is the whole title or heading without spaces. `path_key` is the whole path and its last part. `words` has the words of the
title or heading, and `page_words` the words of the path, or of a section's page. Aliases count as titles.
"""


class SectionLabel(NamedTuple):
    """A heading and its location."""

    heading: str
    section_path: tuple[str, ...]
    """The stored headings from the outermost to this one."""
    anchor: str
    """The id of the heading in the page; empty if it is unknown."""


class LabelId(NamedTuple):
    """The fields encoded in the id of a label."""

    is_section: bool
    length: int
    """Characters of the title or heading; at most 255."""
    page: int
    chunk: int
    """The ordinal of the first chunk with the heading."""
    place: int
    """The index among the chunk's `section_labels`."""

    def encode(self) -> int:
        """Encode the fields as an id."""
        length = min(self.length, (1 << _LENGTH_BITS) - 1)
        place = ((length << _PAGE_BITS | self.page) << _CHUNK_BITS | self.chunk) << _PLACE_BITS | self.place
        return _SECTIONS * self.is_section | place

    @classmethod
    def decode(cls, encoded: int) -> LabelId:
        """Decode an id."""
        fields = []
        for bits in (_PLACE_BITS, _CHUNK_BITS, _PAGE_BITS, _LENGTH_BITS):
            fields.append(encoded & (1 << bits) - 1)
            encoded >>= bits
        return cls(bool(encoded), *reversed(fields))


def _page_of(encoded: int) -> int:
    return encoded >> _PLACE_BITS + _CHUNK_BITS & (1 << _PAGE_BITS) - 1


def section_labels(title: str, section_path: str, headings: str, anchor: str) -> Iterator[SectionLabel]:
    """Yield the headings above and in a chunk, in order, without the page's title.

    For merged sections, the anchor is derived from the heading, and only the outermost heading of the path is known.
    """
    path, page = decode_list(section_path), name_key(title)
    above = {heading: path[: depth + 1] for depth, heading in enumerate(path)}
    for heading in dict.fromkeys((*path, *decode_list(headings))):
        if name_key(heading) != page:
            known = above.get(heading) or (*path[:1], heading)
            yield SectionLabel(heading, known, anchor if known == path else "" if heading.endswith(_CUT) else slug(heading))


def add_labels(connection: sqlite3.Connection, path: str, aliases: Sequence[str], changes: WordChanges) -> None:
    """Add the labels of an inserted page, unless it is excluded."""
    page = _page(connection, path)
    if page is None:
        return
    number, title = page
    named, of_path = _words(title, *aliases), _words(path)
    keys, path_keys = {_key(title), *map(_key, aliases)}, {_key(path), _key(page_name(path))}
    rows = [(LabelId(False, len(title), number, 0, 0).encode(), *map(_joined, (keys, path_keys, named, of_path)))]
    words, page_words = named | of_path, _joined(named | of_path)
    for label, heading in _sections(connection, path, number, title):
        own = _words(heading)
        words |= own
        rows.append((label, _key(heading), "", _joined(own), page_words))
    statement = "INSERT INTO labels (rowid, key, path_key, words, page_words) VALUES (?, ?, ?, ?, ?)"
    connection.executemany(statement, rows)
    changes.add("label_words", words)


def delete_labels(connection: sqlite3.Connection, path: str, changes: WordChanges) -> None:
    """Delete the labels of a page that is about to be deleted."""
    page = _page(connection, path)
    if page is None:
        return
    number, title = page
    labels = [(LabelId(False, len(title), number, 0, 0).encode(),)]
    labels += [(label,) for label, _ in _sections(connection, path, number, title)]
    words: set[str] = set()
    for label in labels:
        for row in connection.execute("SELECT words, page_words FROM labels WHERE rowid = ?", label):
            words.update(*map(str.split, row))
    connection.executemany("DELETE FROM labels WHERE rowid = ?", labels)
    changes.remove("label_words", words)


def _page(connection: sqlite3.Connection, path: str) -> tuple[int, str] | None:
    row: tuple[int, str] | None = connection.execute("SELECT number, title FROM pages WHERE path = ?", (path,)).fetchone()
    return row


def _sections(connection: sqlite3.Connection, path: str, page: int, title: str) -> Iterator[tuple[int, str]]:
    known = set()
    statement = "SELECT ordinal, section_path, headings, anchor FROM chunks WHERE path = ? AND ordinal < ? ORDER BY ordinal"
    for ordinal, *columns in connection.execute(statement, (path, 1 << _CHUNK_BITS)):
        for place, label in enumerate(islice(section_labels(title, *columns), 1 << _PLACE_BITS)):
            identity = label.anchor, "" if label.anchor else label.heading
            if identity not in known:
                known.add(identity)
                yield LabelId(True, len(label.heading), page, ordinal, place).encode(), label.heading


def _joined(words: Iterable[str]) -> str:
    return " ".join(sorted(words))


def _key(name: str) -> str:
    return name_key(name).translate(_CONTROLS)[:_MAX_KEY]


def _words(*names: str) -> set[str]:
    return {word for name in names for part in name_parts(name) for word in part.beginnings}


def with_key(columns: str, name: str, *, is_beginning: bool = False) -> str:
    """Return the FTS5 expression for labels equal to a name, or beginning with it; empty if no label can match."""
    key = _key(name)
    return f"{{{columns}}}: {_quoted(key)}{'*' * is_beginning}" if key else ""


def with_words(columns: str, words: Iterable[Collection[str]]) -> str:
    """Return the FTS5 expression for labels with a matching word for each collection of prefixes; empty without any."""
    alternatives = (" OR ".join(f"{_quoted(beginning)}*" for beginning in each) for each in words)
    expression = " AND ".join(f"({each})" for each in alternatives)
    return expression and f"{{{columns}}}: ({expression})"


class LabelTable:
    """Finds the labels of a catalog. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._passing: tuple[int, dict[Filter, frozenset[int]]] = -1, {}
        """A revision, and the numbers of pages that pass the most recent filters in it."""

    def find(self, expression: str, where: Filter, limit: int, *, is_section: bool) -> list[LabelId]:
        """Return the first labels of pages or sections that match an expression and a filter, shortest first."""
        if not expression:
            return []
        kind = f"rowid {'>=' if is_section else '<'} {_SECTIONS}"
        statement = f"SELECT rowid FROM labels WHERE labels MATCH ? AND {kind} ORDER BY rowid"
        with self._database.snapshot(), self._database.read() as connection:
            passing = self._pages_passing(where) if where else None
            rows = connection.execute(statement, (expression,))
            ids = (row[0] for row in rows)
            found = list(islice((each for each in ids if passing is None or _page_of(each) in passing), limit))
            rows.close()
        return list(map(LabelId.decode, found))

    def _pages_passing(self, where: Filter) -> frozenset[int]:
        revision, known = read_revision(self._database), self._passing
        if known[0] != revision or len(known[1]) > _MAX_CACHED_FILTERS:
            known = self._passing = revision, {}
        if where not in known[1]:
            rows = self._database.select(f"SELECT number FROM pages WHERE {where.sql}", *where.values)
            known[1][where] = frozenset(row[0] for row in rows)
        return known[1][where]

    def has_word(self, beginning: str) -> bool:
        """Whether a label has a word that begins with `beginning`."""
        return bool(self._begun("SELECT 1 FROM label_words WHERE word", beginning, 1))

    def words(self, beginning: str, shortest: int) -> list[str]:
        """Return the words of labels that begin with `beginning` and have at least `shortest` letters."""
        return self._begun(f"SELECT word FROM label_words WHERE length(word) >= {shortest} AND word", beginning)

    def begins_name(self, key: str) -> bool:
        """Whether the key of a label begins with `key`."""
        return bool(self._begun("SELECT 1 FROM names WHERE key", key, 1))

    def keys_beginning(self, key: str) -> list[str]:
        """Return the label keys that begin with `key`; none if there are more than 1,000."""
        found = self._begun("SELECT DISTINCT key FROM names WHERE key", key, _MAX_KEYS + 1)
        return found if len(found) <= _MAX_KEYS else []

    def _begun(self, statement: str, beginning: str, limit: int = -1) -> list[str]:
        rows = self._database.select(f"{statement} BETWEEN ? AND ? LIMIT ?", beginning, beginning + LAST_CHARACTER, limit)
        return [row[0] for row in rows]

    def pages_named(self, key: str) -> set[int]:
        """Return the numbers of the pages with this key as title or alias."""
        rows = self._database.select(
            "SELECT number, path, title FROM names JOIN pages USING (path) WHERE key = ? AND names.ordinal < 0", key
        )
        return {
            number
            for number, path, title in rows
            if key == name_key(title) or key not in (name_key(path), name_key(page_name(path)))
        }
