"""What a search reads from a catalog besides the keyword index: filters, vectors, and the chunks to show."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from otterwiki_semantic.content.analysis import sentence_ranges
from otterwiki_semantic.content.pages import page_name, title_and_path_words
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.records import ChunkSection, FileKind, StoredChunk, Unit, UnitKind, encode_places
from otterwiki_semantic.embedding import WORDS_ONLY, Matrix, vector_id
from otterwiki_semantic.storage.exact_index import ChunkRef, ExactIndex, Mask
from otterwiki_semantic.storage.exact_index_cache import ExactIndexCache
from otterwiki_semantic.storage.filters import Filter, FilterMask
from otterwiki_semantic.storage.labels import SectionLabel, section_labels
from otterwiki_semantic.storage.page_names import HeadingWords, PageNames, heading_words
from otterwiki_semantic.storage.schema import IS_EMBEDDED, decode_list, decode_vectors, iso_time, read_revision
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile

_MAX_CACHED_MASKS = 64
_MAX_CACHED_HEADINGS = 50_000
_NAMES_AGE, _QUICK_SECONDS = 20, 0.005
"""Maximum age of page names, as a multiple of the time it takes to read them, unless they are read this quickly."""
_SELECT_LINKS = """
SELECT json_group_object(target, count) FROM (SELECT target, COUNT(*) AS count FROM links GROUP BY target)"""
SELECT_CHUNKS = """
SELECT chunks.id, vector, text, prefix_length, overlap_length, section, section_path, headings, anchor, start_line, end_line,
       places, path, title, category, tags, ordinal, chunk_count, word_count, updated, kind
FROM chunks JOIN pages USING (path) LEFT JOIN files USING (path)"""
"""Columns after id and vector are in the order of `StoredChunk`, except the places: the chunk's sections and units."""


class PinnedQuestion(NamedTuple):
    """A question that a page is pinned to."""

    text: str
    path: str
    may_be_embedded: bool
    """Whether models may read the page."""


