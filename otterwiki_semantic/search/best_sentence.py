"""The sentence of each passage that answers best."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from itertools import islice
from operator import itemgetter

from msgspec import structs

from otterwiki_semantic.content.chunking import sentence_ranges
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import Answer, Hit
from otterwiki_semantic.embedding import CachedEmbedder, Matrix

_MAX_EMBEDDED = 40
"""Sentences that are embedded for one answer; each takes about a millisecond."""
_MIN_WORDS = 3

Range = tuple[int, int]

log = logging.getLogger(__name__)


class BestSentences:
    """Finds the sentence of each passage that answers best: by the query's words, or by meaning where it has none of them.

    Sentences are embedded by the index's model unless a server computes its vectors, which would take too long; their vectors
    are cached.
    """

    def __init__(self, embedder: CachedEmbedder) -> None:
        self._embedder = embedder

    def applied_to(self, answer: Answer, vector: Callable[[], Matrix | None]) -> Answer:
        """Return an answer with the best sentence of each result; `vector` returns the query's, None if there is none."""
        ranges = {rank: _sentences(hit) for rank, hit in enumerate(answer.results)}
        best = {rank: _with_most_words(answer.results[rank], found) for rank, found in ranges.items()}
        unmatched = [rank for rank, found in best.items() if found is None and answer.results[rank].similarity is not None]
        best |= self._nearest(answer.results, {rank: ranges[rank] for rank in unmatched}, vector)
        hits = (structs.replace(hit, best_sentence=best[rank]) for rank, hit in enumerate(answer.results))
        return structs.replace(answer, results=tuple(hits))

    def _nearest(
        self, hits: Sequence[Hit], ranges: dict[int, list[Range]], vector: Callable[[], Matrix | None]
    ) -> dict[int, Range]:
        """Return the sentences nearest in meaning to a query, of as many results as their number allows, by rank."""
        if not ranges or self._embedder.model.asks_server or (query := vector()) is None:
            return {}
        texts: dict[int, list[str]] = {}
        for rank, found in ranges.items():
            if found and sum(map(len, texts.values())) + len(found) <= _MAX_EMBEDDED:
                texts[rank] = [hits[rank].snippet[start:end] for start, end in found]
        try:
            vectors = self._embedder.embed([text for of_hit in texts.values() for text in of_hit])
        except SemanticError as error:
            log.info("the best sentences are found by words alone: %s", error)
            return {}
        similarities = iter(vectors @ query)
        return {
            rank: max(zip(islice(similarities, len(of_hit)), ranges[rank], strict=True), key=itemgetter(0))[1]
            for rank, of_hit in texts.items()
        }


def _sentences(hit: Hit) -> list[Range]:
    """Return the ranges of the sentences of a passage's own text, without headings unless there is nothing else."""
    found = sentence_ranges(hit.snippet, hit.prefix_length + hit.overlap_length)
    texts = {(start, end): hit.snippet[start:end] for start, end in found}
    return [place for place, text in texts.items() if len(text.split()) >= _MIN_WORDS and text not in hit.headings] or found


def _with_most_words(hit: Hit, ranges: Sequence[Range]) -> Range | None:
    """Return the first sentence with the most different words of the query; None if none has any."""

    def words_in(sentence: Range) -> int:
        inside = [(start, end) for start, end in hit.highlights if sentence[0] <= start and end <= sentence[1]]
        return len({hit.snippet[start:end].casefold() for start, end in inside})

    best = max(ranges, key=words_in, default=None)
    return best if best is not None and words_in(best) else None
