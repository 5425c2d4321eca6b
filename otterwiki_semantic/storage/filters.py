"""SQL conditions for the filters of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from otterwiki_semantic.content.analysis import fold
from otterwiki_semantic.core.records import Filters

_LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of SQL and its values; an empty one is always true."""

    text: str = ""
    values: tuple[str | int, ...] = ()

    @classmethod
    def all_of(cls, conditions: Sequence[Condition]) -> Condition:
        """Give the condition that all of them hold."""
        real = [condition for condition in conditions if condition.text]
        values = tuple(value for condition in real for value in condition.values)
        return cls(" AND ".join(f"({condition.text})" for condition in real), values)


@dataclass(frozen=True, slots=True)
class Scope:
    """Which chunks may answer: those on pages that pass, and that pass themselves. An empty one lets all pass."""

    pages: Condition = Condition()
    chunks: Condition = Condition()

    def __bool__(self) -> bool:
        return bool(self.pages.text or self.chunks.text)

    @property
    def ids(self) -> Condition:
        """The condition as a set of chunks' ids, for a statement without the tables of chunks and pages."""
        whole = Condition.all_of((self.pages, self.chunks))
        return Condition(f"SELECT chunks.id FROM chunks JOIN pages USING (path) WHERE {whole.text}", whole.values)

    def also(self) -> Condition:
        """The condition as a further one of a statement with both tables, in its text and values."""
        whole = Condition.all_of((self.pages, self.chunks))
        return Condition(f" AND {whole.text}" if whole.text else "", whole.values)


def page_conditions(filters: Filters) -> list[Condition]:
    """Give the conditions that filters set to pages."""
    conditions = [
        Condition("pages.path IN (SELECT path FROM page_tags WHERE tag_key = ?)", (fold(tag),)) for tag in filters.tags
    ]
    if filters.category is not None:
        conditions.append(Condition("pages.category_key = ?", (fold(filters.category),)))
    if filters.path is not None:
        start = fold(filters.path.lstrip("/"))
        conditions.append(Condition("pages.path_key >= ? AND pages.path_key < ?", (start, start + _LAST_CHARACTER)))
    if filters.updated_since is not None:
        conditions.append(Condition("pages.updated >= ?", (filters.updated_since,)))
    return conditions
