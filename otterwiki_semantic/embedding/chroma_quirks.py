"""In what single embedding functions of ChromaDB 1.5 differ: how they tell queries from passages, and what has to be mended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from otterwiki_semantic.errors import ModelError


def _no_defaults(model: str, is_query: bool) -> dict[str, Any]:  # noqa: ARG001 - the same for all
    return {}


def _ask_query(function: Any, texts: list[str]) -> Any:
    return function.embed_query(texts)


def _untouched(function: Any) -> None:
    """Leave a function as it is."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """What one function needs.

    `defaults` are options by model, and by whether queries are embedded; `ask_query` embeds queries, `arguments` makes the
    constructor's arguments of all that is given, `mend` changes a function that was made, `package` is the version of its
    client library that it works with, `credentials` what to do where they are refused, `more_options` are options beside
    those of the constructor.
    """

    defaults: Callable[[str, bool], dict[str, Any]] = _no_defaults
    ask_query: Callable[[Any, list[str]], Any] = _ask_query
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    mend: Callable[[Any], None] = _untouched
    package: str | None = None
    credentials: str = "set SEMANTIC_MODEL_KEY to a key that it takes"
    more_options: frozenset[str] = field(default_factory=frozenset)


def _with_session(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a session of AWS, whose credentials are those of its own environment."""
    try:
        boto3 = import_module("boto3")
    except ImportError:
        raise ModelError('bedrock needs a package that is not installed; install it with: pip install "boto3"') from None
    rest = {name: value for name, value in given.items() if name not in {"region", "profile"}}
    return {**rest, "session": boto3.Session(region_name=given.get("region"), profile_name=given.get("profile"))}


def _ask_cohere(function: Any, texts: list[str]) -> Any:
    """Ask as for queries: the function itself embeds everything as a passage."""
    return function.client.embed(texts=texts, model=function.model_name, input_type="search_query").embeddings


def _jina(model: str, is_query: bool) -> dict[str, Any]:  # noqa: ARG001 - it tells them apart itself
    """The second generation knows no tasks."""
    if "-v2" in model:
        return {}
    return {"task": "retrieval.passage", "query_config": {"task": "retrieval.query"}}


def _nomic(model: str, is_query: bool) -> dict[str, Any]:  # noqa: ARG001 - it tells them apart itself
    return {"task_type": "search_document", "query_config": {"task_type": "search_query"}}


def _mend_nomic(function: Any) -> None:
    """The client answers a dictionary; the function expects an object of the kind that OpenAI's has."""
    text = function.embed.text

    def answer(**asked: Any) -> Any:
        vectors = text(**asked, long_text_mode="mean")["embeddings"]
        return SimpleNamespace(data=[SimpleNamespace(embedding=vector) for vector in vectors])

    function.embed = SimpleNamespace(text=answer)


QUIRKS = {
    "bedrock": Quirks(
        arguments=_with_session,
        credentials="see that AWS's credentials on this machine may invoke the model in that region",
        more_options=frozenset({"region", "profile", "endpoint_url"}),
    ),
    "cohere": Quirks(ask_query=_ask_cohere),
    "google": Quirks(defaults=lambda _, is_query: {"task_type": "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"}),
    "jina": Quirks(defaults=_jina),
    "mistral": Quirks(package="mistralai<2"),
    "nomic": Quirks(defaults=_nomic, mend=_mend_nomic),
    "voyage": Quirks(defaults=lambda _, is_query: {"input_type": "query" if is_query else "document", "truncation": False}),
}
"""By what a provider is called here."""
