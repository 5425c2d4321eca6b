"""A page as search sees it: its passages, their embedded texts, and the nearest passages of other pages."""

from __future__ import annotations

from otterwiki_semantic.core.records import ChunkInspection, Freshness, Neighbour, PageInspection, PageUrls, StoredChunk
from otterwiki_semantic.embedding import Embedder, is_words_only
from otterwiki_semantic.storage import ChunkRef, Generation

MOST_CHUNKS = 200
"""Passages that are shown; each is compared with all passages of the wiki."""
_NEIGHBOURS = 3


def inspect_page(generation: Generation, model: Embedder, path: str, index: Freshness, urls: PageUrls) -> PageInspection:
    """Return a page as search sees it. Call it within `Catalog.snapshot`."""
    reader = generation.catalog.reader
    title, ids = reader.page_chunks(path)
    first = ids[:MOST_CHUNKS]
    exact = reader.exact_index()
    near = _nearest_elsewhere(generation, first, ids)
    hits = reader.chunks(list({*first, *(candidate.id for found in near.values() for candidate, _ in found)}))
    tokens = model.input_tokens([hits[chunk].text for chunk in first])
    chunks = tuple(_seen(hits, chunk, count, near.get(chunk), urls) for chunk, count in zip(first, tokens, strict=True))
    kind = hits[first[0]].kind if first else None
    words_only = any(is_words_only(chunk.vector) for chunk in exact.candidates(first))
    return PageInspection(path, title, model.window, len(ids), chunks, index, urls.of(path, kind=kind), words_only)


def _nearest_elsewhere(
    generation: Generation, chunks: list[int], of_page: list[int]
) -> dict[int, list[tuple[ChunkRef, float]]]:
    """Return the nearest passages on other pages for each chunk that has a vector."""
    exact = generation.catalog.reader.exact_index()
    matrix, known = exact.vectors(chunks)
    if exact.in_memory is not None:
        elsewhere = exact.live & ~exact.mask_of_chunks(of_page)
        return {chunk: exact.nearest(vector, _NEIGHBOURS, elsewhere) for chunk, vector in zip(known, matrix, strict=True)}
    own, near = set(of_page), {}
    for chunk, vector in zip(known, matrix, strict=True):
        found = generation.nearest(vector, _NEIGHBOURS + len(of_page)).found
        others = [each for each in found if each[0].id not in own]
        near[chunk] = sorted(others, key=lambda each: -each[1])[:_NEIGHBOURS]
    return near


def _seen(
    hits: dict[int, StoredChunk], chunk: int, tokens: int, near: list[tuple[ChunkRef, float]] | None, urls: PageUrls
) -> ChunkInspection:
    hit, neighbours = hits[chunk], [(hits[candidate.id], cosine) for candidate, cosine in near or ()]
    return ChunkInspection(
        text=hit.text,
        prefix_length=hit.prefix_length,
        overlap_length=hit.overlap_length,
        section_path=hit.section_path,
        anchor=hit.anchor,
        start_line=hit.start_line,
        end_line=hit.end_line,
        tokens=tokens,
        has_vector=near is not None,
        neighbours=tuple(
            Neighbour(
                other.path,
                other.title,
                other.section,
                other.anchor,
                round(cosine, 6),
                urls.of(other.path, other.anchor, other.kind),
            )
            for other, cosine in neighbours
        ),
    )
