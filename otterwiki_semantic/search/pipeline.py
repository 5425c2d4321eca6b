"""The search pipeline: retrieve candidates, filter and reorder them, drop duplicates, choose, and build the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from otterwiki_semantic.core.records import MAX_WINDOW, NO_URLS, Facets, Hit, PageUrls, SearchOptions, Sort, TotalHits
from otterwiki_semantic.embedding import is_words_only
from otterwiki_semantic.search.best_unit import Embed, UnitChooser
from otterwiki_semantic.search.query import Query, filter_of, has_phrases
from otterwiki_semantic.search.results import ResultBuilder
from otterwiki_semantic.search.retrieval import CandidateSet, QueryVector, retrieve
from otterwiki_semantic.search.scoring import Candidate, Tier
from otterwiki_semantic.search.selection import deduplicator, select
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Catalog, Generation

_CANDIDATES = 60
"""Chunks that each retriever returns in the first stage, for the first 20 results."""
_CANDIDATES_PER_RESULT = 3
_GROWTH = 4
_MAX_CANDIDATES = 3_840
_BEST_FEW = 20
"""Candidates that are sorted by date if none is relevant."""
_MAX_RERANKED = 30
"""Chunks that a reranker reads."""

Shortlist = Mapping[str, str]
"""The chunks to rerank, best first: their texts by vector id, which is a hash of the text."""
RerankScores = Mapping[str, float]
"""A reranker's scores by vector id; empty if nothing was reranked."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The results of a search."""

    hits: tuple[Hit, ...] = ()
    """All from the first, whatever the offset."""
    confident: bool = False
    """Whether any of the hits is relevant."""
    degraded: str | None = None
    """Which part of the search failed, and why."""
    facets: Facets | None = None
    total_hits: TotalHits = field(default=TotalHits(0, "gte"))
    is_keyword_index_corrupt: bool = False
    shortlist: Shortlist = field(default_factory=dict)
    """Passages to rerank, if reranking was requested and has not run yet."""


def search_chunks(
    generation: Generation,
    query: Query,
    vector: QueryVector,
    options: SearchOptions,
    scale: Scale,
    rerank_scores: RerankScores | None = None,
    urls: PageUrls = NO_URLS,
    embed: Embed | None = None,
) -> SearchResult:
    """Return the best chunks for a query, from the first one to `options.end`.

    The ranking is made in stages. Each retrieves four times as many candidates as the previous one and keeps its results.
    Further stages are needed because the caller may ask for more results, one page can crowd out the rest, and duplicates can
    leave few. The number of results only determines the number of stages, so that every answer to a query begins with the
    same results.

    `vector` returns the query's vector, or None if the model failed; `embed` returns the vectors of units, if the best ones
    are also chosen by meaning. Raises errors of the catalog and of ChromaDB.
    """
    catalog = generation.catalog
    where = filter_of(options.filters, query)
    limit, ranking, hits, shown = _CANDIDATES, list[Candidate](), list[Hit](), set[tuple[str, int]]()
    shortlist: Shortlist = {}
    units: UnitChooser | None = None
    while True:
        found = retrieve(generation, query, vector, where, options, limit, scale)
        units = units or UnitChooser(query, found.words, vector() if embed else None, embed, scale)
        eligible = _eligible(found, query, options, catalog)
        ranked = _sorted(_reranked(eligible, rerank_scores or {}), options, catalog)
        is_whole = found.is_complete or len(ranked) < len(eligible) or _is_exhausted(found, options)
        is_last = is_whole or limit >= _MAX_CANDIDATES
        if limit == _CANDIDATES and options.rerank and not rerank_scores:
            shortlist = _shortlist(ranked, options, catalog)
        results = ResultBuilder(catalog, query, found, ranked, options, urls, units)
        if is_last or options.sort is Sort.RELEVANCE:  # otherwise the newest may still be missing
            most = MAX_WINDOW if is_last else limit // _CANDIDATES_PER_RESULT
            added, also_on = select(ranking, ranked, most, options, catalog)
            hits += results.hits(added, also_on, shown, len(ranking), max(0, options.end - len(ranking)))
            ranking += added
        if is_last or len(ranking) >= options.end:
            break
        limit *= _GROWTH
    return SearchResult(
        hits=tuple(hits),
        confident=any(hit.relevant for hit in hits),
        degraded=found.degraded,
        facets=results.facets(ranking[options.offset : options.end]) if options.facets else None,
        total_hits=TotalHits(len(ranking), "eq" if is_whole and len(ranking) < MAX_WINDOW else "gte"),
        is_keyword_index_corrupt=found.is_keyword_index_corrupt,
        shortlist=shortlist,
    )


