"""Answers for clients of the plugin otterwiki-semantic-search, which expect other types in some fields."""

from __future__ import annotations

from msgspec import structs

from otterwiki_semantic.core.records import Answer, Hit

_UNKNOWN_DISTANCE = 2.0
"""The largest cosine distance: a passage without a known one is never taken for a near one."""


class CompatHit(Hit, frozen=True, kw_only=True):
    """A passage that answers a query, as the earlier plugin had it."""

    distance: float
    """Cosine distance of query and passage: 0 = same, 2 = opposite; 2 also if it is not known, and `similarity` is null."""
    section_path: str  # type: ignore[assignment]
    """The page's title and the headings from the outermost to `section`, as `Page > Heading`: the `breadcrumb`."""


class CompatAnswer(Answer, frozen=True, kw_only=True):
    """The passages for one query, best first, as the earlier plugin had them."""

    results: tuple[CompatHit, ...]


def compatible(answer: Answer) -> CompatAnswer:
    """Return an answer as clients of the earlier plugin expect it."""
    return CompatAnswer(**structs.asdict(answer) | {"results": tuple(map(_compatible_hit, answer.results))})


def _compatible_hit(hit: Hit) -> CompatHit:
    distance = _UNKNOWN_DISTANCE if hit.distance is None else hit.distance
    return CompatHit(**structs.asdict(hit) | {"distance": distance, "section_path": hit.breadcrumb})
