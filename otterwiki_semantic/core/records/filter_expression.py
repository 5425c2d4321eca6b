"""Filter expressions, such as ``tag:ops AND NOT (path:archive/ OR updated_before:2024-01-01)``.

A condition is ``field:value``. Values with spaces, brackets or quotes need double quotes, in which a backslash escapes the next
character. NOT binds closest, then AND, then OR, in any case.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import Meta

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import Choice, FoldedText, Text, Timestamp, parse_value
from otterwiki_semantic.core.records.document import FileKind

MAX_CHARACTERS = 2_000
MAX_CONDITIONS = 50
MAX_DEPTH = 10
"""The deepest nesting of brackets and NOTs."""
_MAX_SHOWN = 40
_TOKEN = re.compile(
    r"""(?:(?<!\s)\s++)?(?:
        (?P<bracket>[()])
        | (?P<field>\w++):(?:"(?P<quoted>(?:[^"\\]++|\\.)*)(?P<closing>"?)|(?P<plain>[^\s()"]*))
        | (?P<word>[^\s()]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Scope(Choice):
    """Pages alone, or attached files alone."""

    PAGES = "pages"
    ATTACHMENTS = "attachments"


PAGE = "page"
_TYPES = (PAGE, *(kind.value for kind in FileKind))


def _type(value: Any) -> str:
    return _TYPES[_TYPES.index(str(value).strip().lower())]


PageType = Annotated[str, Meta(extra={"read": _type, "schema": {"type": "string", "enum": [*_TYPES]}})]
"""`page`, or the kind of an attached file."""

FIELDS: Mapping[str, object] = MappingProxyType(
    {
        "category": FoldedText,
        "tag": FoldedText,
        "path": Text,
        "type": PageType,
        "in": Scope,
        "updated_since": Timestamp,
        "updated_before": Timestamp,
    }
)
"""The fields of conditions: parameters of the same names (`in` is `scope`) with the types of their values."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on one field of a page."""

    field: str
    value: str | int


@dataclass(frozen=True, slots=True)
class Not:
    """A negated expression."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class BoolOp:
    """Expressions that must all match (AND), or of which at least one must (OR)."""

    operator: Literal["AND", "OR"]
    operands: tuple[Expression, ...]


Expression = Condition | Not | BoolOp


def _checked(value: Any) -> Any:
    """Validate the text of an expression; return unchanged what msgspec rejects."""
    if not isinstance(value, str) or len(value) > MAX_CHARACTERS:
        return value
    parse_filter(value)
    return value.strip()


FilterText = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_CHARACTERS, extra={"read": _checked}, extra_json_schema={"format": "filter-expression"}),
]


@lru_cache(256)
def parse_filter(text: str) -> Expression:
    """Parse a filter expression. Errors: `ParameterError`, which gives the position."""
    return _Parser(text).expression()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """`(`, `)`, `AND`, `OR`, `NOT`, `condition`, `unclosed`, `word` or `end`."""
    place: int
    """The position of the first character, from 1."""
    text: str = ""
    field: str = ""
    value: str = ""


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = next(self._tokens)
        self._conditions = 0
        self._depth = 0

    def expression(self) -> Expression:
        found = self._any_of()
        if self._next.kind != "end":
            raise self._error(f"expected AND, OR or the end at {self._here}")
        return found

    def _any_of(self) -> Expression:
        return self._joined("OR", self._all_of)

    def _all_of(self) -> Expression:
        return self._joined("AND", self._operand)

    def _joined(self, operator: Literal["AND", "OR"], part: Callable[[], Expression]) -> Expression:
        operands = [part()]
        while self._take(operator):
            operands.append(part())
        return BoolOp(operator, tuple(operands)) if len(operands) > 1 else operands[0]

    def _operand(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"brackets and NOT are nested more than {MAX_DEPTH} deep")
        if self._take("NOT"):
            found: Expression = Not(self._operand())
        elif opening := self._take("("):
            found = self._any_of()
            if not self._take(")"):
                raise self._error(f"the bracket at character {opening.place} is not closed: expected ) at {self._here}")
        else:
            found = self._condition()
        self._depth -= 1
        return found

    def _condition(self) -> Condition:
        if self._next.kind == "unclosed":
            raise self._error(f"the quotation mark of {self._next.text!r:.{_MAX_SHOWN}} is not closed")
        token = self._take("condition")
        if token is None:
            raise self._error(f"expected a condition such as tag:ops at {self._here}")
        field = token.field.lower()
        if field not in FIELDS:
            nearest = difflib.get_close_matches(field, FIELDS, 1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"fields are {', '.join(FIELDS)}"
            raise self._error(f"there is no field {token.field!r:.{_MAX_SHOWN}}; {hint}")
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise self._error(f"there are more than {MAX_CONDITIONS} conditions")
        return Condition(field, parse_value(FIELDS[field], token.value, f"filter: {field}"))

    def _take(self, kind: str) -> _Token | None:
        if self._next.kind != kind:
            return None
        taken, self._next = self._next, next(self._tokens)
        return taken

    @property
    def _here(self) -> str:
        token = self._next
        return "the end" if token.kind == "end" else f"character {token.place}, not {token.text!r:.{_MAX_SHOWN}}"

    def _error(self, trouble: str) -> ParameterError:
        return ParameterError(f"filter: {trouble}")


def _tokens(text: str) -> Iterator[_Token]:
    end = 0
    while found := _TOKEN.match(text, end):
        place, end = end + len(found[0]) - len(found[0].lstrip()) + 1, found.end()
        part, field, value = found[0].strip(), found["field"], found["plain"]
        if field:
            if found["quoted"] is not None:
                value = _ESCAPED.sub(r"\1", found["quoted"])
            is_closed = found["plain"] is not None or found["closing"]
            yield _Token("condition" if is_closed else "unclosed", place, part, field, value)
        elif found["bracket"]:
            yield _Token(part, place, part)
        else:
            yield _Token(part.upper() if part.upper() in _OPERATORS else "word", place, part)
    yield _Token("end", len(text) + 1)
