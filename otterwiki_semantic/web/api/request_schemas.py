"""JSON Schemas of what can be asked, with the limits that `parameters` checks."""

from __future__ import annotations

from otterwiki_semantic.core.parameters import (
    DEFAULT_CHUNKS_PER_PAGE,
    DEFAULT_RELATED,
    DEFAULT_RESULTS,
    DEFAULT_WAIT_SECONDS,
    MAX_AROUND,
    MAX_CHUNKS_PER_PAGE,
    MAX_CONTEXT,
    MAX_LISTED,
    MAX_OFFSET,
    MAX_PAGES,
    MAX_PATH_CHARACTERS,
    MAX_QUERIES,
    MAX_QUERY_CHARACTERS,
    MAX_RESULTS,
    MAX_SECTIONS,
    MAX_TAGS,
    MAX_WAIT_SECONDS,
)
from otterwiki_semantic.core.records import Mode, SearchOptions
from otterwiki_semantic.web.api.answer_schemas import Schema

_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_TEXT: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_PATH_CHARACTERS,
    "pattern": rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$",
}
_QUERY: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_QUERY_CHARACTERS,
    "pattern": r"[^\s\x1c-\x1f\x85]",
    "description": 'What is asked. Any text is allowed; "exact phrases" and -exclusions are understood.',
}
_LINES = "^[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?$"
_COMMIT = "^[0-9a-fA-F]{4,64}$"
_FLAG: Schema = {"type": "boolean", "default": False}
_PAGE: Schema = {
    "name": "path",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
    "description": "The page's path, with or without `.md`; its case does not matter.",
}
_FULL = _FLAG | {"description": "Read and divide every page again, even if nothing has changed."}


def search_parameters() -> dict[str, Schema]:
    """Give the schema of every parameter of a search but the query, by name, with its meaning and default."""
    defaults = SearchOptions()
    return {
        "n": _number(DEFAULT_RESULTS, 1, MAX_RESULTS, "How many results."),
        "max_chunks_per_page": _number(
            DEFAULT_CHUNKS_PER_PAGE, 1, MAX_CHUNKS_PER_PAGE, "How many results of one page; 1 asks for a ranking of pages."
        ),
        "mode": {
            "type": "string",
            "enum": [mode.value for mode in Mode],
            "default": defaults.mode.value,
            "description": "What decides the ranking: meaning and words, meaning alone, or words alone.",
        },
        "semantic_ratio": _share(
            0, "The share of meaning in a hybrid ranking; refused in the other modes.", default=defaults.semantic_ratio
        ),
        "category": _TEXT | {"description": "Only pages of this category."},
        "tag": {
            "type": "array",
            "items": _TEXT,
            "maxItems": MAX_TAGS,
            "description": "Only pages with this tag; given again, with all of them.",
        },
        "path": _TEXT | {"description": "Only pages whose path begins so."},
        "updated_since": {
            "type": "string",
            "anyOf": [{"format": "date"}, {"format": "date-time"}],
            "description": "Only pages that a commit changed since this date or time; UTC unless it says otherwise.",
        },
        "min_similarity": _share(-1, "Leaves out passages with a lower cosine similarity."),
        "diversity": _share(0, "From best first (0) to as different as they can be (1).", default=defaults.diversity),
        "context": _number(defaults.context, 0, MAX_CONTEXT, "How many passages to show before and after each result."),
        "facets": _FLAG | {"description": "Count the found pages by category, tag and folder."},
        "draft": _FLAG | {"description": "These words are still being typed: do not count them as a search."},
        "rerank": {
            "type": "boolean",
            "description": "Whether a reranker orders the best candidates; unless said, if it is fast, in a hybrid search.",
        },
        "explain": _FLAG | {"description": "Say of each result why it stands where it does."},
        "wait": _FLAG | {"description": "Wait, for `wait_seconds` at most, until the HEAD at the time of asking is indexed."},
        "wait_seconds": {
            "type": "number",
            "minimum": 0,
            "maximum": MAX_WAIT_SECONDS,
            "default": DEFAULT_WAIT_SECONDS,
            "description": "How long to wait at most.",
        },
    }


