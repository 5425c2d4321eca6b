"""The one facade of the index, whoever answers: this process, or the one that owns the index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from otterwiki_semantic.errors import ParameterError
from otterwiki_semantic.records import Answer, IndexStatus, RebuildStatus

MAX_QUERY_CHARACTERS = 2_000
MAX_QUERIES = 32
MAX_RESULTS = 50
MAX_CHUNKS_PER_PAGE = 5
DEFAULT_RESULTS = 5
DEFAULT_CHUNKS_PER_PAGE = 2
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_MOST_SHOWN = 60


class IndexService(Protocol):
    """What can be asked of an index. Errors: those of `otterwiki_semantic.errors`."""

    def search(self, queries: Sequence[str], n: int, max_chunks_per_page: int) -> list[Answer]:
        """Answer each query with at most `n` passages, nearest first, at most `max_chunks_per_page` of one page."""
        ...

    def status(self) -> IndexStatus:
        """Tell what the index holds and how it is."""
        ...

    def reindex(self) -> RebuildStatus:
        """Start a rebuild beside the serving index; `RebuildRunningError` while one runs."""
        ...

    def notify(self) -> None:
        """Tell that the repository may have changed; returns at once and never raises."""
        ...


def checked_query(value: object, name: str = "q") -> str:
    """Give a query without surrounding space; `ParameterError` when it is missing, empty or too long."""
    if value is None:
        raise ParameterError(f"{name} is missing; it takes 1 to {MAX_QUERY_CHARACTERS:,} characters")
    if not isinstance(value, str):
        raise ParameterError(f"{name} is {_shown(value)}; it has to be text")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ParameterError(f"{name} has half characters (lone surrogates) in it; it has to be text")
    query = value.strip()
    if not query:
        raise ParameterError(f"{name} is empty; it takes 1 to {MAX_QUERY_CHARACTERS:,} characters")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise ParameterError(f"{name} has {len(query):,} characters; allowed are 1 to {MAX_QUERY_CHARACTERS:,}")
    return query


def checked_queries(value: object) -> list[str]:
    """Give a list of queries; `ParameterError` when it is no list, empty or too long, or one of them is not allowed."""
    if value is None:
        raise ParameterError(f"queries is missing; it has to be a list of 1 to {MAX_QUERIES} texts")
    if not isinstance(value, list):
        raise ParameterError(f"queries is {_shown(value)}; it has to be a list of 1 to {MAX_QUERIES} texts")
    if not 1 <= len(value) <= MAX_QUERIES:
        raise ParameterError(f"queries has {len(value)} entries; allowed are 1 to {MAX_QUERIES}")
    return [checked_query(query, f"queries[{position}]") for position, query in enumerate(value)]


def checked_number(value: object, name: str, default: int, most: int) -> int:
    """Give a whole number from 1 to `most`, from text or a number; `ParameterError` for anything else."""
    if value is None:
        return default
    allowed = f"allowed are the whole numbers 1 to {most}"
    is_whole = not isinstance(value, bool) and isinstance(value, int | str) and _WHOLE_NUMBER.fullmatch(str(value))
    if not is_whole or not 1 <= int(str(value)) <= most:
        raise ParameterError(f"{name} is {_shown(value)}; {allowed}")
    return int(str(value))


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
