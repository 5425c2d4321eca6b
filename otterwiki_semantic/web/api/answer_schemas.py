"""JSON Schemas of what the API answers, made of the records the answers are made of, so that no field can be forgotten."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from otterwiki_semantic.core.records import (
    Answer,
    Commit,
    IndexStatus,
    Insight,
    OutlineEntry,
    PageInspection,
    PageLinks,
    PageList,
    Progress,
    RebuildStatus,
    RelatedPages,
    WikiMap,
)

Schema = dict[str, Any]

_PLACE = "#/components/schemas/"
_SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number"}
_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MEANING = {
    "query": "The query without surrounding space.",
    "total": "The number of results.",
    "confident": "Whether any of the results is about the query.",
    "degraded": "Only if a part of the search failed: what, and why.",
    "Answer.reranker": "Only if a reranker has put the best candidates in order: which one.",
    "IndexStatus.reranker": "The reranker that is configured; null: none.",
    "is_outdated": "While true another index is built beside, with another model or other chunks.",
    "reranker_is_loading": "While true answers are not reranked.",
    "rerank": "Of what a reranker has read: the rank before that, and the reranker's score.",
    "message": "Only while the first build is under way.",
    "name": "The last part of the page's path.",
    "WikiMap.state": "`ready`, `making` (the first one), `unavailable` (`trouble` says why), or `empty`: there are no pages.",
    "made": "When the map was made, ISO 8601 in UTC.",
    "points": "With `ready` every page that the index has, by path.",
    "WikiMap.trouble": "Only if there is no map, or an old one: why, and what to do.",
    "WikiMap.total": "The number of pages on the map.",
    "MapPoint.path": "The page's path in the wiki.",
    "MapPoint.url": "The page in the wiki.",
    "x": "From left to right; both directions have one scale.",
    "y": "From top to bottom.",
    "folder": "The top folder, empty if there is none.",
    "MapPoint.category": "From the front matter.",
    "is_new": "Whether the page came after the map was made: it stands amid those nearest to it until the next one.",
    "Hit.path": "The page's path in the wiki.",
    "RelatedPage.path": "The page's path in the wiki.",
    "Facets.category": "Pages by category.",
    "Facets.tag": "Pages by tag.",
    "Facets.path": "Pages by top folder, which ends in `/`.",
    "title": "The front matter's title, else the first heading of level 1, else the name.",
    "Hit.category": "From the front matter.",
    "Hit.tags": "From the front matter.",
    "url": "The page in the wiki, at the heading if there is one.",
    "snippet": "The whole passage, its page's title and heading path in brackets first.",
    "prefix_length": "Characters of `snippet` that are title and heading path.",
    "overlap_length": "Characters of `snippet` behind them that repeat the end of the passage before.",
    "distance": "Cosine distance of query and passage: 0 = same, 2 = opposite; null if the model was not used or failed.",
    "Hit.similarity": "1 - `distance`.",
    "Hit.score": "What ranks; comparable within one answer only.",
    "relevant": "Whether the passage is about the query.",
    "highlights": "Ranges of `snippet` that match the query's words, `[start, end)` in Unicode code points.",
    "also_on": "Paths of other pages with nearly the same passage.",
    "updated": "When a commit last changed the page, ISO 8601 in UTC.",
    "context_before": "With `context`: the text before the passage, where there is any.",
    "context_after": "With `context`: the text after the passage, where there is any.",
    "explain": "With `explain`: why the result stands where it does.",
    "section": "The heading the passage stands below.",
    "section_path": "The headings from the outermost to `section`.",
    "headings": "All the headings whose sections have a part in `text`.",
    "anchor": "The heading's id in the page.",
    "start_line": "The first line of the passage in the page's file.",
    "end_line": "The last line of the passage in the page's file.",
    "chunk_index": "Which passage of the page this is, from 0.",
    "total_chunks": "How many passages the page has.",
    "page_word_count": "Words of the page.",
    "text": "What to read: the passage's own words, joined with neighbours that are nearly as good.",
    "Freshness.commit": "The commit the index equals; null: none yet.",
    "Freshness.head": "The commit HEAD is; null: none yet.",
    "pending_pages": "Pages that are still to be indexed, or whose vectors are.",
    "Freshness.error": "Only if HEAD cannot be told: why.",
    "trouble": "What keeps the index from doing all it could.",
    "cure": "What to do about it.",
    "Estimate.texts": "Passages to embed.",
    "Estimate.disk_bytes": "Bytes that the new index takes beside the serving one.",
    "Insight.disk_bytes": "Bytes that the data directory takes.",
    "free_bytes": "Bytes that are free there.",
    "Estimate.seconds": "How long it takes.",
    "before": "Mean recall@10 of the judged questions in the serving index.",
    "after": "The same in the new one.",
    "RelatedPage.similarity": "The mean of the two pages' up to three nearest pairs of passages.",
    "RelatedPage.relevant": "Whether it is near enough to be offered to readers.",
    "linked": "Whether the page asked about links to this one already.",
    "sections": "The nearest pairs of passages.",
    "ListedPage.path": "The page's path in the wiki.",
    "PageView.path": "The page's path in the wiki, as its file is spelled.",
    "PageList.total": "The number of pages that pass, listed or not.",
    "last_updated": "The day of `updated`.",
    "content_length": "The same as `word_count`, as another plugin calls it.",
    "PageView.content": "The page's markdown, front matter included; with `section` or `lines` that of `parts`.",
    "frontmatter": "The front matter's values; what JSON has no kind for is text. Null: none.",
    "PageView.revision": "The last commit that changed the page.",
    "links_to": "Paths of the pages it links to, as the index has it now.",
    "linked_from": "Paths of the pages that link to it, as the index has it now.",
    "PageView.word_count": "Words of the whole page.",
    "total_lines": "Lines of the whole page.",
    "PageView.sections": "The page's sections, each with all its subsections; the text before the first heading has level 0.",
    "OutlineEntry.name": "What stands for this section alone: its heading, with those above it where others have the same.",
    "parts": "With `section` or `lines`: what was asked for, in this order.",
    "PageView.degraded": "Only if the index cannot tell the page's links: why.",
    "last_error": "The reason when `status` is `error`.",
    "embedded_texts": "Texts the model embedded since the index was opened.",
    "chunks_total": "An estimate until the last page has been read.",
    "copies": "Whether what has not changed is copied from the serving index; else every page is read again.",
    "memory_bytes": "Bytes of memory that the index process has; null where the system does not tell.",
    "Insight.started": "When the index process was started, ISO 8601 in UTC.",
    "syncs": "The last 20 syncs that changed the index or failed, newest first.",
    "SyncRecord.commit": "The commit the index equalled then.",
    "SyncRecord.pages": "Pages indexed or removed.",
    "SyncRecord.chunks": "Passages that the model was given.",
    "SyncRecord.error": "Why it failed; null: it did not.",
    "SyncRecord.times": "How often in a row it failed so.",
    "keeps_searches": "Whether searches are noted (`SEMANTIC_SEARCH_LOG`).",
    "searches": "The hours of the last 7 days that had searches, oldest first.",
    "hour": "When the hour begins, ISO 8601 in UTC.",
    "SearchHour.unanswered": "Searches that found nothing relevant.",
    "p50_ms": "Milliseconds in which half of the searches were answered.",
    "p95_ms": "Milliseconds in which 95 % of the searches were answered.",
    "Insight.unanswered": "The 50 questions that found nothing relevant most often in 90 days.",
    "UnansweredQuery.query": "The question as it was put last, up to 200 characters.",
    "UnansweredQuery.times": "How often it was put; case and space make no other question of it.",
    "window": "How many word pieces the model takes at most.",
    "PageInspection.total_chunks": "How many passages the page has; at most 200 are shown.",
    "tokens": "Word pieces that the model was given, the special ones included.",
    "has_vector": "False: the model failed on it, so it is found by its words alone.",
    "neighbours": "The nearest 3 passages of other pages, nearest first.",
    "Neighbour.similarity": "Cosine similarity, 1 = same.",
    "seconds_left": "An estimate while work is under way.",
    "ReindexStatus.status": "`state`, as the earlier plugin calls it.",
    "started_at": "The same as `started`, as the earlier plugin calls it.",
    "completed_at": "The same as `finished`, as the earlier plugin calls it.",
    "pages_indexed": "The same as `pages_done`, as the earlier plugin calls it.",
    "chunks_created": "The same as `chunks_done`, as the earlier plugin calls it.",
    "error_message": "The same as `error`, as the earlier plugin calls it.",
}
_EARLIER_NAMES = {
    "started_at": "started",
    "completed_at": "finished",
    "pages_indexed": "pages_done",
    "chunks_created": "chunks_done",
    "error_message": "error",
}
"""Fields of a rebuild's status that are there twice, for programs that know the earlier plugin."""


