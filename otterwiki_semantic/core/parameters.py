"""What a request may ask, read from its texts: limits, and errors that name the parameter and what is allowed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records.search import Filters, Mode, SearchOptions
from otterwiki_semantic.core.settings import read_flag

MAX_QUERY_CHARACTERS = 2_000
MAX_QUERIES = 32
MAX_RESULTS = 50
MAX_CHUNKS_PER_PAGE = 5
DEFAULT_RESULTS = 5
DEFAULT_CHUNKS_PER_PAGE = 2
DEFAULT_RELATED = 5
MAX_CONTEXT = 3
DEFAULT_WAIT_SECONDS = 5.0
MAX_WAIT_SECONDS = 10.0
MAX_TAGS = 20
MAX_PATH_CHARACTERS = 1_000
MAX_LISTED = 100_000
MAX_OFFSET = 100_000_000
MAX_AROUND = 1_000
MAX_PAGES = 1_000
MAX_SECTIONS = 50
_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_MOST_SHOWN = 60

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")


def search_options(values: Mapping[str, Any]) -> SearchOptions:
    """Give the options of a search from a request's parameters (texts or JSON values); `ParameterError` for a bad one.

    Parameters that are no options are left alone. `tag` is one text or a list of them.
    """
    mode = checked_choice(values.get("mode"), "mode", Mode.HYBRID)
    is_draft = checked_flag(values.get("draft"), "draft")
    ratio = values.get("semantic_ratio")
    if ratio is not None and mode is not Mode.HYBRID:
        raise ParameterError(f"semantic_ratio goes with mode=hybrid; mode is {mode}")
    return SearchOptions(
        n=checked_number(values.get("n"), "n", DEFAULT_RESULTS, MAX_RESULTS),
        max_chunks_per_page=checked_number(
            values.get("max_chunks_per_page"), "max_chunks_per_page", DEFAULT_CHUNKS_PER_PAGE, MAX_CHUNKS_PER_PAGE
        ),
        mode=mode,
        semantic_ratio=checked_share(ratio, "semantic_ratio", default=0.5),
        filters=_filters(values),
        min_similarity=_optional(values.get("min_similarity"), lambda value: checked_share(value, "min_similarity", least=-1)),
        diversity=checked_share(values.get("diversity"), "diversity", default=0.0),
        context=checked_number(values.get("context"), "context", 0, MAX_CONTEXT, least=0),
        facets=checked_flag(values.get("facets"), "facets"),
        explain=checked_flag(values.get("explain"), "explain"),
        wait=_seconds_to_wait(values),
        note=not is_draft,
        rerank=_rerank(values.get("rerank"), is_draft=is_draft),
    )


def listing_options(values: Mapping[str, Any]) -> tuple[Filters, int, int]:
    """Give what a list of pages is to hold: the filters, how many pages, and how many are left out before them."""
    prefix = _optional(values.get("prefix"), lambda value: checked_text(value, "prefix"))
    filters = _filters({**values, "path": prefix})
    limit = checked_number(values.get("limit"), "limit", MAX_LISTED, MAX_LISTED)
    return filters, limit, checked_number(values.get("offset"), "offset", 0, MAX_OFFSET, least=0)


def reindex_is_full(values: Mapping[str, Any]) -> bool:
    """Tell from a request's parameters whether a rebuild is to read every page again; `ParameterError` for a bad one."""
    return checked_flag(values.get("full"), "full")


def pages_to_read(values: Mapping[str, Any]) -> list[str]:
    """Give the pages that are to be read again alone, none for all; `ParameterError` for a bad one."""
    pages = values.get("pages")
    if pages is None:
        return []
    if not isinstance(pages, list) or not pages:
        raise ParameterError(f"pages is {_shown(pages)}; it takes a list of 1 to {MAX_PAGES:,} paths")
    return [without_ending(path) for path in checked_texts(pages, "pages", MAX_PAGES)]


def without_ending(path: str) -> str:
    """Give a page's path as the index knows it, of one that may be a file's."""
    return path.strip("/").removesuffix(".md")


def _seconds_to_wait(values: Mapping[str, Any]) -> float:
    seconds = checked_seconds(values.get("wait_seconds"), "wait_seconds", DEFAULT_WAIT_SECONDS, MAX_WAIT_SECONDS)
    return seconds if checked_flag(values.get("wait"), "wait") else 0.0


