"""Search filters: as SQL conditions, and as masks over the rows of an exact index."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.core.records import Filters
from otterwiki_semantic.storage.exact_index import ExactIndex, Mask

_LAST_CHARACTER = "\U0010ffff"
_PUSHED_DOWN = 4_000
"""Up to this size a filter is pushed down into FTS5; above it, matches are post-filtered."""
_MARGIN = 1.3

Conditions = tuple[tuple[str, str | int], ...]
"""SQL conditions, each with the value of its single placeholder."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on the tables `pages` and `chunks`, all of which must hold. An empty filter matches everything."""

    pages: Conditions = ()
    chunks: Conditions = ()

    def __bool__(self) -> bool:
        return bool(self.pages or self.chunks)

    @property
    def sql(self) -> str:
        """The filter as one SQL condition."""
        return " AND ".join(f"({sql})" for sql, _ in (*self.pages, *self.chunks)) or "TRUE"

    @property
    def values(self) -> tuple[str | int, ...]:
        """The values of its placeholders."""
        return tuple(value for _, value in (*self.pages, *self.chunks))


def page_filter(filters: Filters) -> Filter:
    """Return the filter on pages that a request asks for."""
    conditions: list[tuple[str, str | int]] = [
        ("pages.path IN (SELECT path FROM page_tags WHERE tag_key = ?)", fold(tag)) for tag in filters.tags
    ]
    if filters.category is not None:
        conditions.append(("pages.category_key = ?", fold(filters.category)))
    if filters.path is not None:
        start = fold(filters.path.lstrip("/"))
        conditions += [("pages.path_key >= ?", start), ("pages.path_key < ?", start + _LAST_CHARACTER)]
    if filters.updated_since is not None:
        conditions.append(("pages.updated >= ?", filters.updated_since))
    if filters.updated_before is not None:
        conditions.append(("pages.updated < ?", filters.updated_before))
    return Filter(tuple(conditions))


@dataclass(frozen=True, slots=True)
class FilterMask:
    """The chunks of an exact index that pass a filter."""

    index: ExactIndex
    mask: Mask
    size: int
    ids_json: str | None
    """Their ids, if they are few enough to push the filter down into FTS5."""

    @classmethod
    def of(cls, index: ExactIndex, mask: Mask) -> FilterMask:
        """Return the chunks of a mask."""
        size = int(np.count_nonzero(mask))
        return cls(index, mask, size, json.dumps(index.ids(mask)) if size <= _PUSHED_DOWN else None)

    def oversample(self, count: int) -> int:
        """Return how many chunks of the whole index probably contain `count` that pass. At least one chunk must pass."""
        return math.ceil(_MARGIN * count * self.index.size / self.size)

    def select(self, ids: Sequence[int]) -> list[int]:
        """Return the ids whose chunks pass, in the same order."""
        return [candidate.id for candidate in self.index.candidates(ids, self.mask)]
