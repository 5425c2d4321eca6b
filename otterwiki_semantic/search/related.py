"""Pages near in meaning to a page, from stored vectors alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from otterwiki_semantic.content.pages import page_key, page_name
from otterwiki_semantic.core.records import PageUrls, RelatedPage, SectionMatch, StoredChunk
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage import Generation

_PROBES = 12
"""Passages of a long page that are looked up, evenly spread; the page's mean is one more."""
_NEAREST = 60
_PAGES_PER_RESULT = 6
_PAIRS = 3


def related_pages(generation: Generation, path: str, n: int, floor: float, urls: PageUrls) -> tuple[RelatedPage, ...]:
    """Give the `n` pages nearest in meaning to the page at `path`, nearest first, with the sections that match best.

    Those that are at least as similar as the `floor` are relevant.

    Two pages are as near as the mean of their three nearest pairs of passages, each passage in one pair. The page has to be in
    the catalog, which must not change meanwhile (`Catalog.snapshot`); one without text is near to none.
    """
    reader = generation.catalog.reader
    own = reader.page_vectors([path]).get(path)
    if own is None:
        return ()
    ids, vectors = own
    others = reader.page_vectors(_near_pages(generation, vectors, path, n))
    found = [_Found(other, _nearest_pairs(vectors, matrix), matrix_ids) for other, (matrix_ids, matrix) in others.items()]
    found = sorted(found, key=lambda page: (-page.similarity, page.path))[:n]
    hits = reader.chunks([chunk for page in found for pair in page.pairs for chunk in (ids[pair.own], page.ids[pair.other])])
    links = generation.catalog.pages.link_targets(path)

    def matches(page: _Found) -> list[tuple[StoredChunk, StoredChunk, float]]:
        return [(hits[ids[pair.own]], hits[page.ids[pair.other]], pair.similarity) for pair in page.pairs]

    return tuple(_related(page, matches(page), links, floor, urls) for page in found)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two passages, by their places in their pages, and their similarity."""

    own: int
    other: int
    similarity: float


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    pairs: list[_Pair]
    ids: list[int]

    @property
    def similarity(self) -> float:
        return sum(pair.similarity for pair in self.pairs) / len(self.pairs)


def _related(
    page: _Found, matches: list[tuple[StoredChunk, StoredChunk, float]], links: set[str], floor: float, urls: PageUrls
) -> RelatedPage:
    sections = {
        (own.section, other.section): SectionMatch(own.section, own.anchor, other.section, other.anchor, round(similarity, 6))
        for own, other, similarity in reversed(matches)
    }
    return RelatedPage(
        name=page_name(page.path),
        path=page.path,
        title=matches[0][1].title,
        similarity=round(page.similarity, 6),
        linked=page_key(page.path) in links,
        sections=tuple(reversed(sections.values())),
        relevant=page.similarity >= floor,
        url=urls.of(page.path),
    )


def _near_pages(generation: Generation, vectors: Matrix, path: str, n: int) -> list[str]:
    """Give candidates: the pages of the nearest passages to the page's own and to their mean."""
    spread = np.unique(np.linspace(0, len(vectors) - 1, min(len(vectors), _PROBES)).astype(int))
    mean = vectors.mean(axis=0)
    probes = [*vectors[spread], mean / max(float(np.linalg.norm(mean)), 1e-9)]
    best: dict[str, float] = {}
    for probe in probes:
        for candidate, similarity in generation.nearest(probe, _NEAREST + len(vectors)).found:
            if candidate.path != path:
                best[candidate.path] = max(best.get(candidate.path, -2.0), similarity)
    return sorted(best, key=lambda other: (-best[other], other))[: _PAGES_PER_RESULT * n]


def _nearest_pairs(own: Matrix, other: Matrix) -> list[_Pair]:
    """Give the nearest pairs of passages of two pages, nearest first, each passage in one pair."""
    similarity = own @ other.T
    pairs: list[_Pair] = []
    for _ in range(min(_PAIRS, *similarity.shape)):
        mine, theirs = map(int, np.unravel_index(int(np.argmax(similarity)), similarity.shape))
        pairs.append(_Pair(mine, theirs, float(similarity[mine, theirs])))
        similarity[mine, :] = similarity[:, theirs] = -2.0
    return pairs
