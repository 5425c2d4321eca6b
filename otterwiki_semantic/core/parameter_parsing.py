"""Request parameters: each is a field of a `Request`, which defines its parsing, limits and description.

A field's type is a msgspec type with its limits (`Meta`); the string below the field describes it. The REST API, the OpenAPI
document, the command line and the MCP tools take names, limits, defaults and help from `parameters_of`; `parse_parameters`
reads values. The `extra` of a type's `Meta` holds properties that msgspec does not support:

- `read`: converts the sent value; `ValueError` if it is not allowed
- `allowed`: the end of error messages, if it differs from the schema's
- `schema`: the JSON Schema of values that can be sent, if it differs from the type's
- `repeats`: whether a list may also be sent as a single value, or repeated in a query string
- `internal`: whether the code adds it to a request, so that it is not a parameter
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Self, TypeVar, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct, inspect, structs

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.serialization import Schema, convert, field_descriptions
from otterwiki_semantic.core.settings import read_flag

T = TypeVar("T")
R = TypeVar("R", bound="Request")

MAX_PATH_CHARACTERS = 1_000
MAX_QUERY_CHARACTERS = 2_000
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_LINE = re.compile(rf"^[^\S{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$")
_NOT_BLANK = r"[^\s\x1c-\x1f\x85]"
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_LINES = re.compile("^[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?$")
_MAX_SHOWN = 60
_PLACE = re.compile(r" - at `\$\.value([^`]*)`$")
_STEP = re.compile(r"\[([0-9]+)\]|\.(\w+)")


class Request(Struct, frozen=True, omit_defaults=True):
    """A request. Each field is a parameter, or a nested request whose parameters also belong to this one."""


class Choice(StrEnum):
    """Values of a parameter that accepts one of them, in any case."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return next((choice for choice in cls if choice == str(value).strip().lower()), None)


def page_path(path: str) -> str:
    """Return a page's path as in the index; the extension of a Markdown file is removed."""
    return path.strip("/").removesuffix(".md")


def _limited(text: str, limit: int) -> str:
    """Return a text without surrounding white space, which counts towards the limit, as for `maxLength` in JSON Schema."""
    if len(text) > limit:
        raise ValueError
    return text.strip()


def _stripped(value: Any) -> Any:
    return _limited(value, MAX_QUERY_CHARACTERS) if isinstance(value, str) else value


def _line(value: Any) -> str:
    if not isinstance(value, str) or not _LINE.fullmatch(value):  # `$` would allow a trailing line end
        raise ValueError
    return _limited(value, MAX_PATH_CHARACTERS)


def _path(value: Any) -> str:
    line = _line(value)
    return page_path(line).strip() or line


def _seconds(value: Any) -> int:
    moment = datetime.fromisoformat(str(value).strip())
    return math.ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def _range(value: Any) -> list[int]:
    found = _LINES.fullmatch(value.strip()) if isinstance(value, str) else None
    if not found:
        raise ValueError
    first, _, last = found[0].partition("-")
    return sorted((int(first), int(last or first)))


def _integer(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(value) if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) else value


