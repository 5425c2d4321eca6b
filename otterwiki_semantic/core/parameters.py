"""Request parameters: each is defined once, as a field of a record, and parsed, limited and described from there.

A record of `core.records.requests` declares its fields with `parameter`. The REST API, the OpenAPI document, the command line
and the MCP tools take names, types, limits, defaults and help from `parameters_of`; values are read by `parse_parameters`.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar, get_type_hints

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.settings import read_flag

Schema = dict[str, Any]
"""A JSON Schema."""
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

MAX_PATH_CHARACTERS = 1_000
MAX_QUERY_CHARACTERS = 2_000
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_LINES = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_REVISION = re.compile(r"[0-9a-fA-F]{4,64}")
_MAX_SHOWN = 60


# Types of parameters


class ParameterType(ABC, Generic[T]):
    """What a parameter may be. Texts are read as the values they show, so that query strings and JSON are alike."""

    is_list = False
    """Whether it may be given more than once."""

    @abstractmethod
    def parse(self, value: object, name: str) -> T:
        """Return the value of a parameter that was given; `ParameterError` names it and says what is allowed."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The JSON Schema of a value."""


@dataclass(frozen=True)
class Integer(ParameterType[int]):
    """A whole number within bounds, both included."""

    minimum: int
    maximum: int

    def parse(self, value: object, name: str) -> int:
        is_whole = not isinstance(value, bool) and isinstance(value, int | str) and _WHOLE_NUMBER.fullmatch(str(value))
        if not is_whole or not self.minimum <= int(str(value)) <= self.maximum:
            raise ParameterError(f"{name} is {_shown(value)}; allowed are the whole numbers {self.minimum} to {self.maximum}")
        return int(str(value))

    @property
    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class Number(ParameterType[float]):
    """A number within bounds, both included."""

    minimum: float
    maximum: float

    def parse(self, value: object, name: str) -> float:
        try:
            number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        if not self.minimum <= number <= self.maximum:
            raise ParameterError(f"{name} is {_shown(value)}; allowed are the numbers {self.minimum:g} to {self.maximum:g}")
        return number

    @property
    def schema(self) -> Schema:
        return {"type": "number", "minimum": self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class Flag(ParameterType[bool]):
    """True or false."""

    def parse(self, value: object, name: str) -> bool:
        if isinstance(value, bool):
            return value
        try:
            return read_flag(str(value))
        except ValueError:
            raise ParameterError(f"{name} is {_shown(value)}; allowed are true and false") from None

    @property
    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Choice(ParameterType[E]):
    """A member of an enumeration, in any case."""

    of: type[E]

    def parse(self, value: object, name: str) -> E:
        try:
            return self.of(str(value).strip().lower())
        except ValueError:
            raise ParameterError(f"{name} is {_shown(value)}; allowed are {', '.join(self.of)}") from None

    @property
    def schema(self) -> Schema:
        return {"type": "string", "enum": [choice.value for choice in self.of]}


@dataclass(frozen=True)
class Text(ParameterType[str]):
    """One line of text, without white space around it."""

    folds_spaces: bool = False
    """Whether white space within it counts as one space."""

    def parse(self, value: object, name: str) -> str:
        allowed = f"it takes 1 to {MAX_PATH_CHARACTERS:,} characters on one line"
        if value is None:
            raise ParameterError(f"{name} is missing; {allowed}")
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_PATH_CHARACTERS or _NOT_IN_A_LINE.search(value):
            raise ParameterError(f"{name} is {_shown(value)}; {allowed}")
        return " ".join(value.split()) if self.folds_spaces else value.strip()

    @property
    def schema(self) -> Schema:
        pattern = rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$"
        return {"type": "string", "minLength": 1, "maxLength": MAX_PATH_CHARACTERS, "pattern": pattern}


@dataclass(frozen=True)
class PagePath(Text):
    """A page's path as the index knows it; one of a file loses its ending."""

    def parse(self, value: object, name: str) -> str:
        return page_path(super().parse(value, name))


@dataclass(frozen=True)
class Texts(ParameterType[tuple[str, ...]]):
    """A text, or a list of them."""

    item: Text
    maximum: int
    is_list = True

    def parse(self, value: object, name: str) -> tuple[str, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        if len(values) > self.maximum:
            raise ParameterError(f"{name} is given {len(values)} times; allowed are {self.maximum}")
        return tuple(self.item.parse(each, name) for each in values)

    @property
    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema, "maxItems": self.maximum}


@dataclass(frozen=True)
class PagePaths(ParameterType[tuple[str, ...]]):
    """A list of pages' paths."""

    maximum: int

    def parse(self, value: object, name: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise ParameterError(f"{name} is {_shown(value)}; it takes a list of 1 to {self.maximum:,} paths")
        return Texts(PagePath(), self.maximum).parse(value, name)

    @property
    def schema(self) -> Schema:
        return {"type": "array", "items": Text().schema, "minItems": 1, "maxItems": self.maximum}


@dataclass(frozen=True)
class QueryText(ParameterType[str]):
    """What is asked: any text, without white space around it."""

    def parse(self, value: object, name: str) -> str:
        allowed = f"1 to {MAX_QUERY_CHARACTERS:,}"
        if value is None:
            raise ParameterError(f"{name} is missing; it takes {allowed} characters")
        if not isinstance(value, str):
            raise ParameterError(f"{name} is {_shown(value)}; it has to be text")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ParameterError(f"{name} has half characters (lone surrogates) in it; it has to be text")
        query = value.strip()
        if not query:
            raise ParameterError(f"{name} is empty; it takes {allowed} characters")
        if len(query) > MAX_QUERY_CHARACTERS:
            raise ParameterError(f"{name} has {len(query):,} characters; allowed are {allowed}")
        return query

    @property
    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1, "maxLength": MAX_QUERY_CHARACTERS, "pattern": r"[^\s\x1c-\x1f\x85]"}


@dataclass(frozen=True)
class Queries(ParameterType[list[str]]):
    """A list of queries."""

    maximum: int

    def parse(self, value: object, name: str) -> list[str]:
        expected = f"it has to be a list of 1 to {self.maximum} texts"
        if value is None:
            raise ParameterError(f"{name} is missing; {expected}")
        if not isinstance(value, list):
            raise ParameterError(f"{name} is {_shown(value)}; {expected}")
        if not 1 <= len(value) <= self.maximum:
            raise ParameterError(f"{name} has {len(value)} entries; allowed are 1 to {self.maximum}")
        return [QueryText().parse(query, f"{name}[{position}]") for position, query in enumerate(value)]

    @property
    def schema(self) -> Schema:
        return {"type": "array", "items": QueryText().schema, "minItems": 1, "maxItems": self.maximum}


@dataclass(frozen=True)
class Timestamp(ParameterType[int]):
    """A date or a time in ISO 8601, in UTC unless it says otherwise; read as seconds since 1970."""

    def parse(self, value: object, name: str) -> int:
        try:
            moment = datetime.fromisoformat(str(value).strip())
            return math.ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            raise ParameterError(
                f"{name} is {_shown(value)}; allowed is a date or a time such as 2026-01-31 or 2026-01-31T12:00:00Z"
            ) from None

    @property
    def schema(self) -> Schema:
        return {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}


@dataclass(frozen=True)
class LineRange(ParameterType[tuple[int, int]]):
    """A line of a page or a range of them, such as ``12-40``; read as the first and the last."""

    def parse(self, value: object, name: str) -> tuple[int, int]:
        found = _LINES.fullmatch(value.strip()) if isinstance(value, str) else None
        if not found:
            raise ParameterError(f"{name} is {value!r}; it takes a line or a range of them, such as 12-40")
        first, last = sorted((int(found[1]), int(found[2] or found[1])))
        return first, last

    @property
    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?$"}


@dataclass(frozen=True)
class Revision(ParameterType[str]):
    """The name of a commit, or its beginning."""

    def parse(self, value: object, name: str) -> str:
        if not isinstance(value, str) or not _REVISION.fullmatch(value):
            raise ParameterError(f"{name} is {value!r}; it takes a commit's name: 4 to 64 hexadecimal digits")
        return value

    @property
    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[0-9a-fA-F]{4,64}$"}


# Parameters of a record


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request."""

    name: str
    """Its name in the REST API and the command line."""
    argument: str
    """Its name in the MCP tools."""
    field: str
    """The field of the record that it becomes."""
    type: ParameterType[Any]
    default: Any
    """`MISSING` if it has to be given."""
    help: str

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def schema(self) -> Schema:
        """The JSON Schema of its values, with its default."""
        if self.is_required or self.default in (None, ()):
            return self.type.schema
        return self.type.schema | {"default": self.default.value if isinstance(self.default, StrEnum) else self.default}

    def parse(self, values: Mapping[str, Any]) -> Any:
        """Return its value among a request's; `ParameterError` if it is missing or not allowed."""
        value = values.get(self.name)
        is_given = value is not None and not (self.type.is_list and value == [])
        return self.type.parse(value, self.name) if is_given or self.is_required else self.default


def parameter(type_: ParameterType[Any], help_: str, default: Any = MISSING, *, name: str | None = None) -> Any:
    """Return a dataclass field that is a request parameter; `name` is its name in the REST API, if another than the field's."""
    return field(default=default, metadata={"parameter": (type_, help_, name)})


def nested(default: Any = MISSING, rename: Mapping[str, str] | None = None) -> Any:
    """Return a dataclass field that is a record of parameters, some of them under other names in this request."""
    return field(default=default, metadata={"rename": tuple((rename or {}).items())})


def parameters_of(record: type) -> tuple[Parameter, ...]:
    """Return the parameters of a record, and of the records nested in it, in order."""
    return tuple(_flattened(_declared(record)))


def parse_parameters(record: type[T], values: Mapping[str, Any]) -> T:
    """Return a record from a request's values (texts or JSON). Other values are ignored; None counts as not given.

    Errors: `ParameterError`.
    """
    parsed: T = _parse(record, (), values)
    return parsed


_Renamed = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Nested:
    record: type
    rename: _Renamed


@cache
def _declared(record: type, rename: _Renamed = ()) -> dict[str, Parameter | _Nested]:
    hints, renamed = get_type_hints(record), dict(rename)
    found: dict[str, Parameter | _Nested] = {}
    for each in fields(record):
        if "parameter" in each.metadata:
            type_, help_, name = each.metadata["parameter"]
            name = name or each.name
            argument = renamed.get(name, each.name)
            found[each.name] = Parameter(renamed.get(name, name), argument, each.name, type_, each.default, help_)
        elif "rename" in each.metadata:
            found[each.name] = _Nested(hints[each.name], (*each.metadata["rename"], *rename))
    return found


def _flattened(declared: Mapping[str, Parameter | _Nested]) -> Iterator[Parameter]:
    for each in declared.values():
        if isinstance(each, Parameter):
            yield each
        else:
            yield from _flattened(_declared(each.record, each.rename))


def _parse(record: type, rename: _Renamed, values: Mapping[str, Any]) -> Any:
    return record(
        **{
            name: each.parse(values) if isinstance(each, Parameter) else _parse(each.record, each.rename, values)
            for name, each in _declared(record, rename).items()
        }
    )


def page_path(path: str) -> str:
    """Return a page's path as the index knows it; one of a file loses its ending."""
    return path.strip("/").removesuffix(".md")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"