class CatalogReader:
    """Reads chunks, their pages and their vectors. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile, *, is_current: bool, vectors: str) -> None:
        """`is_current` is false for the schema of an earlier version; for `vectors` see `Catalog`."""
        self._database = database
        self._language = "language" if is_current else f"'{ENGLISH}'"
        self._select_chunks = SELECT_CHUNKS if is_current else SELECT_CHUNKS.replace("places", "NULL")
        self.exact_indexes = ExactIndexCache(database, vectors)
        self._heading_words: dict[int, HeadingWords] = {}
        self._masks: tuple[ExactIndex | None, dict[Filter, FilterMask]] = None, {}
        self._reading_names = threading.Lock()
        self._names: tuple[int, float, PageNames] = -1, 0.0, PageNames()
        """The revision of the names, the time from which a newer one is read, and the names."""
        self._answers: tuple[int, tuple[PinnedQuestion, ...]] = -1, ()

    def exact_index(self) -> ExactIndex:
        """Return the exact index of the state that the calling thread reads."""
        return self.exact_indexes.get()

    def page_names(self) -> PageNames:
        """Return the names of the pages, as of the calling thread's state or an earlier one.

        While pages change continuously, names, which only weight results, are read again once they are twenty times as old as
        reading takes. In a small wiki they are always current.
        """
        with self._database.snapshot(), self._reading_names:
            revision = read_revision(self._database)
            known_revision, read_again, known = self._names
            if revision > known_revision and time.monotonic() >= read_again:
                start = time.thread_time()  # what reading takes, however busy the machine is
                known = self._read_names(known)
                taken = time.thread_time() - start
                age = _NAMES_AGE * taken if taken > _QUICK_SECONDS else 0.0
                self._names = revision, time.monotonic() + age, known
        return known

    def _read_names(self, known: PageNames) -> PageNames:
        select = self._database.select
        columns = f"number, path, path_key, title, {self._language}, title_words, name_words, path_words"
        rows = select(f"SELECT {columns} FROM pages LEFT JOIN page_names ON page = number WHERE number > ?", known.last_number)
        # One JSON text is faster than one row per number.
        numbers = json.loads(select("SELECT json_group_array(number) FROM pages")[0][0])
        added = (
            (number, path, key, title_and_path_words(title, path, language) if words[0] is None else words)
            for number, path, key, title, language, *words in rows
        )
        return known.updated(added, frozenset(numbers), json.loads(select(_SELECT_LINKS)[0][0]))

    def answers(self) -> tuple[PinnedQuestion, ...]:
        """Return the questions with pinned pages; cached until the next revision."""
        with self._database.snapshot():
            revision = read_revision(self._database)
            known_revision, known = self._answers
            if known_revision != revision:
                rows = self._database.select(
                    f"SELECT question, answers.path, {IS_EMBEDDED} FROM answers"
                    " JOIN chunks ON chunks.path = answers.path AND ordinal = 0 ORDER BY question, answers.path"
                )
                known = tuple(PinnedQuestion(question, path, bool(may_be_embedded)) for question, path, may_be_embedded in rows)
                self._answers = revision, known
        return known

    def first_chunks(self, paths: Iterable[str], where: Filter) -> list[ChunkRef]:
        """Return the first chunk of each page that passes a filter."""
        statement = (
            "SELECT chunks.id, vector, path, ordinal FROM chunks JOIN pages USING (path)"
            f" WHERE ordinal = 0 AND path {IN_LIST} AND {where.sql}"
        )
        return [ChunkRef(*row) for row in self._database.select(statement, paths, *where.values)]

    def heading_words(self, ids: Sequence[int]) -> dict[int, HeadingWords]:
        """Return the words of chunks' headings, by id. They never change, so many are cached."""
        if len(self._heading_words) > _MAX_CACHED_HEADINGS:
            self._heading_words = {}
        known = self._heading_words
        missing = [chunk for chunk in ids if chunk not in known]
        if missing:
            rows = self._database.select(
                f"SELECT chunks.id, section_path, headings, title, {self._language} FROM chunks JOIN pages USING (path)"
                f" WHERE chunks.id {IN_LIST}",
                missing,
            )
            known.update(
                (chunk, heading_words(decode_list(section_path), decode_list(headings), title, language))
                for chunk, section_path, headings, title, language in rows
            )
        return {chunk: known[chunk] for chunk in ids if chunk in known}

    def mask(self, index: ExactIndex, where: Filter) -> FilterMask | None:
        """Return the chunks that pass a filter, or None for an empty filter. Recent masks are cached."""
        if not where:
            return None
        of_index, known = self._masks
        if of_index is not index or len(known) > _MAX_CACHED_MASKS:
            known = {}
            self._masks = index, known
        if where not in known:
            known[where] = FilterMask.of(index, self._mask(index, where))
        return known[where]

    def _mask(self, index: ExactIndex, where: Filter) -> Mask:
        if where.chunks:
            statement = f"SELECT chunks.id FROM chunks JOIN pages USING (path) WHERE {where.sql}"
            return index.mask_of_chunks(row["id"] for row in self._database.select(statement, *where.values))
        statement = f"SELECT number FROM pages WHERE {where.sql}"
        return index.mask_of_pages(row["number"] for row in self._database.select(statement, *where.values))

    def candidates(self, vectors: Iterable[str]) -> list[ChunkRef]:
        """Return the chunks that have any of these vectors."""
        statement = f"SELECT id, vector, path, ordinal FROM chunks WHERE vector {IN_LIST}"
        return [ChunkRef(*row) for row in self._database.select(statement, vectors)]

    def sample_texts(self, count: int) -> list[str]:
        """Return the texts of up to `count` random embedded chunks."""
        sample = f"SELECT id FROM chunks WHERE {IS_EMBEDDED} ORDER BY RANDOM() LIMIT ?"
        return [row["text"] for row in self._database.select(f"SELECT text FROM chunks WHERE id IN ({sample})", count)]

    def chunks(self, ids: Sequence[int]) -> dict[int, StoredChunk]:
        """Return chunks by id."""
        rows = self._database.select(f"{self._select_chunks} WHERE chunks.id {IN_LIST}", ids)
        return {row["id"]: stored_chunk(row) for row in rows}

    def page_range(self, path: str, first: int, last: int) -> list[StoredChunk]:
        """Return the chunks of a page with ordinals from `first` to `last`, inclusive, in order."""
        where = "WHERE chunks.path = ? AND ordinal BETWEEN ? AND ? ORDER BY ordinal"
        return [stored_chunk(row) for row in self._database.select(f"{self._select_chunks} {where}", path, first, last)]

    def section_labels(self, path: str, ordinal: int, title: str) -> list[SectionLabel]:
        """Return the headings above and in a chunk, in order, without the page's title."""
        statement = "SELECT section_path, headings, anchor FROM chunks WHERE path = ? AND ordinal = ?"
        return list(section_labels(title, *self._database.select(statement, path, ordinal)[0]))

    def page_labels(self, paths: Sequence[str]) -> dict[str, tuple[str | None, tuple[str, ...], str | None]]:
        """Return the category, tags and kind of pages and attached files, by path."""
        statement = f"SELECT path, category, tags, kind FROM pages LEFT JOIN files USING (path) WHERE path {IN_LIST}"
        return {
            path: (category, decode_list(tags), kind) for path, category, tags, kind in self._database.select(statement, paths)
        }

    def page_chunks(self, path: str) -> tuple[str, list[int]]:
        """Return the title of a page and the ids of its chunks, in order."""
        with self._database.snapshot():
            title = self._database.select("SELECT title FROM pages WHERE path = ?", path)[0]["title"]
            rows = self._database.select("SELECT id FROM chunks WHERE path = ? ORDER BY ordinal", path)
        return title, [row["id"] for row in rows]

    def page_vectors(self, paths: Sequence[str]) -> dict[str, tuple[list[int], Matrix]]:
        """Return the chunk ids of each page, in order, and the chunks' vectors (chunks x dimension)."""
        rows = self._database.select(
            "SELECT chunks.path, chunks.id, embedding FROM chunks JOIN vectors ON vectors.id = chunks.vector"
            f" WHERE chunks.path {IN_LIST} ORDER BY chunks.path, ordinal",
            paths,
        )
        of_pages = ((path, list(of_page)) for path, of_page in groupby(rows, itemgetter("path")))
        return {
            path: ([row["id"] for row in of_page], decode_vectors([row["embedding"] for row in of_page]))
            for path, of_page in of_pages
        }


