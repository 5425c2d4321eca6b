"""Passages that say the same thing: found, and on request kept apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis.minhash import MIN_SHARED, SIGNATURE_SIZE, ShingledText, Signatures
from otterwiki_semantic.embedding import Matrix


class Repeats:
    """The passages kept so far, and which of them another one nearly repeats; by the ids of chunks.

    `signatures` are those of the chunks, one a row; `read` gives texts, of the few that have to be compared word for word.
    """

    def __init__(
        self,
        chunks: Sequence[int],
        signatures: Signatures,
        read: Callable[[Sequence[int]], Mapping[int, str]],
    ) -> None:
        self._near = _alike(chunks, signatures)
        self._read = read
        self._texts: dict[int, str] = {}
        self._passages: dict[int, ShingledText] = {}
        self._kept: dict[int, None] = {}

    def original(self, chunk: int) -> int | None:
        """Give the kept passage that this one nearly repeats, rather one with the very same text; None if it is a new one."""
        alike = [other for other in self._kept if other in self._near.get(chunk, ())]
        if not alike:
            return None
        same = (other for other in alike if self._text(other) == self._text(chunk))
        near = (other for other in alike if self._passage(chunk).is_near_duplicate_of(self._passage(other)))
        return next(same, None) or next(near, None)

    def copies(self, chunk: int) -> list[int]:
        """Give the others with the very same text."""
        return [other for other in self._near.get(chunk, ()) if self._text(other) == self._text(chunk)]

    def keep(self, chunk: int) -> None:
        """Keep a passage."""
        self._kept.setdefault(chunk)

    def _text(self, chunk: int) -> str:
        if chunk not in self._texts:
            self._texts.update(self._read([chunk, *self._near.get(chunk, ())]))
        return self._texts.setdefault(chunk, "")

    def _passage(self, chunk: int) -> ShingledText:
        if chunk not in self._passages:
            self._passages[chunk] = ShingledText(self._text(chunk))
        return self._passages[chunk]


def _alike(chunks: Sequence[int], signatures: Signatures) -> dict[int, list[int]]:
    """Give for each chunk the others that it may nearly repeat, if there are any."""
    rows = _agreeing(signatures)
    shared = np.zeros((len(rows), len(rows)), dtype=np.uint8)
    for number in range(SIGNATURE_SIZE):
        shared += np.equal.outer(signatures[rows, number], signatures[rows, number])
    np.fill_diagonal(shared, 0)
    near: dict[int, list[int]] = {}
    for row, other in zip(*(rows[places].tolist() for places in np.nonzero(shared >= MIN_SHARED)), strict=True):
        near.setdefault(chunks[row], []).append(chunks[other])
    return near


def _agreeing(signatures: Signatures) -> npt.NDArray[np.intp]:
    """Give the rows with enough numbers that some other row has, too: mostly a few, and no others can be alike."""
    order = np.argsort(signatures, axis=0)
    ranked = np.take_along_axis(signatures, order, axis=0)
    agrees = np.zeros(signatures.shape, dtype=bool)
    agrees[1:] = ranked[1:] == ranked[:-1]
    agrees[:-1] |= agrees[1:]
    counts = np.zeros(signatures.shape, dtype=bool)
    np.put_along_axis(counts, order, agrees, axis=0)
    return np.flatnonzero(counts.sum(axis=1) >= MIN_SHARED)


def diverse_order(
    ranked: Sequence[int],
    scores: Mapping[int, float],
    matrix: Matrix,
    pages: Mapping[int, str],
    diversity: float,
    n: int,
    most_of_a_page: int,
) -> list[int]:
    """Choose `n` of the ranked chunks by maximal marginal relevance (Carbonell and Goldstein, 1998), the first one first.

    The rows of `matrix` are their vectors. Each next one has the most of ``(1 - diversity) * score - diversity * similarity``,
    with the scores brought to the range 0 to 1 and the similarity that to the nearest one chosen before.
    """
    rest = list(ranked)
    if not rest:
        return []
    values = np.array([scores[chunk] for chunk in rest])
    values = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
    nearest = np.full(len(rest), -1.0)
    taken: Counter[str] = Counter()
    is_open = np.ones(len(rest), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n and is_open.any():
        gain = (1 - diversity) * values - diversity * nearest
        place = int(np.argmax(np.where(is_open, gain, -np.inf))) if chosen else 0
        chunk = rest[place]
        chosen.append(chunk)
        taken[pages[chunk]] += 1
        is_open[place] = False
        if taken[pages[chunk]] >= most_of_a_page:
            is_open &= np.array([pages[other] != pages[chunk] for other in rest])
        nearest = np.maximum(nearest, matrix @ matrix[place])
    return chosen
