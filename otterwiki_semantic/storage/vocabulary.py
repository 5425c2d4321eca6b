"""The words of a wiki in memory, as they are spelled, to correct those of queries."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from otterwiki_semantic.storage.schema import read_revision
from otterwiki_semantic.storage.sqlite import IN_LIST, SqliteFile

_SHORTEST = 4
"""Shorter words correct nothing."""
_SEPARATOR = " "


class Vocabulary:
    """Words of a catalog by first letter and length. Errors: those of `SqliteFile`.

    The words of each letter and length are one text: 250,000 words take 3 MB. Words of deleted pages stay in memory; `pages`
    returns which words the wiki has.
    """

    def __init__(self, database: SqliteFile, *, is_current: bool = True) -> None:
        self._database = database
        self._is_new = "number > ?" if is_current else "? = 0"
        self._number = "number" if is_current else "1"
        self._lock = threading.Lock()
        self._revision, self._last_number = -1, 0
        self._words: dict[tuple[str, int], str] = {}

    def refresh(self) -> None:
        """Read the words that were added since the last call."""
        revision = read_revision(self._database)
        if revision == self._revision:
            return
        statement = (
            f"SELECT MAX({self._number}), substr(word, 1, 1), length(word), group_concat(word, '{_SEPARATOR}') FROM words"
            f" WHERE {self._is_new} AND length(word) >= {_SHORTEST} GROUP BY 2, 3"
        )
        with self._lock:
            rows = self._database.select(statement, self._last_number)
            for number, letter, length, words in rows:
                known = self._words.get((letter, length))
                self._words[letter, length] = f"{known}{_SEPARATOR}{words}" if known else words
                self._last_number = max(self._last_number, number)
            self._revision = revision

    def beginning(self, letter: str, shortest: int, longest: int) -> list[str]:
        """Return the words with this first letter and so many letters."""
        self.refresh()
        return [word for length in range(shortest, longest + 1) for word in self._words.get((letter, length), "").split()]

    def first_letters(self, count: int) -> list[str]:
        """Return the letters that most words begin with."""
        self.refresh()
        sizes = Counter[str]()
        for (letter, _), words in tuple(self._words.items()):
            sizes[letter] += len(words)
        return [letter for letter, _ in sizes.most_common(count)]

    def pages(self, words: Iterable[str]) -> dict[str, int]:
        """Return the number of pages that have each of these words, without words that are on no page."""
        rows = self._database.select(f"SELECT word, pages FROM words WHERE word {IN_LIST}", list(words))
        return {row["word"]: row["pages"] for row in rows}