def query_parameters() -> list[Schema]:
    """Give the parameters of a search by GET."""
    given = [_parameter("q", _QUERY, required=True)]
    return given + [_parameter(name, schema) for name, schema in search_parameters().items()]


def related_parameters() -> list[Schema]:
    """Give the parameters of a question for related pages."""
    path = _TEXT | {"description": "The page, with or without `.md`; its case does not matter."}
    return [
        _parameter("path", path, required=True),
        _parameter("n", _number(DEFAULT_RELATED, 1, MAX_RESULTS, "How many pages.")),
    ]


def listing_parameters() -> list[Schema]:
    """Give the parameters of a list of pages."""
    filters = search_parameters()
    return [
        _parameter("prefix", filters["path"]),
        *(_parameter(name, filters[name]) for name in ("category", "tag", "updated_since")),
        _parameter("limit", _number(MAX_LISTED, 1, MAX_LISTED, "How many pages at most.")),
        _parameter("offset", _number(0, 0, MAX_OFFSET, "How many pages to leave out before them.")),
    ]


def page_parameters() -> list[Schema]:
    """Give the parameters of a page that is read."""
    section = {
        "type": "array",
        "items": _TEXT,
        "maxItems": MAX_SECTIONS,
        "description": "A heading, narrowed by those above it (`A > B`, `A/B`), or `#anchor`; given again, several.",
    }
    lines = {
        "type": "string",
        "pattern": _LINES,
        "description": "A line or a range of lines, such as 12-40; after the sections, if both are given.",
    }
    revision = {"type": "string", "pattern": _COMMIT, "description": "A commit to read the page at; HEAD by default."}
    return [
        _PAGE,
        _parameter("section", section),
        _parameter("lines", lines),
        _parameter("around", _number(0, 0, MAX_AROUND, "Lines to read before and after `lines`.")),
        _parameter("revision", revision),
    ]


def seen_page_parameters() -> list[Schema]:
    """Give the parameters of a page as search sees it."""
    return [_PAGE]


def reindex_parameters() -> list[Schema]:
    """Give the parameters of a rebuild."""
    return [_parameter("full", _FULL)]


def reindex_schema() -> Schema:
    """Give the schema of a rebuild's body, which is stronger than the query string. Null stands for what is not given."""
    pages = {
        "type": ["array", "null"],
        "items": _TEXT,
        "minItems": 1,
        "maxItems": MAX_PAGES,
        "description": "Only read these pages again, in the index that serves.",
    }
    return {"type": "object", "properties": {"full": _nullable(_FULL), "pages": pages}}


def batch_schema() -> Schema:
    """Give the schema of a body with several queries. Null stands for a parameter that is not given."""
    options = {name: _nullable(schema) for name, schema in search_parameters().items()}
    options["tag"] |= {"anyOf": [_TEXT, {"type": "array", "items": _TEXT, "maxItems": MAX_TAGS}, {"type": "null"}]}
    for keyword in ("type", "items", "maxItems"):
        del options["tag"][keyword]
    only_hybrid = {
        "if": {
            "properties": {"semantic_ratio": {"type": "number"}, "mode": {"enum": [Mode.SEMANTIC.value, Mode.KEYWORD.value]}},
            "required": ["semantic_ratio", "mode"],
        },
        "then": False,
    }
    queries = {"type": "array", "items": _QUERY, "minItems": 1, "maxItems": MAX_QUERIES}
    return {"type": "object", "properties": {"queries": queries, **options}, "required": ["queries"], **only_hybrid}


def _number(default: int, least: int, most: int, meaning: str) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default, "description": meaning}


def _share(least: float, meaning: str, default: float | None = None) -> Schema:
    schema = {"type": "number", "minimum": least, "maximum": 1, "description": meaning}
    return schema if default is None else schema | {"default": default}


def _nullable(schema: Schema) -> Schema:
    nullable = schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _parameter(name: str, schema: Schema, *, required: bool = False) -> Schema:
    meaning = schema["description"]
    plain = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": "query", "required": required, "description": meaning, "schema": plain}