def _rerank(value: object, *, is_draft: bool) -> bool | None:
    """Tell whether a search is to be reranked, None if that is left to the index; what is still being typed is not."""
    unsaid = False if is_draft else None
    return unsaid if value is None else checked_flag(value, "rerank")


def _filters(values: Mapping[str, Any]) -> Filters:
    tags = values.get("tag")
    tags = [] if tags is None else tags if isinstance(tags, list) else [tags]
    if len(tags) > MAX_TAGS:
        raise ParameterError(f"tag is given {len(tags)} times; allowed are {MAX_TAGS}")
    return Filters(
        category=_optional(values.get("category"), lambda value: " ".join(checked_text(value, "category").split())),
        tags=tuple(" ".join(checked_text(tag, "tag").split()) for tag in tags),
        path=_optional(values.get("path"), lambda value: checked_text(value, "path")),
        updated_since=_optional(values.get("updated_since"), lambda value: checked_time(value, "updated_since")),
    )


def _optional(value: object, check: Callable[[object], T]) -> T | None:
    return None if value is None else check(value)


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


def checked_number(value: object, name: str, default: int, most: int, *, least: int = 1) -> int:
    """Give a whole number from `least` to `most`, from text or a number; `ParameterError` for anything else."""
    if value is None:
        return default
    allowed = f"allowed are the whole numbers {least} to {most}"
    is_whole = not isinstance(value, bool) and isinstance(value, int | str) and _WHOLE_NUMBER.fullmatch(str(value))
    if not is_whole or not least <= int(str(value)) <= most:
        raise ParameterError(f"{name} is {_shown(value)}; {allowed}")
    return int(str(value))


def checked_share(value: object, name: str, *, default: float = 0.0, least: float = 0.0) -> float:
    """Give a number from `least` to 1, from text or a number; `ParameterError` for anything else."""
    return default if value is None else _checked_real(value, name, least, 1.0)


def checked_seconds(value: object, name: str, default: float, most: float) -> float:
    """Give a number of seconds from 0 to `most`, from text or a number; `ParameterError` for anything else."""
    return default if value is None else _checked_real(value, name, 0.0, most)


def _checked_real(value: object, name: str, least: float, most: float) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not least <= number <= most:
        raise ParameterError(f"{name} is {_shown(value)}; allowed are the numbers {least:g} to {most:g}")
    return number


def checked_flag(value: object, name: str) -> bool:
    """Give true or false, from a text or a truth value; false when it is missing."""
    if value is None or isinstance(value, bool):
        return bool(value)
    try:
        return read_flag(str(value))
    except ValueError:
        raise ParameterError(f"{name} is {_shown(value)}; allowed are true and false") from None


def checked_choice(value: object, name: str, default: E) -> E:
    """Give one of an enumeration's values; `ParameterError` when it is none of them."""
    if value is None:
        return default
    kind = type(default)
    try:
        return kind(str(value).strip().lower())
    except ValueError:
        raise ParameterError(f"{name} is {_shown(value)}; allowed are {', '.join(kind)}") from None


def checked_text(value: object, name: str) -> str:
    """Give a text without surrounding space; `ParameterError` when it is empty, too long or no text."""
    if value is None:
        raise ParameterError(f"{name} is missing; it takes 1 to {MAX_PATH_CHARACTERS:,} characters on one line")
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_PATH_CHARACTERS or _NOT_IN_A_LINE.search(value):
        raise ParameterError(f"{name} is {_shown(value)}; it takes 1 to {MAX_PATH_CHARACTERS:,} characters on one line")
    return value.strip()


def checked_texts(value: object, name: str, most: int) -> list[str]:
    """Give one text or a list of them as a list, empty for none; `ParameterError` for too many, or for one that is no text."""
    values = [] if value is None else value if isinstance(value, list) else [value]
    if len(values) > most:
        raise ParameterError(f"{name} is given {len(values)} times; allowed are {most}")
    return [checked_text(each, name) for each in values]


def checked_time(value: object, name: str) -> int:
    """Give a moment in seconds since 1970 from a date or a time in ISO 8601, in UTC unless it says otherwise."""
    text = str(value).strip()
    try:
        moment = datetime.fromisoformat(text)
        return math.ceil((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise ParameterError(
            f"{name} is {_shown(value)}; allowed is a date or a time such as 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
