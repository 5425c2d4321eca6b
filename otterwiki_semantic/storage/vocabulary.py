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
    """Words of a catalog by first letter and length; not of a catalog of an earlier version. Errors: those of `SqliteFile`.

    The words of each letter and length are one text: 250,000 words take 3 MB. Words of deleted pages stay in memory; `pages`
    returns which words the wiki has.
    """

    def __init__(self, database: SqliteFile) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._revision, self._last_number = -1, 0
        self._words: dict[tuple[str, int], str] = {}

    def refresh(self) -> None:
        """Read the words that were added since the last call."""
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
                known = self._of(letter, length)  # a word that only one page has is new each time that page is saved
                self._words[letter, length] = _SEPARATOR.join(dict.fromkeys((*known, *words.split(_SEPARATOR))))
                self._last_number = max(self._last_number, number)
            self._revision = revision

    def beginning(self, letter: str, shortest: int, longest: int) -> list[str]:
        """Return the words with this first letter and so many letters."""
        self.refresh()
        return [word for length in range(shortest, longest + 1) for word in self._of(letter, length)]

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

    def _of(self, letter: str, length: int) -> list[str]:
        return self._words.get((letter, length), "").split()