_BY_TYPE: Mapping[str, Callable[[Any], Any]] = {
    "integer": _integer,
    "number": lambda value: float(value) if isinstance(value, str) else value,
    "boolean": lambda value: bool(value) if value in (0, 1) else read_flag(str(value)),
}
"""Readers for texts in a query string or in a body, by JSON Schema type.

msgspec's own `strict=False` would read the text `null` as a missing parameter, and accept neither `yes` nor `05`.
"""
_ON_ONE_LINE = f"it takes 1 to {MAX_PATH_CHARACTERS:,} characters on one line"
Text = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_PATH_CHARACTERS, pattern=_LINE.pattern, extra={"read": _line, "allowed": _ON_ONE_LINE}),
]
"""One line of text, without white space around it."""
FoldedText = Annotated[Text, Meta(extra={"read": lambda value: " ".join(_line(value).split())})]
"""One line of text; runs of white space count as one space."""
PagePath = Annotated[Text, Meta(extra={"read": _path})]
"""A page's path as in the index; the extension of a Markdown file is removed."""
QueryText = Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARACTERS, pattern=_NOT_BLANK, extra={"read": _stripped})]
"""A query: any text without surrounding white space."""
TypedText = Annotated[str, Meta(max_length=MAX_QUERY_CHARACTERS, extra={"read": _stripped})]
"""Text typed so far; may be empty."""
Timestamp = Annotated[
    int,
    Meta(
        extra={
            "read": _seconds,
            "allowed": "allowed is a date or a time such as 2026-01-31 or 2026-01-31T12:00:00Z",
            "schema": {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]},
        }
    ),
]
"""A date or time in ISO 8601, in UTC unless stated otherwise; read as seconds since 1970."""
LineRange = Annotated[
    tuple[int, int],
    Meta(
        extra={
            "read": _range,
            "allowed": "it takes a line or a range of them, such as 12-40",
            "schema": {"type": "string", "pattern": _LINES.pattern},
        }
    ),
]
"""A line of a page or a range of lines, such as ``12-40``; read as the first and the last."""
Revision = Annotated[
    str,
    Meta(
        pattern="^[0-9a-fA-F]{4,64}$",
        extra={"read": _stripped, "allowed": "it takes a commit's name: 4 to 64 hexadecimal digits"},
    ),
]
Internal = Annotated[T, Meta(extra={"internal": True})]
"""A value that the code adds to a request; not a parameter."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request."""

    name: str
    help: str
    default: Any
    values: Schema
    allowed: str
    repeats: bool
    readers: tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]
    """Functions that read the value, and each entry of a list."""
    record: type[Struct]
    """A record with the parameter's type as its field `value`."""

    @property
    def is_required(self) -> bool:
        return self.default is NODEFAULT

    @property
    def schema(self) -> Schema:
        """The JSON Schema of the values, with the default."""
        if self.default in (NODEFAULT, None, ()):
            return self.values
        return self.values | {"default": self.default.value if isinstance(self.default, StrEnum) else self.default}

    def parse(self, value: object, name: str | None = None) -> Any:
        """Parse a given value. Errors: `ParameterError` with the parameter's `name` and the allowed values."""
        name = name or self.name
        if self.repeats and not isinstance(value, list | tuple):
            value = [value]
        read = value
        try:
            if value is None:
                raise ValueError
            msgspec.json.encode(value)
            whole, each = self.readers
            read = whole(value) if whole is not None else value
            if each is not None and isinstance(read, list | tuple):
                read = list(_read_each(each, read))
            return convert({"value": read}, self.record).value  # type: ignore[attr-defined]
        except UnicodeEncodeError:
            raise ParameterError(f"{name} has half characters (lone surrogates) in it; it has to be text", name) from None
        except RecursionError:
            raise ParameterError(f"{name} is nested too deeply", name) from None
        except (ValueError, OverflowError) as error:  # msgspec's errors are ValueErrors
            raise ParameterError(self._trouble(name, value, read, str(error)), name) from None

    def _trouble(self, name: str, given: Any, read: Any, error: str) -> str:
        """Describe the error in a value, or in the part of it that msgspec names."""
        schema, place = self.values, _PLACE.search(error)
        for index, member in _STEP.findall(place[1]) if place else ():
            key = int(index) if index else member
            read, given = read[key], given[key]
            schema = schema["items"] if index else schema["properties"][member]
            schema = schema["anyOf"][0] if "anyOf" in schema else schema
            name += "" if self.repeats else f"[{index}]" if index else f".{member}"
        return f"{name} {_described(given, read, schema, self.allowed)}"


