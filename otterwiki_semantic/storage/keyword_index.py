"""The keyword index of a catalog: BM25 scores, word frequencies, page and section names, and the words as spelled."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from otterwiki_semantic.storage.exact_index import ChunkRef, ExactIndex
from otterwiki_semantic.storage.filters import FilterMask
from otterwiki_semantic.storage.posting_lists import PostingLists, WordSets
from otterwiki_semantic.storage.schema import read_revision
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile
from otterwiki_semantic.storage.vector_rows import Rows

_SHORTEST = 4
"""Minimum length of a word that can be a correction."""
_SEPARATOR = " "
_TITLE_WEIGHT, _HEADINGS_WEIGHT, _BODY_WEIGHT = 5.0, 3.0, 1.0
"""Weights of a word in the title, in the heading path and in the text. Half or twice these rank about the same."""
_MAX_NAMED = 50
_MAX_CACHED_FREQUENCIES = 20_000
_COMMON, _AGE_PER_CHUNK = 1_000, 50e-6
"""Cache the count of a word in at least this many chunks, for this many seconds per chunk: 50 times the cost of counting."""
_GROWTH = 4


class Vocabulary:
    """The words of a catalog by first letter and length, which catalogs of earlier versions lack.

    The words of each letter and length are one text: 250,000 words take 3 MB. Words of deleted pages stay in memory.
    """

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._revision, self._last_number = -1, 0
        self._words: dict[tuple[str, int], str] = {}

    def refresh(self) -> None:
        """Read the words added since the last call."""
        revision = read_revision(self._database)
        if revision == self._revision:
            return
        statement = (
            f"SELECT MAX(number), substr(word, 1, 1), length(word), group_concat(word, '{_SEPARATOR}') FROM words"
            f" WHERE number > ? AND length(word) >= {_SHORTEST} GROUP BY 2, 3"
        )
        with self._lock:
            rows = self._database.select(statement, self._last_number)
            for number, letter, length, words in rows:
                known = self._of(letter, length)  # a word on a single page is new whenever that page is saved
                all_words = _SEPARATOR.join(dict.fromkeys((*known, *words.split(_SEPARATOR)))) if known else words
                self._words[letter, length] = all_words
                self._last_number = max(self._last_number, number)
            self._revision = revision

    def beginning(self, letter: str, shortest: int, longest: int) -> list[str]:
        """Return the words with this first letter and from `shortest` to `longest` letters."""
        self.refresh()
        return [word for length in range(shortest, longest + 1) for word in self._of(letter, length)]

    def first_letters(self, count: int) -> list[str]:
        """Return the `count` most frequent first letters of words."""
        self.refresh()
        sizes = Counter[str]()
        for (letter, _), words in tuple(self._words.items()):
            sizes[letter] += len(words)
        return [letter for letter, _ in sizes.most_common(count)]

    def pages(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of pages with each word, without words that are on no page."""
        return self._database.mapping(f"SELECT word, pages FROM words WHERE word {IN_LIST}", words)

    def _of(self, letter: str, length: int) -> list[str]:
        return self._words.get((letter, length), "").split()


