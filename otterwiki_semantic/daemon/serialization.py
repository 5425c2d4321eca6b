"""The state of the index as JSON."""

from __future__ import annotations

from typing import Any

from otterwiki_semantic.core.records import IndexStatus, RebuildState, RebuildStatus
from otterwiki_semantic.core.serialization import to_builtins

_STATES_OF_EARLIER_PLUGIN = {
    RebuildState.IDLE: "idle",
    RebuildState.RUNNING: "in_progress",
    RebuildState.DONE: "complete",
    RebuildState.FAILED: "error",
}


def status_json(status: IndexStatus) -> dict[str, Any]:
    """Return the state of the index."""
    body = to_builtins(status)
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
    """Return the state of the last rebuild."""
    progress = to_builtins(status.progress)
    seconds_left = progress.pop("seconds_left")
    return {
        "state": status.state,
        **progress,
        "started": status.started,
        "finished": status.finished,
        "error": status.error,
        "hint": status.hint,
        "cure": status.cure,
        "seconds_left": seconds_left if status.state is RebuildState.RUNNING else None,
        "estimate": to_builtins(status.estimate),
        "recall": to_builtins(status.recall),
        "copies": status.copies,
    }


def reindex_status_json(status: RebuildStatus) -> dict[str, Any]:
    """Return the state of the last rebuild, also by the names of the earlier plugin."""
    earlier = {
        "status": _STATES_OF_EARLIER_PLUGIN[status.state],
        "started_at": status.started,
        "completed_at": status.finished,
        "pages_indexed": status.progress.pages_done,
        "chunks_created": status.progress.chunks_done,
        "error_message": status.error,
    }
    return rebuild_json(status) | earlier