def _read_each(read: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
    for place, value in enumerate(values):
        try:
            yield read(value)
        except ValueError:
            raise ValueError(f" - at `$.value[{place}]`") from None  # in msgspec's notation


def _described(given: Any, read: Any, schema: Schema, allowed: str) -> str:
    is_list, is_text = schema["type"] == "array", "maxLength" in schema and not allowed
    if is_list and isinstance(read, list | tuple):
        return f"has {len(read):,} entries; allowed are {_sizes(schema)}"
    if is_text and isinstance(read, str):
        is_counted = read.strip() or len(read) > schema["maxLength"]
        return f"{f'has {len(read):,} characters' if is_counted else 'is empty'}; allowed are {_sizes(schema)}"
    return f"is {'missing' if given is None else shown(given)}; {_allowed(schema) if is_list else allowed or _allowed(schema)}"


def _allowed(schema: Schema) -> str:
    match schema:
        case {"enum": choices}:
            return f"allowed are {', '.join(choices)}"
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"allowed are the whole numbers {least} to {most}"
        case {"type": "number", "minimum": least, "maximum": most}:
            return f"allowed are the numbers {least:g} to {most:g}"
        case {"type": "boolean"}:
            return "allowed are true and false"
        case {"properties": members}:
            return f"it has to be an object with {' and '.join(members)}"
        case {"type": "array"}:
            return f"it has to be a list of {_sizes(schema)} entries"
    return f"it has to be text of {_sizes(schema)} characters"


def _sizes(schema: Schema) -> str:
    least, most = ("minItems", "maxItems") if schema["type"] == "array" else ("minLength", "maxLength")
    return f"{schema.get(least, 0):,} to {schema[most]:,}"


def shown(value: object) -> str:
    """Format a value for error messages."""
    try:
        text = repr(value)
    except RecursionError:
        return "nested too deeply"
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def parameters_of(request: type[Request]) -> tuple[Parameter, ...]:
    """Return the parameters of a request and of its nested requests, in order."""
    return tuple(_by_name(request).values())


def parse_parameters(request: type[R], values: Mapping[str, Any]) -> R:
    """Build a request from texts or JSON values; None counts as not given. Errors: `ParameterError`."""
    return _built(request, _given(request, values), None)


def overlaid(request: R, values: Mapping[str, Any]) -> R:
    """Return a request with the parameters in `values` replaced; None counts as not given. Errors: `ParameterError`."""
    return _built(type(request), _given(type(request), values), request)


def parse_value(type_: object, value: object, name: str) -> Any:
    """Parse a value of a parameter type. Errors: `ParameterError` if it is not allowed."""
    return _parameter("value", type_, NODEFAULT, "").parse(value, name)


def check_names(names: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Raise `ParameterError` for an unknown name, with the nearest known one."""
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name[:_MAX_SHOWN], known, 1)
            allowed = f"allowed are {', '.join(known)}" if known else "none is allowed"
            hint = f"did you mean {nearest[0]!r}?" if nearest else allowed
            raise ParameterError(f"unknown parameter {shown(name)}{where}; {hint}")


def unique_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, as an `object_pairs_hook`. Errors: `ParameterError` for a duplicate name."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ParameterError(f"{shown(name)} is given more than once")
        members[name] = value
    return members


@cache
def _fields(request: type[Request]) -> tuple[tuple[str, str, type[Request] | None], ...]:
    """Return the fields of a request that are parameters or requests: field, parameter, request."""
    fields = structs.fields(request)
    return tuple(
        (each.name, each.encode_name, each.type if isinstance(each.type, type) and issubclass(each.type, Request) else None)
        for each in fields
        if not _extra(inspect.type_info(each.type)).get("internal")
    )


@cache
def _by_name(request: type[Request]) -> Mapping[str, Parameter]:
    hints, descriptions = get_type_hints(request, include_extras=True), field_descriptions(request)
    defaults = {each.name: each.default for each in structs.fields(request)}
    found: dict[str, Parameter] = {}
    for field, name, inner in _fields(request):
        if inner is not None:
            found |= _by_name(inner)
        else:
            found[name] = _parameter(name, hints[field], defaults[field], descriptions[field])
    return found


@cache
def _parameter(name: str, hint: object, default: Any, help_: str) -> Parameter:
    record: type[Struct] = msgspec.defstruct(name, [("value", hint)])
    type_ = _required(inspect.type_info(hint))
    extra, plain = _extra(type_), type_.type if isinstance(type_, inspect.Metadata) else type_
    of_entries = _extra(_required(plain.item_type)) if isinstance(plain, inspect.ListType | inspect.VarTupleType) else {}
    values = extra.get("schema") or _schema(record, plain)
    return Parameter(
        name=name,
        help=help_,
        default=default,
        values=values,
        allowed=extra.get("allowed", of_entries.get("allowed", "")),
        repeats=extra.get("repeats", False),
        readers=(extra.get("read", _BY_TYPE.get(values["type"])), of_entries.get("read")),
        record=record,
    )


def _schema(record: type[Struct], type_: inspect.Type) -> Schema:
    """Return the JSON Schema for values of a record's only field, without null and references."""
    if isinstance(type_, inspect.EnumType):  # msgspec would sort them
        return {"type": "string", "enum": [choice.value for choice in type_.cls]}
    _, components = msgspec.json.schema_components([record], ref_template="{name}")
    schema: Schema = components[record.__name__]["properties"]["value"]
    (schema,) = [each for each in schema.get("anyOf", [schema]) if each != {"type": "null"}]
    if "$ref" in (items := schema.get("items", {})):
        schema["items"] = {
            name: part for name, part in components[items["$ref"]].items() if name not in {"title", "description"}
        }
    return schema


def _given(request: type[Request], values: Mapping[str, Any]) -> dict[str, Any]:
    known = _by_name(request)
    check_names(values, known)
    found = {}
    for name, each in known.items():
        value = values.get(name)
        if each.is_required or not (value is None or (each.repeats and value == [])):
            found[name] = each.parse(value)
    return found


def _built(request: type[R], given: Mapping[str, Any], base: R | None) -> R:
    changed = {}
    for field, name, inner in _fields(request):
        if inner is not None:
            changed[field] = _built(inner, given, None if base is None else getattr(base, field))
        elif name in given:
            changed[field] = given[name]
    return request(**changed) if base is None else structs.replace(base, **changed)


def _required(type_: inspect.Type) -> inspect.Type:
    """Return a type without null; of the remaining types, the first."""
    return type_.types[0] if isinstance(type_, inspect.UnionType) else type_


def _extra(type_: inspect.Type) -> Mapping[str, Any]:
    return (type_.extra or {}) if isinstance(type_, inspect.Metadata) else {}
