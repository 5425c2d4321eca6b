"""Answers and statuses as JSON shows them, the same for the API and the command line. Fields are only ever added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from otterwiki_semantic.core.errors import (
    AmbiguousSectionError,
    NotFoundError,
    PageNotFoundError,
    RevisionNotFoundError,
    SectionNotFoundError,
)
from otterwiki_semantic.core.records import (
    Answer,
    Facets,
    Freshness,
    Hit,
    IndexStatus,
    Insight,
    PageInspection,
    PageList,
    RebuildState,
    RebuildStatus,
    RelatedPages,
    WikiMap,
    shallow_dict,
)

PageUrl = Callable[[str, str], str]
"""Makes the address of a page of its path and an anchor (which may be empty)."""
NOT_FOUND: dict[type[NotFoundError], tuple[str, str]] = {
    PageNotFoundError: ("page_unknown", "pages"),
    RevisionNotFoundError: ("revision_unknown", ""),
    SectionNotFoundError: ("section_unknown", "sections"),
    AmbiguousSectionError: ("section_ambiguous", "sections"),
}
"""What is told of something that is not there: the error's code, and the field that has the nearest names."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus's text format."""
_UP = """\
# HELP otterwiki_semantic_up Whether the index answers.
# TYPE otterwiki_semantic_up gauge
otterwiki_semantic_up"""
_EARLIER_STATES = {
    RebuildState.IDLE: "idle",
    RebuildState.RUNNING: "in_progress",
    RebuildState.DONE: "complete",
    RebuildState.FAILED: "error",
}
"""What the earlier plugin called the states of a rebuild."""
UNDER_WAY = "the index is being built; results are incomplete until it is done"


def answer_json(answer: Answer, page_url: PageUrl | None = None) -> dict[str, Any]:
    """Give an answer; with `page_url` each result gets the `url` it makes of a path and an anchor."""
    results = [_hit_json(hit, page_url) for hit in answer.hits]
    body = {
        "query": answer.query,
        "results": results,
        "total": len(results),
        "confident": answer.confident,
        "index": _index_json(answer.index),
    }
    is_first_build = answer.index.commit is None and answer.index.head is not None
    return {
        **body,
        **({"message": UNDER_WAY} if is_first_build else {}),
        **({"degraded": answer.degraded} if answer.degraded else {}),
        **({"reranker": answer.reranker} if answer.reranker else {}),
        **({"facets": _facets_json(answer.facets)} if answer.facets else {}),
    }


def _hit_json(hit: Hit, page_url: PageUrl | None) -> dict[str, Any]:
    result = shallow_dict(hit)
    similarity = None if hit.distance is None else round(1 - hit.distance, 6)
    result |= {"distance": _rounded(hit.distance), "similarity": similarity, "score": _rounded(hit.score)}
    for optional in ("context_before", "context_after", "explain"):
        if result[optional] is None:
            del result[optional]
    if hit.explain is not None:
        result["explain"] = _all_rounded(asdict(hit.explain))
    return result | {"url": page_url(hit.path, hit.anchor)} if page_url else result


def _facets_json(facets: Facets) -> dict[str, dict[str, int]]:
    return {name: {facet["value"]: facet["count"] for facet in values} for name, values in asdict(facets).items()}


def related_json(related: RelatedPages, page_url: PageUrl | None = None) -> dict[str, Any]:
    """Give the pages near to one; with `page_url` each gets the `url` it makes."""
    pages = [_all_rounded(asdict(page)) | ({"url": page_url(page.path, "")} if page_url else {}) for page in related.pages]
    return {"path": related.path, "results": pages, "total": len(pages), "index": _index_json(related.index)}


def page_list_json(found: PageList, page_url: PageUrl | None = None) -> dict[str, Any]:
    """Give a list of pages; with `page_url` each gets the `url` it makes."""
    pages = [
        {
            **shallow_dict(page),
            "last_updated": page.updated[:10] if page.updated else None,
            "content_length": page.word_count,
            **({"url": page_url(page.path, "")} if page_url else {}),
        }
        for page in found.pages
    ]
    return {"pages": pages, "total": found.total, "index": _index_json(found.index)}


def insight_json(insight: Insight) -> dict[str, Any]:
    """Give how the index works."""
    return asdict(insight)


def seen_page_json(page: PageInspection, page_url: PageUrl | None = None) -> dict[str, Any]:
    """Give a page as search sees it; with `page_url` it and each neighbour get the `url` it makes."""
    body = asdict(page) | {"index": _index_json(page.index)}
    if page_url is not None:
        body["url"] = page_url(page.path, "")
        for neighbour in (neighbour for chunk in body["chunks"] for neighbour in chunk["neighbours"]):
            neighbour["url"] = page_url(neighbour["path"], neighbour["anchor"])
    return body


def map_json(found: WikiMap, path_url: Callable[[str], str]) -> dict[str, Any]:
    """Give the map; each page gets the `url` that is made of its path."""
    points = [point._asdict() | {"url": path_url(point.path)} for point in found.points]
    body = {"state": found.state, "made": found.made, "points": points, "total": len(points)}
    return body | ({"trouble": found.trouble} if found.trouble else {}) | {"index": _index_json(found.index)}


def metrics_text(figures: str | None) -> str:
    """Give figures for Prometheus, with whether there are any because the index process answers."""
    return f"{_UP} {int(figures is not None)}\n{figures or ''}"


def _index_json(index: Freshness) -> dict[str, Any]:
    body = shallow_dict(index)
    if index.error is None:
        del body["error"]
    return body


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _all_rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _all_rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_all_rounded(part) for part in value]
    return _rounded(value) if isinstance(value, float) else value


def status_json(status: IndexStatus) -> dict[str, Any]:
    """Give the state of the index."""
    body = asdict(status)
    index = body.pop("index")
    return {
        "status": body.pop("status"),
        "indexed_commit": index["commit"],
        "head_commit": index["head"],
        "pending_pages": index["pending_pages"],
        **body,
        "rebuild": rebuild_json(status.rebuild),
    }


def started_json(status: RebuildStatus) -> dict[str, Any]:
    """Tell that a rebuild has begun, and what it will take."""
    return {"status": "started", "estimate": rebuild_json(status)["estimate"]}


def refreshed_json(paths: Sequence[str]) -> dict[str, Any]:
    """Tell which pages are read again."""
    return {"status": "started", "pages": list(paths)}


def rebuild_json(status: RebuildStatus) -> dict[str, Any]:
    """Give the state of the last rebuild."""
    progress = asdict(status.progress)
    seconds_left = progress.pop("seconds_left")
    return {
        "state": status.state,
        **progress,
        "started": status.started,
        "finished": status.finished,
        "error": status.error,
        "cure": status.cure,
        "seconds_left": seconds_left if status.state is RebuildState.RUNNING else None,
        "estimate": asdict(status.estimate) if status.estimate else None,
        "recall": asdict(status.recall) if status.recall else None,
        "copies": status.copies,
    }


def reindex_status_json(status: RebuildStatus) -> dict[str, Any]:
    """Give the state of the last rebuild, by the names that the earlier plugin had for it, too."""
    earlier = {
        "status": _EARLIER_STATES[status.state],
        "started_at": status.started,
        "completed_at": status.finished,
        "pages_indexed": status.progress.pages_done,
        "chunks_created": status.progress.chunks_done,
        "error_message": status.error,
    }
    return rebuild_json(status) | earlier