def answer_schemas() -> dict[str, Schema]:
    """Give every schema by the name under which the others refer to it."""
    found: dict[str, Schema] = {}
    found["Answer"] = _answer(found)
    found["RelatedPages"] = _related(found)
    found["IndexStatus"] = _status(found)
    found["RebuildStatus"] = _rebuild(found)
    found["ReindexStatus"] = _reindex_status(found["RebuildStatus"])
    found["PageList"] = _page_list(found)
    found["PageView"] = _page_view(found)
    found["Insight"] = _object_of(Insight, found)
    found["PageInspection"] = _seen_page(found)
    found["WikiMap"] = _wiki_map(found)
    found |= _answers_without_record()
    found["Freshness"] = _without(found["Freshness"], "error")
    found["Freshness"]["properties"]["error"] = _TEXT
    for name, schema in found.items():
        _describe(name, schema)
    return found


def reference(name: str) -> Schema:
    """Give the schema that stands for a named one."""
    return {"$ref": f"{_PLACE}{name}"}


def _answer(found: dict[str, Schema]) -> Schema:
    answer = _without(_object_of(Answer, found), "hits", "degraded", "facets", "reranker")
    _add(answer, results=_list_of("Hit"), total=_COUNT)
    answer["properties"] |= {"message": _TEXT, "degraded": _TEXT, "facets": reference("Facets"), "reranker": _TEXT}
    hit = found["Hit"] = _without(found["Hit"], "context_before", "context_after", "explain")
    _add(hit, url=_TEXT, similarity={"type": ["number", "null"]})
    hit["properties"] |= {"context_before": _TEXT, "context_after": _TEXT, "explain": reference("Explanation")}
    del found["Facet"]
    pages = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}}
    found["Facets"] = _object(dict.fromkeys(found["Facets"]["properties"], pages))
    return answer