def _eligible(found: CandidateSet, query: Query, options: SearchOptions, catalog: Catalog) -> list[Candidate]:
    """Return the candidates that are similar enough and contain the query's phrases verbatim, best first."""
    ranked = found.candidates
    threshold = options.min_similarity
    if threshold is not None:
        ranked = [each for each in ranked if (-1 if each.similarity is None else each.similarity) >= threshold]
    excluded = query.without if found.degraded else ()  # otherwise excluded by the keyword index
    if not query.phrases and not excluded:
        return ranked
    texts = {chunk: stored.text for chunk, stored in catalog.reader.chunks([each.id for each in ranked]).items()}
    return [
        each
        for each in ranked
        if each.id in texts
        and has_phrases(texts[each.id], query.phrases)
        and not any(has_phrases(texts[each.id], [phrase]) for phrase in excluded)
    ]


def _reranked(ranked: list[Candidate], scores: RerankScores) -> list[Candidate]:
    """Return the candidates in the order of a reranker's scores, after exact name matches.

    A candidate gets the score of its new rank, because a reranker's scores are not comparable. Candidates that may not
    be reranked keep their ranks.
    """
    if not scores:
        return ranked
    readable = [each for each in ranked if _is_readable(each)]
    read = [each for each in readable if each.vector in scores]
    unread = [each for each in readable if each.vector not in scores]
    places = {each.id: rank for rank, each in enumerate(ranked, 1)}
    inherited = [each.score for each in read]
    order = sorted(read, key=lambda each: -scores[each.vector])
    for each, score in zip(order, inherited, strict=True):
        each.rank_before, each.rerank_score, each.score = places[each.id], scores[each.vector], score
    following = iter([*order, *unread])
    return [next(following) if _is_readable(each) else each for each in ranked]


def _is_readable(candidate: Candidate) -> bool:
    """Whether a candidate may be reranked."""
    return candidate.tier is Tier.SCORE and not is_words_only(candidate.vector)


def _sorted(ranked: list[Candidate], options: SearchOptions, catalog: Catalog) -> list[Candidate]:
    """Return the candidates in the requested order; by date only relevant ones, or the best few if there are none."""
    if options.sort is Sort.RELEVANCE:
        return ranked
    relevant = [each for each in ranked if each.is_relevant] or ranked[:_BEST_FEW]
    dates = catalog.pages.updated(sorted({each.path for each in relevant}))
    return sorted(relevant, key=lambda each: -dates.get(each.path, 0))


def _is_exhausted(found: CandidateSet, options: SearchOptions) -> bool:
    """Return whether all further candidates by meaning would be below the requested similarity."""
    threshold = options.min_similarity
    if threshold is None:
        return False
    nearest = (each.similarity for each in found.candidates if each.semantic_rank is not None)
    return any(similarity is not None and similarity < threshold for similarity in nearest)


def _shortlist(ranked: Sequence[Candidate], options: SearchOptions, catalog: Catalog) -> Shortlist:
    """Return the best chunks for a reranker, without exact name matches, which come first in any case."""
    distinct = deduplicator(ranked, options, catalog).distinct()
    read = list(islice(filter(_is_readable, distinct), _MAX_RERANKED))
    stored = catalog.reader.chunks([each.id for each in read])
    return {each.vector: stored[each.id].text for each in read if each.id in stored}
