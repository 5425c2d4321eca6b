"""Choose results from ranked candidates: no repeated passages, a few per page, and diverse ones on request."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis.minhash import MIN_SHARED, SIGNATURE_SIZE, ShingledText, Signatures, comparison_text
from otterwiki_semantic.core.records import SearchOptions, Sort
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.scoring import Candidate, Tier
from otterwiki_semantic.storage import Catalog

_MAX_ALIKE = 100
"""Possible duplicates of a chunk that are compared: of thousands that are all alike, the best are kept, or none."""
_MAX_COMPARED_PER_PAGE = 50
"""Candidates per page that can become results."""
_DIVERSE_PER_RESULT = 4
"""Candidates per result among which diverse ones are chosen."""
_BLOCK = 5
"""Diverse results are chosen in blocks, each among four times as many candidates as there are results at its end."""


def select(
    ranking: Sequence[Candidate], ranked: Sequence[Candidate], most: int, options: SearchOptions, catalog: Catalog
) -> tuple[list[Candidate], Mapping[int, set[str]]]:
    """Return the continuation of a ranking, up to `most` results in total, and the pages that repeat each chunk."""
    known = {each.id for each in ranking}
    ordered = [*ranking, *(each for each in ranked if each.id not in known)]
    compared = deduplicator(ordered, options, catalog, pinned=len(ranking))
    distinct, pages = compared.distinct(), len({each.path for each in ordered})
    if not options.diversity or options.sort is Sort.UPDATED:
        chosen = list(_limit_per_page(distinct, pages, most, options.max_chunks_per_page))
    else:
        share = _DIVERSE_PER_RESULT * options.max_chunks_per_page
        considered = list(_limit_per_page(distinct, pages, _DIVERSE_PER_RESULT * most, share))
        order = mmr_order(
            [each.score for each in considered],
            catalog.reader.exact_index().vectors_or_zeros([each.id for each in considered]),
            [each.path for each in considered],
            options.diversity,
            most,
            options.max_chunks_per_page,
            len(ranking),
        )
        chosen = [considered[position] for position in order]
    return chosen[len(ranking) :], compared.also_on


def deduplicator(ranked: Sequence[Candidate], options: SearchOptions, catalog: Catalog, pinned: int = 0) -> Deduplicator:
    """Compare the best candidates of each page; a repetitive page may have thousands."""
    compared = ranked
    if max(Counter([each.path for each in ranked]).values(), default=0) > _MAX_COMPARED_PER_PAGE:
        compared = list(_limit_per_page(ranked, len(ranked), len(ranked), _MAX_COMPARED_PER_PAGE))
    signatures = catalog.reader.exact_index().signatures([each.id for each in compared])
    ranks_pages = options.max_chunks_per_page == 1
    return Deduplicator(compared, signatures, catalog.keywords.stored_words, ranks_pages=ranks_pages, pinned=pinned)


def _limit_per_page(ranked: Iterable[Candidate], pages: int, n: int, max_per_page: int) -> Iterator[Candidate]:
    """Yield the first `n` candidates, at most `max_per_page` per page; stop when all `pages` have reached it."""
    taken: Counter[str] = Counter()
    left = min(n, max_per_page * pages)
    for each in ranked if left else ():
        if taken[each.path] < max_per_page:
            taken[each.path] += 1
            left -= 1
            yield each
        if not left:
            return


def mmr_order(
    scores: Sequence[float],
    vectors: Matrix,
    pages: Sequence[str],
    diversity: float,
    n: int,
    max_per_page: int,
    pinned: int = 0,
) -> list[int]:
    """Return the positions of up to `n` of the ranked chunks, by maximal marginal relevance.

    The first chunk, or the first `pinned`, keep their positions; the order does not depend on `n`. The next chunk maximises
    ``(1 - diversity) * score - diversity * similarity``, where scores are scaled to 0 to 1 and the similarity is to the
    nearest chunk already chosen (Carbonell and Goldstein, 1998). The rows of `vectors` belong to the chunks.
    """
    if not scores:
        return []
    nearest = np.full(len(scores), -1.0)
    taken: Counter[str] = Counter()
    is_open = np.ones(len(scores), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < n and is_open.any():
        pool = _DIVERSE_PER_RESULT * _BLOCK * (len(chosen) // _BLOCK + 1)
        while not is_open[:pool].any():
            pool += _BLOCK
        values = np.array(scores[:pool])
        values = (values - values.min()) / max(float(np.ptp(values)), 1e-9)
        gain = (1 - diversity) * values - diversity * nearest[:pool]
        best = int(np.argmax(np.where(is_open[:pool], gain, -np.inf))) if len(chosen) >= max(pinned, 1) else len(chosen)
        chosen.append(best)
        taken[pages[best]] += 1
        is_open[best] = False
        if taken[pages[best]] >= max_per_page:
            is_open &= np.array([page != pages[best] for page in pages])
        nearest = np.maximum(nearest, vectors @ vectors[best])
    return chosen


class Deduplicator:
    """The ranked candidates without near-duplicates.

    The first `pinned` ones are known to be distinct. The rows of `signatures` are the candidates' MinHash signatures, which
    select possible duplicates. Only for these, `words_of` reads the words of headings and of text, by chunk id.
    """

    def __init__(
        self,
        ranked: Sequence[Candidate],
        signatures: Signatures,
        words_of: Callable[[Sequence[int]], Mapping[int, tuple[str, str]]],
        *,
        ranks_pages: bool = False,
        pinned: int = 0,
    ) -> None:
        self._ranked = ranked
        self._words_of = words_of
        self._ranks_pages = ranks_pages
        self._pinned = pinned
        self._alike = _possible_duplicates([each.id for each in ranked], signatures)
        self._paths = {each.id: each.path for each in ranked if each.id in self._alike}
        self._texts: dict[int, str] = {}
        self._passages: dict[int, ShingledText] = {}
        self._kept: dict[int, None] = {}
        self.also_on: defaultdict[int, set[str]] = defaultdict(set)
        """The paths of other pages that repeat a chunk, where seen."""

    def distinct(self) -> Iterator[Candidate]:
        """Yield each passage once, best first; of near-duplicates the first one. Exact name matches are never dropped.

        With one chunk per page, the result ranks pages: a page whose best chunk is a duplicate keeps its rank with its next
        best chunk.
        """
        used: set[int] = set()
        for rank, each in enumerate(self._ranked):
            if each.id in used:
                continue
            if each.id not in self._alike:
                yield each
                continue
            original = None if rank < self._pinned else self._original(each.id)
            if original is None or each.tier > Tier.SCORE:
                for other in self._alike[each.id]:
                    if self._text(other) == self._text(each.id):
                        self._note(each.id, other)
                self._kept.setdefault(each.id)
                yield each
                continue
            self._note(original, each.id)
            if self._ranks_pages and each.path != self._paths[original]:
                later = (other for other in self._ranked[rank + 1 :] if other.path == each.path)
                stand_in = next((other for other in later if self._original(other.id) is None), None)
                if stand_in is not None:
                    used.add(stand_in.id)
                    self._kept.setdefault(stand_in.id)
                    yield stand_in

    def _original(self, chunk: int) -> int | None:
        """Return the kept chunk that this one nearly repeats, preferably one with the same text; None if it is new."""
        possible = self._alike.get(chunk, ())
        alike = [other for other in self._kept if other in possible]
        same = (other for other in alike if self._text(other) == self._text(chunk))
        near = (other for other in alike if self._passage(chunk).is_near_duplicate_of(self._passage(other)))
        return next(same, None) or next(near, None)

    def _note(self, original: int, copy: int) -> None:
        if self._paths[original] != self._paths[copy]:
            self.also_on[original].add(self._paths[copy])

    def _text(self, chunk: int) -> str:
        if chunk not in self._texts:
            stored = self._words_of([chunk, *self._alike[chunk]])
            self._texts.update((other, comparison_text(*words)) for other, words in stored.items())
        return self._texts.setdefault(chunk, "")

    def _passage(self, chunk: int) -> ShingledText:
        if chunk not in self._passages:
            self._passages[chunk] = ShingledText(self._text(chunk))
        return self._passages[chunk]


def _possible_duplicates(chunks: Sequence[int], signatures: Signatures) -> dict[int, list[int]]:
    """Return each chunk's possible near-duplicates, best first, if it has any."""
    rows = _agreeing(signatures)
    shared = np.zeros((len(rows), len(rows)), dtype=np.uint8)
    for number in range(SIGNATURE_SIZE):
        shared += np.equal.outer(signatures[rows, number], signatures[rows, number])
    np.fill_diagonal(shared, 0)
    alike: dict[int, list[int]] = {}
    for row, is_alike in zip(rows.tolist(), shared >= MIN_SHARED, strict=True):
        others = rows[np.flatnonzero(is_alike)[:_MAX_ALIKE]].tolist()
        if others:
            alike[chunks[row]] = [chunks[other] for other in others]
    return alike


def _agreeing(signatures: Signatures) -> npt.NDArray[np.intp]:
    """Return the rows that share enough numbers with another row; usually few, and only these can be near-duplicates."""
    order = np.argsort(signatures, axis=0)
    ranked = np.take_along_axis(signatures, order, axis=0)
    agrees = np.zeros(signatures.shape, dtype=bool)
    agrees[1:] = ranked[1:] == ranked[:-1]
    agrees[:-1] |= agrees[1:]
    counts = np.zeros(signatures.shape, dtype=bool)
    np.put_along_axis(counts, order, agrees, axis=0)
    return np.flatnonzero(counts.sum(axis=1) >= MIN_SHARED)