def check_text(path: str, vector: str, text: str) -> None:
    """Raise `CatalogCorruptError` unless a chunk's text is the one that was indexed."""
    if vector_id(text) != vector.removeprefix(WORDS_ONLY):
        raise CatalogCorruptError(f"the catalog's text of {path!r} is not the one that was indexed")


def stored_chunk(row: sqlite3.Row) -> StoredChunk:
    """Return the chunk in a row of `SELECT_CHUNKS`. Errors: `CatalogCorruptError`."""
    # By position: access by name is several times slower, and an answer reads hundreds of rows.
    _, vector, text, prefix_length, overlap_length, section, section_path, headings, anchor, start_line, end_line, *page = row
    places, path, title, category, tags, ordinal, chunk_count, word_count, updated, kind = page
    check_text(path, vector, text)
    above = decode_list(section_path)
    if places is None:  # written by an earlier version
        own = sentence_ranges(text, prefix_length + overlap_length)
        units = tuple(Unit(start, end, 0, start_line, end_line, UnitKind.SENTENCE) for start, end in own)
        places = encode_places((ChunkSection(above, anchor),), units)
    return StoredChunk(
        *(text, prefix_length, overlap_length, section, above, decode_list(headings), anchor, start_line, end_line),
        *(page_name(path), path, title, category, decode_list(tags), ordinal, chunk_count, word_count),
        *(iso_time(updated), places, kind and FileKind(kind)),
    )
