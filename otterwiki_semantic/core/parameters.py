"""Request parameters: each is defined once, as a field of a record, and parsed, limited and described from there.

A record of `core.records.requests` declares its fields with `parameter`. The REST API, the OpenAPI document, the command line
and the MCP tools take names, types, limits, defaults and help from `parameters_of`; values are read by `parse_parameters`.
"""

from __future__ import annotations

import difflib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
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
N = TypeVar("N", int, float)

MAX_PATH_CHARACTERS = 1_000
MAX_QUERY_CHARACTERS = 2_000
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_LINES = re.compile(r"([1-9][0-9]{0,8})(?:-([1-9][0-9]{0,8}))?")
_REVISION = re.compile(r"[0-9a-fA-F]{4,64}")
_FINDING = re.compile(r"[0-9a-f]{16}")
_MAX_SHOWN = 60
_MAX_ANSWER = 20_000
"""Characters of an answer that a conversation repeats."""


# Types of parameters


class ParameterType(ABC, Generic[T]):
    """What a parameter may be. Texts are read as the values they show, so that query strings and JSON are alike."""

    is_list = False
    """Whether it may be given more than once."""

    def __init__(self, **schema: Any) -> None:
        self.schema: Schema = schema

    @abstractmethod
    def parse(self, value: object, name: str) -> T:
        """Return the value of a parameter that was given; `ParameterError` names it and says what is allowed."""


class _Single(ParameterType[T]):
    """A single value, all of whose errors end with what is `allowed`."""

    def __init__(self, allowed: str, **schema: Any) -> None:
        super().__init__(**schema)
        self._allowed = allowed

    def parse(self, value: object, name: str) -> T:
        try:
            return self._read(value)
        except (ValueError, OverflowError):
            trouble = "missing" if value is None else _shown(value)
            raise ParameterError(f"{name} is {trouble}; {self._allowed}") from None

    @abstractmethod
    def _read(self, value: object) -> T:
        """Return the value; `ValueError` or `OverflowError` if it is not allowed."""


class Integer(_Single[int]):
    """A whole number within bounds, both included."""

    def __init__(self, minimum: int, maximum: int) -> None:
        allowed = f"allowed are the whole numbers {minimum} to {maximum}"
        super().__init__(allowed, type="integer", minimum=minimum, maximum=maximum)
        self.minimum, self.maximum = minimum, maximum

    def _read(self, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str) or not _WHOLE_NUMBER.fullmatch(str(value)):
            raise ValueError
        return _within(int(value), self.minimum, self.maximum)


