"""A search result and a stored chunk to change: most of their fields matter to few tests."""

from __future__ import annotations

from typing import Any

import msgspec

from otterwiki_semantic.core.records import Hit, StoredChunk

_PASSAGE = Hit(
    path="page",
    title="Page",
    section="Part",
    breadcrumb="Page > Part",
    score=1.0,
    relevant=True,
    similarity=0.5,
    distance=0.5,
    text="",
    text_start_line=1,
    text_end_line=1,
    snippet="",
    prefix_length=0,
    overlap_length=0,
    highlights=(),
    category=None,
    tags=(),
    updated=None,
    also_on=(),
    name="page",
    section_path=("Part",),
    headings=("Part",),
    anchor="part",
    start_line=1,
    end_line=1,
    chunk_index=0,
    total_chunks=1,
    page_word_count=1,
)
CHUNK = StoredChunk(**{name: getattr(_PASSAGE, name) for name in StoredChunk.__dataclass_fields__ if name != "places"})


def make_hit(**fields: Any) -> Hit:
    """Return a result of the section "Part" of the page "page", with some fields changed."""
    return msgspec.structs.replace(_PASSAGE, **fields)
