"""Answers with chosen fields of each result."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from otterwiki_semantic.core.records import Answer
from otterwiki_semantic.core.serialization import decode, encode


class SelectedAnswer(Answer, frozen=True, kw_only=True):
    """The passages for one query, best first, with the fields that `fields` names."""

    results: tuple[dict[str, Any], ...]  # type: ignore[assignment]
    """Each result with these fields of `Hit`, as far as it has them."""


class SelectedAnswers(Struct, frozen=True):
    """The answers to several queries, in their order, with the fields that `fields` names."""

    answers: tuple[SelectedAnswer, ...]


def with_fields(answer: Raw, fields: tuple[str, ...]) -> Raw:
    """Return the JSON of an answer with these fields of each result; with all if none is named."""
    if not fields:
        return answer
    content = decode(answer, dict[str, Any])
    content["results"] = [{name: hit[name] for name in hit if name in fields} for hit in content["results"]]
    return Raw(encode(content))
