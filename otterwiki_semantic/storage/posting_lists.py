"""Posting lists in memory: which chunks contain a word and how often, and BM25 scores for several words.

FTS5 takes a microsecond for each chunk with a word, and reads the chunk's length from a table; a list in memory takes a
fiftieth of that. A list is read from the keyword index on the first lookup of its word, and stays valid while pages change.
Chunks never change, deleted ones are masked, and FTS5 scores new ones until the list is read again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.storage.exact_index import ExactIndex, Mask
from otterwiki_semantic.storage.sqlite import SqliteFile
from otterwiki_semantic.storage.vector_rows import Floats

Ids = npt.NDArray[np.int64]
WordSets = npt.NDArray[np.uint64]

_K1, _B = 1.2, 0.75
"""The parameters of BM25 (Robertson et al., 1994), as in FTS5."""
_BODY = 2
"""The number of the column that is neither the title nor headings."""
_LEAST_WEIGHT = 1e-6
"""The weight of a word in more than half of all chunks, as in FTS5."""
_MAX_POSTINGS = 4_000_000
"""Postings in memory, at 13 bytes each; the least recently used words are evicted."""
_MAX_NEW, _MAX_NEW_SHARE = 500, 0.02
"""Maximum number of new chunks to score with FTS5, and maximum share; above it, lists are read again."""


class _PostingList(NamedTuple):
    ids: Ids
    counts: Floats
    """The number of occurrences in each chunk, weighted by column."""
    in_name: Mask
    """Whether the word is in a heading of each chunk, or in the title, aliases or path of its page."""
    last_id: int


class PostingLists:
    """The posting lists of the words that were looked up. Raises the errors of `SqliteFile`."""

    def __init__(self, database: SqliteFile, column_weights: tuple[float, ...]) -> None:
        self._database = database
        self._column_weights = np.array(column_weights, dtype=np.float32)
        self._lock = threading.Lock()
        self._lists: OrderedDict[str, _PostingList] = OrderedDict()
        self._postings = 0
        self._lengths: Floats = np.zeros(1, dtype=np.float32)
        self._mean: tuple[ExactIndex | None, float] = None, 1.0

    def scores(
        self, frequencies: Mapping[str, int], index: ExactIndex, limit: int, mask: Mask | None
    ) -> tuple[dict[int, float], int]:
        """Return up to `limit` chunks with any of these words, best first, with their BM25 scores, and the last known chunk.

        `frequencies` gives the number of chunks with each word.
        """
        lists, lengths = self.read(frequencies, index)
        last = min(len(lengths) - 1, *(each.last_id for each in lists.values()))
        found = np.zeros(last + 1, dtype=np.float32)
        mean = self._mean_length(index, lengths)
        for word, (ids, counts, _, last_id) in lists.items():
            end = len(ids) if last_id == last else int(np.searchsorted(ids, last, side="right"))
            chunks, frequency = ids[:end], counts[:end]
            weight = max(np.log((index.size - frequencies[word] + 0.5) / (frequencies[word] + 0.5)), _LEAST_WEIGHT)
            found[chunks] += weight * frequency * (_K1 + 1) / (frequency + _K1 * (1 - _B + _B * lengths[chunks] / mean))
        passing = index.columns.ids[index.live if mask is None else mask]
        passing = passing[: np.searchsorted(passing, last, side="right")]
        of_passing = found[passing]
        matching = np.flatnonzero(of_passing)
        if limit < len(matching):
            worst = np.partition(of_passing[matching], -limit)[-limit]
            matching = matching[of_passing[matching] >= worst]
        best = matching[np.argsort(-of_passing[matching], kind="stable")][:limit]
        return dict(zip(passing[best].tolist(), of_passing[best].tolist(), strict=True)), last

    def word_sets(self, words: Sequence[str], chunks: Ids, index: ExactIndex, *, in_names: bool) -> tuple[WordSets, int]:
        """Return which of up to 64 words each of the chunks has, and the last chunk that all lists know.

        With `in_names`, only words in headings and in titles, aliases and paths count.
        """
        lists, lengths = self.read(dict.fromkeys(words), index)
        sets = np.zeros(len(chunks), dtype=np.uint64)
        for bit, word in enumerate(words):
            ids, _, in_name, _ = lists[word]
            places = np.searchsorted(ids, chunks)
            found = places < len(ids)
            found[found] = ids[places[found]] == chunks[found]
            if in_names:
                found[found] = in_name[places[found]]
            sets[found] |= np.uint64(1 << bit)
        return sets, min(len(lengths) - 1, *(each.last_id for each in lists.values()))

    def read(self, words: Collection[str], index: ExactIndex) -> tuple[dict[str, _PostingList], Floats]:
        """Return the lists of words and the lengths of all chunks, reading the unknown ones."""
        with self._lock:
            new = index.last_id - (len(self._lengths) - 1)
            if new > max(_MAX_NEW, _MAX_NEW_SHARE * len(index)):
                self._lists.clear()
                self._postings = 0
                self._lengths = self._read_lengths(index.last_id)
            for word in words:
                if word in self._lists:
                    self._lists.move_to_end(word)
                else:
                    self._lists[word] = self._read_list(word, index.last_id)
                    self._postings += len(self._lists[word].ids)
            found = {word: self._lists[word] for word in words}
            while self._postings > _MAX_POSTINGS and len(self._lists) > len(words):
                self._postings -= len(self._lists.popitem(last=False)[1].ids)
            return found, self._lengths

    def _read_list(self, word: str, last_id: int) -> _PostingList:
        # One text with all numbers takes a fifth of the time of one row per number.
        statement = (
            f"SELECT group_concat(doc), group_concat(CASE col WHEN 'title' THEN 0 WHEN 'headings' THEN 1 ELSE {_BODY} END, '')"
            " FROM keyword_places WHERE term = ?"
        )
        ((ids, columns),) = self._database.select(statement, word)
        if ids is None:
            return _PostingList(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.bool_), last_id)
        places = np.fromstring(ids, dtype=np.int64, sep=",")
        numbers = np.frombuffer(columns.encode("ascii"), dtype=np.uint8) - ord("0")
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        counts = np.add.reduceat(self._column_weights[numbers], starts)
        return _PostingList(places[starts], counts, np.minimum.reduceat(numbers, starts) < _BODY, last_id)

    def _read_lengths(self, last_id: int) -> Floats:
        lengths = np.zeros(last_id + 1, dtype=np.float32)
        lengths[: len(self._lengths)] = self._lengths
        statement = "SELECT group_concat(id), group_concat(hex(sz), '') FROM keywords_docsize WHERE id >= ?"
        ((ids, sizes),) = self._database.select(statement, len(self._lengths))
        if ids is not None:
            lengths[np.fromstring(ids, np.int64, sep=",")] = _sums_of_varints(sizes, len(self._column_weights))
        return lengths

    def _mean_length(self, index: ExactIndex, lengths: Floats) -> float:
        known, mean = self._mean
        if known is not index:
            ids = index.columns.ids[index.live]
            ids = ids[: np.searchsorted(ids, len(lengths))]
            mean = float(lengths[ids].mean()) if len(ids) else 1.0
            self._mean = index, mean
        return mean


def _sums_of_varints(encoded: str, count: int) -> Ids:
    """Return the sums of each `count` numbers. A byte has 7 bits of a number, and its last byte is below 128 (SQLite)."""
    data = np.frombuffer(bytes.fromhex(encoded), np.uint8)
    places, ends = np.arange(len(data)), np.flatnonzero(data < 0x80)
    to_end = ends[np.searchsorted(ends, places)] - places
    return np.add.reduceat((data & 0x7F).astype(np.int64) << 7 * to_end, np.append(0, ends[count - 1 : -1 : count] + 1))