class KeywordIndex:
    """Reads the words and names of a catalog. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._lists = PostingLists(database, (_TITLE_WEIGHT, _HEADINGS_WEIGHT, _BODY_WEIGHT))
        self.vocabulary = Vocabulary(database)
        self._frequencies: dict[str, tuple[int, int, float]] = {}
        """The number of chunks with a word, the revision of the count, and the time when it expires for other revisions."""

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Return the number of chunks with each stored word.

        Counting walks through all occurrences of a word, and counts only serve as weights, so those of common words are reused
        for a while after a change (two seconds for 40,000 chunks). New and removed words are noticed at once.
        """
        with self._database.snapshot():
            revision, now = read_revision(self._database), time.monotonic()
            if len(self._frequencies) > _MAX_CACHED_FREQUENCIES:
                self._frequencies = {}
            known = self._frequencies
            missing = [word for word in dict.fromkeys(words) if not _is_valid(known.get(word), revision, now)]
            if missing:
                counts = self._database.mapping(f"SELECT term, doc FROM keyword_counts WHERE term {IN_LIST}", missing)
                for word, count in (dict.fromkeys(missing, 0) | counts).items():
                    known[word] = count, revision, now + _AGE_PER_CHUNK * count if count >= _COMMON else now
        return {word: known[word][0] for word in words}

    def word_scores(
        self, words: Sequence[str], expression: str, index: ExactIndex, limit: int, mask: FilterMask | None = None
    ) -> dict[int, float]:
        """Return the `scores` of an expression that matches any of these words, mostly from memory."""
        if not words:
            return {}
        scores, last = self._lists.scores(self.frequencies(words), index, limit, mask.mask if mask else None)
        if index.last_id == last:
            return scores
        newer = self._scores(expression, limit, after=last)
        scores |= newer if mask is None else {chunk: newer[chunk] for chunk in mask.select(list(newer))}
        ranked = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
        return {chunk: scores[chunk] for chunk in ranked[:limit]}

    def word_sets(self, words: Sequence[str], index: ExactIndex, rows: Rows, *, in_names: bool = False) -> WordSets:
        """Return which of up to 64 words the chunk of each row has, as bits; the first word is the lowest bit.

        With `in_names`, only words in headings and in the title, aliases and path of the page count.
        """
        ids = index.columns.ids[rows]
        if not words:
            return np.zeros(len(ids), dtype=np.uint64)
        sets, last = self._lists.word_sets(words, ids, index, in_names=in_names)
        is_known = ids <= last
        if not is_known.all():  # pages newer than the lists
            stored = self.stored_words(ids[~is_known].tolist())
            columns = slice(1) if in_names else slice(2)
            texts = (set(" ".join(stored.get(chunk, ())[columns]).split()) for chunk in ids[~is_known].tolist())
            sets[~is_known] = [sum(1 << bit for bit, word in enumerate(words) if word in text) for text in texts]
        return sets

    def warm_up(self, index: ExactIndex) -> None:
        """Read what every keyword search needs; the `vocabulary` is only needed to correct words."""
        self._lists.read((), index)

    def scores(self, expression: str, limit: int, mask: FilterMask | None = None) -> dict[int, float]:
        """Return up to `limit` matching chunks, best first, with their BM25 scores (Robertson et al., 1994)."""
        if mask is None or mask.ids_json is not None:
            return self._scores(expression, limit, mask.ids_json if mask else None)
        wanted = mask.oversample(limit)
        while True:
            found = self._scores(expression, wanted)
            passing = mask.select(list(found))
            if len(passing) >= limit or len(found) < wanted:
                return {chunk: found[chunk] for chunk in passing[:limit]}
            wanted *= _GROWTH

    def _scores(self, expression: str, limit: int, ids_json: str | None = None, after: int = 0) -> dict[int, float]:
        condition = " AND +rowid IN (SELECT value FROM json_each(?))" if ids_json is not None else ""
        condition += f" AND rowid > {after}" if after else ""
        statement = (
            f"SELECT rowid, -bm25(keywords, {_TITLE_WEIGHT}, {_HEADINGS_WEIGHT}, {_BODY_WEIGHT}) AS score FROM keywords"
            f" WHERE keywords MATCH ?{condition} ORDER BY score DESC, rowid LIMIT ?"
        )
        values = (expression, limit) if ids_json is None else (expression, ids_json, limit)
        return self._database.mapping(statement, *values)

    def matches(self, expression: str, limit: int) -> list[int]:
        """Return up to `limit` matching chunks, in no order."""
        rows = self._database.select("SELECT rowid FROM keywords WHERE keywords MATCH ? LIMIT ?", expression, limit)
        return [row["rowid"] for row in rows]

    def named(self, key: str, mask: FilterMask | None = None) -> tuple[list[ChunkRef], list[ChunkRef]]:
        """Return the first chunks of the pages with this name, and of the sections with this heading."""
        statement = (
            "SELECT names.ordinal < 0 AS is_page, chunks.id, chunks.vector, chunks.path, chunks.ordinal"
            " FROM names JOIN chunks ON chunks.path = names.path AND chunks.ordinal = MAX(names.ordinal, 0)"
            " WHERE names.key = ? ORDER BY is_page DESC, names.path LIMIT ?"
        )
        rows = self._database.select(statement, key, _MAX_NAMED if mask is None else -1)
        if mask is not None:
            passing = frozenset(mask.select([row["id"] for row in rows]))
            rows = [row for row in rows if row["id"] in passing][:_MAX_NAMED]
        pages = [ChunkRef(*row[1:]) for row in rows if row["is_page"]]
        return pages, [ChunkRef(*row[1:]) for row in rows if not row["is_page"]]

    def common_words(self, count: int) -> list[str]:
        """Return the words on the most pages, as they are spelled."""
        return [row["word"] for row in self._database.select("SELECT word FROM words ORDER BY pages DESC, word LIMIT ?", count)]

    def stored_words(self, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return the stored words of chunks: of the page's title and headings, and of the text."""
        statement = f"SELECT rowid, title, headings, body FROM keywords WHERE rowid {IN_LIST}"
        return {chunk: (f"{title} {headings}", body) for chunk, title, headings, body in self._database.select(statement, ids)}


def _is_valid(frequency: tuple[int, int, float] | None, revision: int, now: float) -> bool:
    return frequency is not None and (frequency[1] == revision or now < frequency[2])
