"""Search filters, as SQL conditions and as masks over the rows of an exact index."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.core.records import Filters
from otterwiki_semantic.core.records.filter_expression import PAGE, BoolOp, Expression, Not, Scope, parse_filter
from otterwiki_semantic.core.records.filter_expression import Condition as FieldCondition
from otterwiki_semantic.storage.exact_index import ExactIndex, Mask
from otterwiki_semantic.storage.sqlite import LAST_CHARACTER

_COMPARISONS = {"updated_since": ">=", "updated_before": "<"}
_PUSHED_DOWN = 4_000
"""Up to this many chunks a filter is pushed down into FTS5; above it, matches are post-filtered."""
_MARGIN = 1.3

Condition = tuple[str, tuple[str | int, ...]]
"""An SQL condition with the values of its placeholders."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the tables `pages` and `chunks`, all of which must hold. An empty filter matches everything."""

    pages: tuple[Condition, ...] = ()
    chunks: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.chunks)

    @property
    def sql(self) -> str:
        """The filter as one SQL condition."""
        return " AND ".join(f"({sql})" for sql, _ in (*self.pages, *self.chunks)) or "TRUE"

    @property
    def values(self) -> tuple[str | int, ...]:
        """The values for the placeholders in `sql`."""
        return tuple(value for _, values in (*self.pages, *self.chunks) for value in values)


def page_filter(filters: Filters) -> Filter:
    """Return the filter on pages for a request."""
    given = [
        *(("tag", tag) for tag in filters.tags),
        ("category", filters.category),
        ("path", filters.path),
        ("type", filters.type),
        ("in", filters.scope),
        ("updated_since", filters.updated_since),
        ("updated_before", filters.updated_before),
    ]
    conditions = [_condition(field, value) for field, value in given if value is not None]
    if filters.filter is not None:
        conditions.append(_compiled(parse_filter(filters.filter)))
    return Filter(tuple(conditions))


def _compiled(expression: Expression) -> Condition:
    """Compile an expression to SQL."""
    match expression:
        case Not(operand):
            sql, values = _compiled(operand)
            return f"NOT COALESCE({sql}, FALSE)", values  # a page without the value does not match
        case BoolOp(operator, operands):
            compiled = list(map(_compiled, operands))
            joined = f" {operator} ".join(f"({sql})" for sql, _ in compiled)
            return joined, tuple(value for _, values in compiled for value in values)
        case FieldCondition(field, value):
            return _condition(field, value)


def _condition(field: str, value: str | int) -> Condition:
    """Return the condition for a field's value."""
    if not isinstance(value, str):
        return f"pages.updated {_COMPARISONS[field]} ?", (value,)
    if value in {PAGE, Scope.PAGES} and field in {"type", "in"}:
        return "pages.path NOT IN (SELECT path FROM files)", ()
    if field == "in":
        return "pages.path IN (SELECT path FROM files)", ()
    if field == "type":
        return "pages.path IN (SELECT path FROM files WHERE kind = ?)", (str(value),)
    if field == "tag":
        return "pages.path IN (SELECT path FROM page_tags WHERE tag_key = ?)", (fold(value),)
    if field == "category":
        return "pages.category_key = ?", (fold(value),)
    start = fold(value.lstrip("/"))
    return "pages.path_key >= ? AND pages.path_key < ?", (start, start + LAST_CHARACTER)


@dataclass(frozen=True, slots=True)
class FilterMask:
    """The chunks of an exact index that pass a filter."""

    index: ExactIndex
    mask: Mask
    size: int
    ids_json: str | None
    """The chunk ids, if there are few enough to push the filter down into FTS5."""

    @classmethod
    def of(cls, index: ExactIndex, mask: Mask) -> FilterMask:
        """Return the chunks of a mask."""
        size = int(np.count_nonzero(mask))
        return cls(index, mask, size, json.dumps(index.columns.ids[mask].tolist()) if size <= _PUSHED_DOWN else None)

    def oversample(self, count: int) -> int:
        """Return how many nearest chunks of the index probably include `count` that pass. At least one chunk must pass."""
        return math.ceil(_MARGIN * count * self.index.size / self.size)

    def select(self, ids: Sequence[int]) -> list[int]:
        """Return the ids of chunks that pass, in the same order."""
        rows = self.index.find(ids)
        passing: list[int] = self.index.columns.ids[rows[self.mask[rows]]].tolist()
        return passing
