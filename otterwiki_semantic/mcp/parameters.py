"""Arguments of tools, generated from `core.parameters`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from otterwiki_semantic.core.parameters import Parameter, ParameterType, parameters_of
from otterwiki_semantic.mcp.budget import DEFAULT_MAX_TOKENS, MAX_MAX_TOKENS, MIN_MAX_TOKENS

Tool = Callable[..., Awaitable[CallToolResult]]
MaxTokens = Annotated[
    int, Field(ge=MIN_MAX_TOKENS, le=MAX_MAX_TOKENS, description="Approximate maximum size of the answer, in tokens")
]
_JSON_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": str | list[str]}
_LIMITS = {"minimum": "ge", "maximum": "le", "minLength": "min_length", "maxLength": "max_length", "maxItems": "max_length"}
_NO_DEFAULT = inspect.Parameter.empty


def tool_arguments(
    record: type,
    answer: type,
    *,
    without: Collection[str] = (),
    limits: Mapping[str, tuple[ParameterType[Any], Any]] | None = None,
) -> Callable[[Tool], Tool]:
    """Return a decorator that gives a tool the parameters of a record and ``max_tokens`` as arguments.

    The tool receives them by their names in the REST API. `answer` is its result, `without` names fields to leave out, `limits`
    replaces types and defaults of the record.
    """
    chosen = [_limited(each, limits or {}) for each in parameters_of(record) if each.field not in without]

    def decorate(tool: Tool) -> Tool:
        async def call(*, max_tokens: int, **arguments: Any) -> CallToolResult:
            return await tool(max_tokens=max_tokens, **{each.name: arguments[each.argument] for each in chosen})

        budget = inspect.Parameter("max_tokens", _KEYWORD, default=DEFAULT_MAX_TOKENS, annotation=MaxTokens)
        result = Annotated[CallToolResult, answer]
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*map(_argument, chosen), budget], return_annotation=result
        )
        call.__name__, call.__doc__ = tool.__name__, tool.__doc__
        return call

    return decorate


_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _limited(parameter: Parameter, limits: Mapping[str, tuple[ParameterType[Any], Any]]) -> Parameter:
    if parameter.field not in limits:
        return parameter
    type_, default = limits[parameter.field]
    return replace(parameter, type=type_, default=default)


def _argument(parameter: Parameter) -> inspect.Parameter:
    schema = parameter.type.schema
    kind: Any = Literal[tuple(schema["enum"])] if "enum" in schema else _JSON_TYPES[schema["type"]]
    facts = {_LIMITS[name]: limit for name, limit in schema.items() if name in _LIMITS and _is_checked_here(schema, name)}
    default = _NO_DEFAULT if parameter.is_required else parameter.schema.get("default")
    wanted: Any = kind if parameter.is_required or default is not None else kind | None
    annotation: Any = Annotated[wanted, Field(description=parameter.help, **facts)]
    return inspect.Parameter(parameter.argument, _KEYWORD, default=default, annotation=annotation)


def _is_checked_here(schema: Mapping[str, Any], limit: str) -> bool:
    """Whether a limit is worth its tokens in the schema: the length of one line of text is not."""
    return "pattern" not in schema or (limit == "maxLength" and "x00" not in schema["pattern"])