class Number(_Single[float]):
    """A number within bounds, both included."""

    def __init__(self, minimum: float, maximum: float) -> None:
        allowed = f"allowed are the numbers {minimum:g} to {maximum:g}"
        super().__init__(allowed, type="number", minimum=minimum, maximum=maximum)
        self.minimum, self.maximum = minimum, maximum

    def _read(self, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        return _within(float(value), self.minimum, self.maximum)


class Flag(_Single[bool]):
    """True or false."""

    def __init__(self) -> None:
        super().__init__("allowed are true and false", type="boolean")

    def _read(self, value: object) -> bool:
        return read_flag(str(value))


class Choice(_Single[E]):
    """A member of an enumeration, in any case."""

    def __init__(self, of: type[E]) -> None:
        super().__init__(f"allowed are {', '.join(of)}", type="string", enum=[choice.value for choice in of])
        self.of = of

    def _read(self, value: object) -> E:
        return self.of(str(value).strip().lower())


class Text(_Single[str]):
    """One line of text, without white space around it; with `folds_spaces` white space within it counts as one space."""

    def __init__(self, *, folds_spaces: bool = False) -> None:
        allowed = f"it takes 1 to {MAX_PATH_CHARACTERS:,} characters on one line"
        pattern = rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$"
        super().__init__(allowed, type="string", minLength=1, maxLength=MAX_PATH_CHARACTERS, pattern=pattern)
        self._folds_spaces = folds_spaces

    def _read(self, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_PATH_CHARACTERS or _NOT_IN_A_LINE.search(value):
            raise ValueError
        return " ".join(value.split()) if self._folds_spaces else value.strip()


class PagePath(Text):
    """A page's path as the index knows it; one of a file loses its ending."""

    def _read(self, value: object) -> str:
        return page_path(super()._read(value))


class Timestamp(_Single[int]):
    """A date or a time in ISO 8601, in UTC unless it says otherwise; read as seconds since 1970."""

    def __init__(self) -> None:
        allowed = "allowed is a date or a time such as 2026-01-31 or 2026-01-31T12:00:00Z"
        super().__init__(allowed, type="string", anyOf=[{"format": "date"}, {"format": "date-time"}])

    def _read(self, value: object) -> int:
        moment = datetime.fromisoformat(str(value).strip())
        return math.ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


class LineRange(_Single[tuple[int, int]]):
    """A line of a page or a range of them, such as ``12-40``; read as the first and the last."""

    def __init__(self) -> None:
        allowed = "it takes a line or a range of them, such as 12-40"
        super().__init__(allowed, type="string", pattern="^[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?$")

    def _read(self, value: object) -> tuple[int, int]:
        found = _LINES.fullmatch(value.strip()) if isinstance(value, str) else None
        if not found:
            raise ValueError
        first, last = sorted((int(found[1]), int(found[2] or found[1])))
        return first, last


class Revision(_Single[str]):
    """The name of a commit, or its beginning."""

    def __init__(self) -> None:
        allowed = "it takes a commit's name: 4 to 64 hexadecimal digits"
        super().__init__(allowed, type="string", pattern="^[0-9a-fA-F]{4,64}$")

    def _read(self, value: object) -> str:
        if not isinstance(value, str) or not _REVISION.fullmatch(value):
            raise ValueError
        return value


class Texts(ParameterType[tuple[str, ...]]):
    """A text, or a list of them."""

    is_list = True

    def __init__(self, item: Text, maximum: int) -> None:
        super().__init__(type="array", items=item.schema, maxItems=maximum)
        self._item, self._maximum = item, maximum

    def parse(self, value: object, name: str) -> tuple[str, ...]:
        values = value if isinstance(value, list | tuple) else [value]
        if len(values) > self._maximum:
            raise ParameterError(f"{name} is given {len(values)} times; allowed are {self._maximum}")
        return tuple(self._item.parse(each, name) for each in values)


class PagePaths(ParameterType[tuple[str, ...]]):
    """A list of pages' paths."""

    def __init__(self, maximum: int) -> None:
        super().__init__(type="array", items=Text().schema, minItems=1, maxItems=maximum)
        self._maximum = maximum

    def parse(self, value: object, name: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise ParameterError(f"{name} is {_shown(value)}; it takes a list of 1 to {self._maximum:,} paths")
        return Texts(PagePath(), self._maximum).parse(value, name)


class QueryText(ParameterType[str]):
    """What is asked: any text, without white space around it."""

    def __init__(self, *, may_be_empty: bool = False) -> None:
        is_text: Schema = {} if may_be_empty else {"minLength": 1, "pattern": r"[^\s\x1c-\x1f\x85]"}
        super().__init__(type="string", maxLength=MAX_QUERY_CHARACTERS, **is_text)
        self._least = 0 if may_be_empty else 1

    def parse(self, value: object, name: str) -> str:
        allowed = f"{self._least} to {MAX_QUERY_CHARACTERS:,}"
        if value is None:
            raise ParameterError(f"{name} is missing; it takes {allowed} characters")
        if not isinstance(value, str):
            raise ParameterError(f"{name} is {_shown(value)}; it has to be text")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ParameterError(f"{name} has half characters (lone surrogates) in it; it has to be text")
        query = value.strip()
        if len(query) < self._least:
            raise ParameterError(f"{name} is empty; it takes {allowed} characters")
        if len(query) > MAX_QUERY_CHARACTERS:
            raise ParameterError(f"{name} has {len(query):,} characters; allowed are {allowed}")
        return query


class DraftText(ParameterType[str]):
    """A text of any length up to a maximum, as it is."""

    def __init__(self, maximum: int) -> None:
        super().__init__(type="string", maxLength=maximum)
        self._maximum = maximum

    def parse(self, value: object, name: str) -> str:
        if not isinstance(value, str):
            raise ParameterError(f"{name} is {'missing' if value is None else _shown(value)}; it has to be text")
        if len(value) > self._maximum:
            raise ParameterError(f"{name} has {len(value):,} characters; allowed are {self._maximum:,}")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ParameterError(f"{name} has half characters (lone surrogates) in it; it has to be text")
        return value


class Names(ParameterType[tuple[str, ...]]):
    """Some of the names of a list, separated by commas or as a list."""

    is_list = True

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__(type="array", items={"type": "string", "enum": [*self.names]}, maxItems=len(self.names))

    def parse(self, value: object, name: str) -> tuple[str, ...]:
        given = [part for each in (value if isinstance(value, list | tuple) else [value]) for part in str(each).split(",")]
        for each in given:
            if each.strip() not in self.names:
                raise ParameterError(f"{name} has {_shown(each.strip())} in it; allowed are {', '.join(self.names)}")
        if len(given) > len(self.names):
            raise ParameterError(f"{name} has {len(given)} names; allowed are {len(self.names)}")
        return tuple(dict.fromkeys(each.strip() for each in given))


class Queries(ParameterType[tuple[Mapping[str, Any], ...]]):
    """A list of queries, each a text or an object with it and parameters of its own; read as the latter."""

    def __init__(self, maximum: int, record: type) -> None:
        """`record` has the parameters of one query."""
        super().__init__(type="array", items=QueryText().schema, minItems=1, maxItems=maximum)
        self.record = record
        self._maximum = maximum

    def parse(self, value: object, name: str) -> tuple[Mapping[str, Any], ...]:
        if not isinstance(value, list):
            trouble = "missing" if value is None else _shown(value)
            raise ParameterError(f"{name} is {trouble}; it has to be a list of 1 to {self._maximum} texts or objects")
        if not 1 <= len(value) <= self._maximum:
            raise ParameterError(f"{name} has {len(value)} entries; allowed are 1 to {self._maximum}")
        return tuple(self._entry(query, f"{name}[{position}]") for position, query in enumerate(value))

    def _entry(self, value: object, name: str) -> Mapping[str, Any]:
        return whole_numbers(value) if isinstance(value, dict) else {"query": QueryText().parse(value, name)}


class FindingIds(ParameterType[list[str]]):
    """A list of ids of findings."""

    def __init__(self, maximum: int) -> None:
        item = {"type": "string", "pattern": f"^{_FINDING.pattern}$"}
        super().__init__(type="array", items=item, minItems=1, maxItems=maximum)
        self._maximum = maximum

    def parse(self, value: object, name: str) -> list[str]:
        if not isinstance(value, list) or not 1 <= len(value) <= self._maximum:
            trouble = "missing" if value is None else _shown(value)
            raise ParameterError(f"{name} is {trouble}; it has to be a list of 1 to {self._maximum} ids")
        for each in value:
            if not isinstance(each, str) or not _FINDING.fullmatch(each):
                raise ParameterError(f"{name} has {_shown(each)} in it; an id has 16 hexadecimal digits")
        return value


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and the answer to it."""

    question: str
    answer: str


class Conversation(ParameterType[tuple[Exchange, ...]]):
    """A list of questions and answers."""

    def __init__(self, maximum: int) -> None:
        texts = {"question": QueryText().schema, "answer": DraftText(_MAX_ANSWER).schema}
        item: Schema = {"type": "object", "properties": texts, "required": [*texts], "additionalProperties": False}
        super().__init__(type="array", items=item, maxItems=maximum)
        self._maximum = maximum

    def parse(self, value: object, name: str) -> tuple[Exchange, ...]:
        allowed = f'it takes a list of up to {self._maximum} objects such as {{"question": "…", "answer": "…"}}'
        if not isinstance(value, list) or len(value) > self._maximum:
            raise ParameterError(f"{name} is {_shown(value)}; {allowed}")
        return tuple(self._exchange(each, f"{name}[{place}]", allowed) for place, each in enumerate(value))

    def _exchange(self, value: object, name: str, allowed: str) -> Exchange:
        if not isinstance(value, dict) or value.keys() != {"question", "answer"}:
            raise ParameterError(f"{name} is {_shown(value)}; {allowed}")
        question = QueryText().parse(value["question"], f"{name}.question")
        return Exchange(question, DraftText(_MAX_ANSWER).parse(value["answer"], f"{name}.answer"))


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


@cache
def parameters_of(record: type) -> tuple[Parameter, ...]:
    """Return the parameters of a record, and of the records nested in it, in order."""
    return tuple(_form(record).parameters())


def parse_parameters(record: type[T], values: Mapping[str, Any]) -> T:
    """Return a record from a request's values (texts or JSON). None counts as not given.

    Errors: `ParameterError`, also for a name that is no parameter.
    """
    untyped: type = record
    check_names(values, [each.name for each in parameters_of(untyped)])
    parsed: T = _form(untyped).parse(values)
    return parsed


def overlaid(record: T, values: Mapping[str, Any]) -> T:
    """Return a record with the parameters that a request's values name replaced. None counts as not given.

    Errors: `ParameterError`, also for a name that is no parameter.
    """
    untyped: type = type(record)
    check_names(values, [each.name for each in parameters_of(untyped)])
    changed: T = _form(untyped).overlay(record, {name: value for name, value in values.items() if value is not None})
    return changed


def whole_numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a JSON object with floats that are whole as integers."""
    return {name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in values.items()}


def check_names(names: Iterable[str], known: Collection[str], where: str = "") -> None:
    """Raise `ParameterError` for a name that is not among the known ones, with the one that may be meant."""
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name[:_MAX_SHOWN], known, 1)
            allowed = f"allowed are {', '.join(known)}" if known else "none is allowed"
            hint = f"did you mean {nearest[0]!r}?" if nearest else allowed
            raise ParameterError(f"unknown parameter {_shown(name)}{where}; {hint}")


def unique_names(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object, as an `object_pairs_hook`; `ParameterError` if a name is given twice."""
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise ParameterError(f"{_shown(name)} is given more than once")
        members[name] = value
    return members


@dataclass(frozen=True, slots=True)
class _Form:
    """A record's parameters and the records nested in it, by field."""

    record: type
    entries: Mapping[str, Parameter | _Form]

    def parameters(self) -> Iterator[Parameter]:
        for each in self.entries.values():
            yield from each.parameters() if isinstance(each, _Form) else (each,)

    def parse(self, values: Mapping[str, Any]) -> Any:
        given = {
            name: each.parse(values)
            for name, each in self.entries.items()
            if isinstance(each, _Form) or each.name in values or each.is_required
        }
        return self.record(**given)

    def overlay(self, record: Any, values: Mapping[str, Any]) -> Any:
        changed = {
            name: each.overlay(getattr(record, name), values) if isinstance(each, _Form) else each.parse(values)
            for name, each in self.entries.items()
            if isinstance(each, _Form) or each.name in values
        }
        return replace(record, **changed)


@cache
def _form(record: type, renamed: tuple[tuple[str, str], ...] = ()) -> _Form:
    hints, new_names = get_type_hints(record), dict(renamed)
    entries: dict[str, Parameter | _Form] = {}
    for each in fields(record):
        if "parameter" in each.metadata:
            type_, help_, name = each.metadata["parameter"]
            name = name or each.name
            argument = new_names.get(name, each.name)
            entries[each.name] = Parameter(new_names.get(name, name), argument, each.name, type_, each.default, help_)
        elif "rename" in each.metadata:
            entries[each.name] = _form(hints[each.name], (*each.metadata["rename"], *renamed))
    return _Form(record, entries)


def _within(number: N, minimum: N, maximum: N) -> N:
    if not minimum <= number <= maximum:
        raise ValueError
    return number


def page_path(path: str) -> str:
    """Return a page's path as the index knows it; one of a file loses its ending."""
    return path.strip("/").removesuffix(".md")


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"