def _related(found: dict[str, Schema]) -> Schema:
    related = _without(_object_of(RelatedPages, found), "pages")
    _add(related, results=_list_of("RelatedPage"), total=_COUNT)
    _add(found["RelatedPage"], url=_TEXT)
    return related


def _page_list(found: dict[str, Schema]) -> Schema:
    listing = _object_of(PageList, found)
    _add(found["ListedPage"], last_updated=_TEXT | {"type": ["string", "null"]}, content_length=_COUNT, url=_TEXT)
    return listing


def _page_view(found: dict[str, Schema]) -> Schema:
    view = _object(
        {
            **dict.fromkeys(("name", "path", "title", "content", "revision", "url"), _TEXT),
            **_object_of(PageLinks, found)["properties"],
        }
    )
    _add(
        view,
        frontmatter={"type": ["object", "null"]},
        last_commit=_or_null(_schema_of(Commit, found)),
        word_count=_COUNT,
        total_lines=_COUNT,
        sections={"type": "array", "items": _schema_of(OutlineEntry, found)},
    )
    _add(found["OutlineEntry"], name=_TEXT)
    part = dict.fromkeys(("section", "anchor", "content"), _TEXT)
    lines = {"section_path": {"type": "array", "items": _TEXT}, "start_line": _COUNT, "end_line": _COUNT, "word_count": _COUNT}
    found["PagePart"] = _object(part | lines)
    view["properties"] |= {"parts": _list_of("PagePart"), "degraded": _TEXT}
    return view


def _seen_page(found: dict[str, Schema]) -> Schema:
    page = _object_of(PageInspection, found)
    _add(page, url=_TEXT)
    _add(found["Neighbour"], url=_TEXT)
    return page


