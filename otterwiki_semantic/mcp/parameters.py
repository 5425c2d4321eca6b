"""Arguments of tools, generated from `core.parameters`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from inspect import Parameter as Argument
from inspect import Signature
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_type_hints

from mcp_types import CallToolResult
from pydantic import Field

from otterwiki_semantic.core.parameters import Parameter, Request, parameters_of
from otterwiki_semantic.mcp.answers.base import ToolResponse
from otterwiki_semantic.mcp.budget import DEFAULT_MAX_TOKENS, MAX_MAX_TOKENS, MIN_MAX_TOKENS
from otterwiki_semantic.mcp.errors import tool_errors

Tool = Callable[..., Awaitable[ToolResponse]]
_MaxTokens = Annotated[int, Field(ge=MIN_MAX_TOKENS, le=MAX_MAX_TOKENS, description="Size of the answer")]
_BUDGET = Argument("max_tokens", Argument.KEYWORD_ONLY, default=DEFAULT_MAX_TOKENS, annotation=_MaxTokens)
_NO_DEFAULTS: Mapping[str, Any] = MappingProxyType({})
_JSON_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": str | list[str]}
_ARGUMENTS = {"q": "query", "tag": "tags"}
"""What agents call parameters that are short in URLs."""
_LIMITS = {"minimum": "ge", "maximum": "le", "minLength": "min_length", "maxLength": "max_length"}


def with_parameters(
    tool: Tool, record: type[Request] | None, without: Collection[str] = (), defaults: Mapping[str, Any] = _NO_DEFAULTS
) -> Callable[..., Awaitable[CallToolResult]]:
    """Return a tool as the SDK registers it: its arguments are the parameters of a record and ``max_tokens``.

    The tool receives them by their names in the REST API. `without` names fields to leave out, `defaults` has others than those
    of the record.
    """
    chosen = [each for each in parameters_of(record) if each.name not in without] if record else []

    async def call(*, max_tokens: int, **arguments: Any) -> CallToolResult:
        with tool_errors():
            answer = await tool(max_tokens=max_tokens, **{each.name: arguments[_argument_name(each)] for each in chosen})
            return answer.result()

    result = Annotated[CallToolResult, get_type_hints(tool)["return"]]
    arguments = [*map(_argument, chosen), _BUDGET]
    changed = [each.replace(default=defaults.get(each.name, each.default)) for each in arguments]
    call.__signature__ = Signature(changed, return_annotation=result)  # type: ignore[attr-defined]
    call.__name__, call.__doc__ = tool.__name__, tool.__doc__
    return call


def _argument(parameter: Parameter) -> Argument:
    schema = parameter.values
    kind: Any = Literal[tuple(schema["enum"])] if "enum" in schema else _JSON_TYPES[schema["type"]]
    facts = {_LIMITS[name]: limit for name, limit in schema.items() if name in _LIMITS and _is_checked_here(schema, name)}
    default = Argument.empty if parameter.is_required else parameter.schema.get("default")
    wanted: Any = kind if parameter.is_required or default is not None else kind | None
    annotation: Any = Annotated[wanted, Field(description=parameter.help, **facts)]
    return Argument(_argument_name(parameter), Argument.KEYWORD_ONLY, default=default, annotation=annotation)


def _argument_name(parameter: Parameter) -> str:
    return _ARGUMENTS.get(parameter.name, parameter.name)


def _is_checked_here(schema: Mapping[str, Any], limit: str) -> bool:
    """Whether a limit is worth its tokens in the schema: the length of one line of text is not."""
    return "pattern" not in schema or (limit == "maxLength" and "x00" not in schema["pattern"])
