"""Answers and statuses as JSON shows them, the same for the API and the command line. Fields are only ever added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from otterwiki_semantic.records import Answer, Hit, IndexStatus, RebuildState, RebuildStatus

UNDER_WAY = "the index is being built; results are incomplete until it is done"


def answer_json(answer: Answer, page_url: Callable[[Hit], str] | None = None) -> dict[str, Any]:
    """Give an answer; with `page_url` each result gets the `url` it makes."""
    results = []
    for hit in answer.hits:
        result = asdict(hit) | {"distance": round(hit.distance, 6), "similarity": round(1 - hit.distance, 6)}
        results.append(result | {"url": page_url(hit)} if page_url else result)
    body = {"query": answer.query, "results": results, "total": len(results), "index": asdict(answer.index)}
    is_first_build = answer.index.commit is None and answer.index.head is not None
    return body | {"message": UNDER_WAY} if is_first_build else body


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
        "seconds_left": seconds_left if status.state is RebuildState.RUNNING else None,
    }
