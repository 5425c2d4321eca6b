"""Answers that only the API has: batches, selected fields, and the format of the plugin otterwiki-semantic-search."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Raw, Struct, structs

from otterwiki_semantic.core.records import Answer, ChromaFill, ChromaState, Hit
from otterwiki_semantic.core.serialization import decode, encode

_UNKNOWN_DISTANCE = 2.0
"""The largest cosine distance, so that a passage of unknown distance never counts as near."""


class Answers(Struct, frozen=True):
    """The answers to several queries, in their order."""

    answers: tuple[Answer, ...]


class ChromaStatus(Struct, frozen=True):
    """The state of the vector store, as the earlier plugin shows it."""

    status: Literal["ok", "error"]
    collection: str | None
    document_count: int
    """What the collection holds, as counted after the last write."""
    backend_type: Literal["chroma"] = "chroma"
    pending: int = 0
    """Texts of the index that the collection lacks."""
    outdated: int = 0
    """Texts whose metadata in the collection is not up to date."""
    complete_at: str | None = None
    """When the collection last held exactly what the index has (ISO 8601, UTC)."""
    complete_commit: str | None = None
    """The commit that it equalled then."""

    @classmethod
    def of(cls, fill: ChromaFill | None) -> ChromaStatus:
        """Return the state of a collection; None stands for no index."""
        if fill is None or fill.state is ChromaState.RESTING:
            return cls("error", fill.collection if fill else None, 0)
        return cls(
            status="ok",
            collection=fill.collection,
            document_count=fill.count or 0,
            pending=fill.pending,
            outdated=fill.outdated,
            complete_at=fill.complete_at,
            complete_commit=fill.complete_commit,
        )


class OpenApi(Struct, frozen=True):
    """An OpenAPI document."""

    openapi: str
    info: dict[str, Any]
    paths: dict[str, Any]


class SelectedAnswer(Answer, frozen=True, kw_only=True):
    """The passages for one query, best first, with the fields that `fields` names."""

    results: tuple[dict[str, Any], ...]  # type: ignore[assignment]
    """The results, each with the requested fields of `Hit` that it has."""


class SelectedAnswers(Struct, frozen=True):
    """The answers to several queries, in their order, with the fields that `fields` names."""

    answers: tuple[SelectedAnswer, ...]


def with_fields(answer: Raw, fields: tuple[str, ...]) -> Raw:
    """Return the JSON of an answer with these fields of each result, or all fields if none are named."""
    if not fields:
        return answer
    content = decode(answer, dict[str, Any])
    content["results"] = [{name: hit[name] for name in hit if name in fields} for hit in content["results"]]
    return Raw(encode(content))


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
    """Return an answer in the format of the earlier plugin."""
    return CompatAnswer(**structs.asdict(answer) | {"results": tuple(map(_compatible_hit, answer.results))})


def _compatible_hit(hit: Hit) -> CompatHit:
    distance = _UNKNOWN_DISTANCE if hit.distance is None else hit.distance
    return CompatHit(**structs.asdict(hit) | {"distance": distance, "section_path": hit.breadcrumb})
