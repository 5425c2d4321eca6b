"""Examples of searches in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from otterwiki_semantic.core.records import Answer, Freshness, Hit, TotalHits
from otterwiki_semantic.core.serialization import to_builtins

_COMMIT = "dbf15600c1d24b0e9c1a5f7d3e8b2a4f6c9d0e1b"
_FIELDS = ("path", "title", "url", "score")

PARAMETERS: Mapping[str, Any] = MappingProxyType(
    {
        "q": "sprinkler schedule for vegetables",
        "limit": 10,
        "offset": 10,
        "fields": [*_FIELDS],
        "filter": "tag:garden AND NOT path:archive/",
        "highlight": "html",
        "crop": 30,
    }
)
"""Values of parameters of the query string, by name."""

BODIES: Mapping[str, Any] = MappingProxyType(
    {
        "one query": {"query": "sprinkler schedule for vegetables", "limit": 10, "offset": 10, "tag": ["garden"]},
        "several queries": {
            "queries": ["burst pipe", {"query": "frost", "limit": 10, "filter": "tag:garden"}],
            "limit": 3,
            "fields": [*_FIELDS],
        },
    }
)
"""Bodies of searches, by what they ask for."""

_HIT = Hit(
    path="garden/irrigation",
    title="Irrigation",
    section="Winter",
    breadcrumb="Irrigation > Winter",
    url="/garden/irrigation#winter",
    score=13.558462,
    relevant=True,
    similarity=0.542338,
    distance=0.457662,
    excerpt="Before the first frost: close both valves.",
    excerpt_html="Before the first <mark>frost</mark>: close both valves.",
    text="[Irrigation > Winter] Before the first frost: close both valves.",
    text_start_line=17,
    text_end_line=19,
    snippet="[Irrigation > Winter] Before the first frost: close both valves.",
    prefix_length=22,
    overlap_length=0,
    highlights=((39, 44),),
    category="garden",
    tags=("garden", "zigbee"),
    updated="2026-11-21T09:30:00+00:00",
    also_on=(),
    name="irrigation",
    section_path=("Irrigation", "Winter"),
    headings=("Winter",),
    anchor="winter",
    start_line=17,
    end_line=19,
    chunk_index=1,
    total_chunks=2,
    page_word_count=103,
)
_WHOLE: dict[str, Any] = to_builtins(
    Answer(
        query="frost",
        total=1,
        total_hits=TotalHits(20, "gte"),
        confident=True,
        processing_ms=3.1,
        index=Freshness(_COMMIT, _COMMIT, 0),
        results=(_HIT,),
    )
)
_CHOSEN: dict[str, Any] = _WHOLE | {"results": [{name: _WHOLE["results"][0][name] for name in _FIELDS}]}

ANSWER: Mapping[str, Any] = MappingProxyType({"whole": _WHOLE, "chosen fields": _CHOSEN})
"""Answers to one query, by what they show."""
ANSWERS: Mapping[str, Any] = MappingProxyType({"several queries": {"answers": [_WHOLE]}, "one query": _WHOLE})
"""Answers to a POST, by what was sent."""
