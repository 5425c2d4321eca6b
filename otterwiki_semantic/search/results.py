"""Results as they are shown: text, highlights, relevance, explanations and facets of chosen candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from otterwiki_semantic.core.records import (
    Explanation,
    Facets,
    Hit,
    PageUrls,
    RetrieverScore,
    SearchOptions,
    StoredChunk,
)
from otterwiki_semantic.search.expansion import chunk_runs, context_around, joined_text
from otterwiki_semantic.search.query import Highlighter, Query
from otterwiki_semantic.search.relevance import coverage, relevance
from otterwiki_semantic.search.retrieval import Candidate, CandidateSet, Tier
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Catalog

_JOINED_SHARE = 0.7
"""A neighbour is joined if its score is at least this share of the best one's."""
_MAX_DISTANCE = 2
"""Chunks between a result and a neighbour that may be joined to it."""


class ResultBuilder:
    """Builds the results of one query from its candidates."""

    def __init__(
        self,
        catalog: Catalog,
        query: Query,
        found: CandidateSet,
        ranked: Sequence[Candidate],
        scale: Scale,
        options: SearchOptions,
        urls: PageUrls,
    ) -> None:
        self._reader = catalog.reader
        self._keywords = catalog.keywords
        self._highlighter = Highlighter(query)
        self._found = found
        self._ranked = ranked
        self._scale = scale
        self._options = options
        self._urls = urls

    def hits(self, chosen: Sequence[Candidate], also_on: Mapping[int, set[str]]) -> tuple[Hit, ...]:
        """Return the results, best first; `also_on` has the pages that repeat a chunk."""
        neighbours = self._neighbours(chosen)
        stored = self._reader.chunks([each.id for each in (*chosen, *neighbours)])
        chosen = [each for each in chosen if each.id in stored]
        runs = chunk_runs([stored[each.id] for each in chosen], [stored[each.id] for each in neighbours if each.id in stored])
        facts = self._relevances(chosen)
        return tuple(
            self._hit(each, stored[each.id], run, rank, *facts[each.id], also_on.get(each.id, set()))
            for rank, (each, run) in enumerate(zip(chosen, runs, strict=True))
        )

    def facets(self, chosen: Sequence[Candidate]) -> Facets:
        """Count the pages of the results, and of every other candidate that is relevant."""
        facts = self._relevances(self._ranked)
        paths = {each.path for each in chosen} | {each.path for each in self._ranked if _is_relevant(each, facts[each.id][1])}
        labels = self._reader.page_labels(sorted(paths))
        return Facets(
            category=_counts(category for category, _ in labels.values() if category),
            tag=_counts(tag for _, tags in labels.values() for tag in tags),
            path=_counts(path.split("/")[0] + "/" for path in labels if "/" in path),
        )

    def _neighbours(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that may be joined to results: nearly as good as the best, and close to one in its page."""
        positions: dict[str, list[int]] = {}
        for each in chosen:
            positions.setdefault(each.path, []).append(each.chunk.ordinal)
        threshold = _JOINED_SHARE * max((each.score for each in self._ranked), default=0.0)
        near = [
            each
            for each in self._ranked
            if each.score >= threshold > 0
            and any(1 <= abs(other - each.chunk.ordinal) <= _MAX_DISTANCE for other in positions.get(each.path, ()))
        ]
        return sorted(near, key=lambda each: -each.score)

    def _relevances(self, candidates: Sequence[Candidate]) -> dict[int, tuple[float, float]]:
        """Return the coverage of each candidate, and how far it is above the relevance threshold."""
        texts = self._keywords.stored_words([each.id for each in candidates])
        weights = self._found.word_weights
        facts: dict[int, tuple[float, float]] = {}
        for each in candidates:
            present = set(" ".join(texts.get(each.id, ())).split())
            covered = coverage(weights, present) if weights else float(each.keyword_rank is not None)
            facts[each.id] = covered, relevance(each.similarity, covered, self._found.index_size, self._scale)
        return facts

    def _hit(
        self,
        candidate: Candidate,
        chunk: StoredChunk,
        run: Sequence[StoredChunk],
        rank: int,
        covered: float,
        above: float,
        also_on: set[str],
    ) -> Hit:
        distance = None if candidate.similarity is None else _rounded(max(0.0, 1 - candidate.similarity))
        text = joined_text(run)
        before, after = context_around(chunk, self._options.context, self._reader.page_range)
        return Hit(
            name=chunk.name,
            path=chunk.path,
            title=chunk.title,
            category=chunk.category,
            tags=chunk.tags,
            snippet=chunk.text,
            prefix_length=chunk.prefix_length,
            overlap_length=chunk.overlap_length,
            distance=distance,
            similarity=None if distance is None else _rounded(1 - distance),
            section=chunk.section,
            section_path=chunk.section_path,
            headings=tuple(dict.fromkeys(heading for part in run for heading in part.headings)),
            anchor=chunk.anchor,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            chunk_index=chunk.chunk_index,
            total_chunks=chunk.total_chunks,
            page_word_count=chunk.page_word_count,
            text=text,
            text_start_line=min(part.start_line for part in run),
            text_end_line=max(part.end_line for part in run),
            updated=chunk.updated,
            score=_rounded(candidate.score),
            relevant=_is_relevant(candidate, above),
            highlights=self._highlighter.ranges(chunk.text),
            also_on=tuple(sorted(also_on)),
            context_before=before,
            context_after=after,
            explain=self._explanation(candidate, rank, covered, above) if self._options.explain else None,
            url=self._urls.of(chunk.path, chunk.anchor),
        )

    def _explanation(self, candidate: Candidate, rank: int, covered: float, above: float) -> Explanation:
        is_reranked = candidate.rank_before is not None
        is_moved = self._options.diversity > 0 and rank > 0 and candidate.tier is Tier.SCORE
        return Explanation(
            semantic=_score(candidate.semantic_rank, candidate.similarity),
            keyword=_score(candidate.keyword_rank, candidate.keyword_score),
            fused=_rounded(candidate.fused),
            page_credit=_rounded(candidate.page_credit),
            rule="diversity" if is_moved else "reranker" if is_reranked else candidate.tier.label,
            coverage=_rounded(covered),
            relevance=_rounded(above),
            rerank=_score(candidate.rank_before, candidate.rerank_score),
        )


def _is_relevant(candidate: Candidate, above: float) -> bool:
    """Return whether a candidate is relevant; what the query names is, whatever it scores."""
    return above >= 0 or candidate.tier > Tier.SCORE


def _score(rank: int | None, score: float | None) -> RetrieverScore:
    return RetrieverScore(rank, None if score is None else _rounded(score))


def _rounded(number: float) -> float:
    return round(number, 6)


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda item: (-item[1], item[0])))
