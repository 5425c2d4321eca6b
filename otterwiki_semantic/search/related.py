"""Pages related in meaning to a page, from stored vectors alone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from otterwiki_semantic.content.pages import page_key, page_name
from otterwiki_semantic.core.records import PageUrls, RelatedPage, SectionMatch, StoredChunk
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.similarity_scale import Scale, spread_evenly
from otterwiki_semantic.storage import Generation

_PROBES = 12
"""Passages of a long page that are looked up, evenly spread; the page's mean is one more."""
_NEAREST = 60
_PAGES_PER_RESULT = 6
_PAIRS = 3
_FLOOR = 0.35
"""The least similarity of suggested pages, on the bundled model's scale."""

Vectors = tuple[list[int], Matrix]
"""The ids and vectors of a page's chunks, or of the paragraphs of an unsaved text."""


def related_pages(generation: Generation, path: str, n: int, scale: Scale, urls: PageUrls) -> tuple[RelatedPage, ...]:
    """Return the `n` pages nearest in meaning to the page at `path`, nearest first, with the best matching sections.

    The similarity of two pages is the mean of their three nearest pairs of passages, each passage in one pair. The page must
    be in the catalog, which must not change meanwhile (`Catalog.snapshot`). A page without text has no related pages.
    """
    reader = generation.catalog.reader
    own = reader.page_vectors([path]).get(path)
    if own is None:
        return ()
    links = generation.catalog.pages.link_targets(path)
    return pages_near(generation, own, path, links, n, scale, urls, reader.chunks(own[0]))


def are_related(own: Vectors, other: Vectors, scale: Scale) -> bool:
    """Whether two pages are near enough for `related_pages`."""
    return _similarity(_nearest_pairs(own, other, _PAIRS)) >= scale.from_bundled(_FLOOR)


def pages_near(
    generation: Generation,
    own: Vectors,
    path: str,
    links: Container[str],
    n: int,
    scale: Scale,
    urls: PageUrls,
    own_chunks: Mapping[int, StoredChunk] = MappingProxyType({}),
    pairs: int = _PAIRS,
) -> tuple[RelatedPage, ...]:
    """Return the pages nearest in meaning to some vectors, without the one at `path`; `links` are the keys of linked pages.

    `own_chunks` are the chunks of the vectors, if any. The similarity of pages is the mean of their nearest `pairs`.
    """
    reader = generation.catalog.reader
    others = reader.page_vectors(_near_pages(generation, own[1], path, n))
    pairs_of = {other: _nearest_pairs(own, chunks, pairs) for other, chunks in others.items()}
    nearest = sorted(pairs_of, key=lambda other: (-_similarity(pairs_of[other]), other))[:n]
    stored = reader.chunks([pair.other for other in nearest for pair in pairs_of[other]])
    floor = scale.from_bundled(_FLOOR)
    return tuple(
        RelatedPage(
            name=page_name(other),
            path=other,
            title=stored[pairs_of[other][0].other].title,
            similarity=round(_similarity(pairs_of[other]), 6),
            linked=page_key(other) in links,
            sections=_sections(pairs_of[other], own_chunks, stored),
            relevant=_similarity(pairs_of[other]) >= floor,
            url=urls.of(other, kind=(first := stored[pairs_of[other][0].other]).kind),
            link=urls.link(other, first.title, first.kind),
            kind=first.kind,
        )
        for other in nearest
    )


class _Pair(NamedTuple):
    """The ids of two chunks, and their similarity."""

    own: int
    other: int
    similarity: float


def _similarity(pairs: Sequence[_Pair]) -> float:
    return sum(pair.similarity for pair in pairs) / len(pairs)


def _sections(
    pairs: Sequence[_Pair], own_chunks: Mapping[int, StoredChunk], stored: Mapping[int, StoredChunk]
) -> tuple[SectionMatch, ...]:
    """Return the sections of pairs, without repeated combinations."""
    found = {}
    for pair in reversed(pairs):
        own, other = own_chunks.get(pair.own), stored[pair.other]
        section, anchor = (own.section, own.anchor) if own else ("", "")
        match = SectionMatch(section, anchor, other.section, other.anchor, round(pair.similarity, 6))
        found[section, other.section] = match
    return tuple(reversed(found.values()))


def _near_pages(generation: Generation, vectors: Matrix, path: str, n: int) -> list[str]:
    """Return candidates: the pages of the nearest passages to the page's chunks and to their mean."""
    mean = vectors.mean(axis=0)
    probes = [*vectors[spread_evenly(len(vectors), _PROBES)], mean / max(float(np.linalg.norm(mean)), 1e-9)]
    best: dict[str, float] = {}
    for probe in probes:
        for candidate, similarity in generation.nearest(probe, _NEAREST + len(vectors)).found:
            if candidate.path != path:
                best[candidate.path] = max(best.get(candidate.path, -2.0), similarity)
    return sorted(best, key=lambda other: (-best[other], other))[: _PAGES_PER_RESULT * n]


def _nearest_pairs(own: Vectors, other: Vectors, most: int) -> list[_Pair]:
    """Return the nearest pairs of chunks of two pages, nearest first, each chunk in one pair."""
    (own_ids, own_vectors), (other_ids, other_vectors) = own, other
    similarity = own_vectors @ other_vectors.T
    pairs: list[_Pair] = []
    for _ in range(min(most, *similarity.shape)):
        mine, theirs = map(int, np.unravel_index(int(np.argmax(similarity)), similarity.shape))
        pairs.append(_Pair(own_ids[mine], other_ids[theirs], float(similarity[mine, theirs])))
        similarity[mine, :] = similarity[:, theirs] = -2.0
    return pairs