def _wiki_map(found: dict[str, Schema]) -> Schema:
    shown = _without(_object_of(WikiMap, found), "trouble")
    _add(shown, total=_COUNT)
    shown["properties"]["trouble"] = _TEXT
    _add(found["MapPoint"], url=_TEXT)
    for axis in ("x", "y"):
        found["MapPoint"]["properties"][axis] = {"type": "number", "minimum": 0, "maximum": 1}
    return shown


def _status(found: dict[str, Schema]) -> Schema:
    status = _without(_object_of(IndexStatus, found), "index")
    commit = {"type": ["string", "null"]}
    _add(status, indexed_commit=commit, head_commit=commit, pending_pages=_COUNT)
    status["properties"]["status"] = {"type": "string", "enum": ["ready", "indexing", "error"]}
    return status


def _rebuild(found: dict[str, Schema]) -> Schema:
    rebuild = _without(_object_of(RebuildStatus, found), "progress")
    _add(rebuild, **_object_of(Progress, found)["properties"])
    return rebuild


def _reindex_status(rebuild: Schema) -> Schema:
    status = _object(rebuild["properties"])
    earlier = {name: rebuild["properties"][theirs] for name, theirs in _EARLIER_NAMES.items()}
    _add(status, status={"enum": ["idle", "in_progress", "complete", "error"]}, **earlier)
    return status


def _answers_without_record() -> dict[str, Schema]:
    started = _object({"status": {"const": "started"}})
    started["properties"] |= {"estimate": reference("Estimate"), "pages": {"type": "array", "items": _TEXT}}
    error = _object({"error": _object({"code": _TEXT, "message": _TEXT})})
    names = {"type": "array", "items": _TEXT}
    error["properties"] |= {"pages": names, "sections": names}
    error["properties"] |= {"status": {"const": "unavailable"}, "problems": _list_of("Problem")}
    chroma: dict[str, Schema] = {
        "status": {"enum": ["ok", "error"]},
        "backend_type": {"const": "chroma"},
        "collection": {"type": ["string", "null"]},
        "document_count": _COUNT,
    }
    return {
        "Answers": _object({"answers": _list_of("Answer")}),
        "Started": started,
        "ChromaStatus": _object(chroma),
        "Error": error,
        "OpenApi": _object({"openapi": _TEXT, "info": {"type": "object"}, "paths": {"type": "object"}}),
    }


def _list_of(name: str) -> Schema:
    return {"type": "array", "items": reference(name)}


def _object(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties)}


def _object_of(kind: type, found: dict[str, Schema]) -> Schema:
    """Give the schema of a record as `asdict` shows it; those of records in it are put into `found`."""
    hints = get_type_hints(kind)
    return _object({name: _schema_of(hints[name], found) for name in _names(kind)})


def _schema_of(kind: Any, found: dict[str, Schema]) -> Schema:
    arguments = get_args(kind)
    if get_origin(kind) is types.UnionType:
        return _or_null(_schema_of(next(option for option in arguments if option is not types.NoneType), found))
    if get_origin(kind) is tuple:
        items = _schema_of(arguments[0], found)
        size = {} if arguments[-1] is Ellipsis else {"minItems": len(arguments), "maxItems": len(arguments)}
        return {"type": "array", "items": items, **size}
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, tuple)):
        if kind.__name__ not in found:
            found[kind.__name__] = _object_of(kind, found)
        return reference(kind.__name__)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"type": "string", "enum": [choice.value for choice in kind]}
    return {"type": _SIMPLE[kind]} if kind in _SIMPLE else {}


def _or_null(schema: Schema) -> Schema:
    return {"type": [schema["type"], "null"]} if list(schema) == ["type"] else {"anyOf": [schema, {"type": "null"}]}


def _names(kind: Any) -> list[str]:
    return [field.name for field in fields(kind)] if is_dataclass(kind) else list(get_type_hints(kind))


def _add(schema: Schema, **properties: Schema) -> None:
    schema["properties"] |= properties
    schema["required"] += properties


def _without(schema: Schema, *names: str) -> Schema:
    return _object({name: value for name, value in schema["properties"].items() if name not in names})


def _describe(record: str, schema: Schema) -> None:
    for name, value in schema["properties"].items():
        meaning = _MEANING.get(f"{record}.{name}", _MEANING.get(name))
        if meaning:
            schema["properties"][name] = value | {"description": meaning}
