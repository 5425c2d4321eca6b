"""Server-Sent Events (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from collections.abc import Iterable

from flask import Response

EVENTS_TYPE = "text/event-stream"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""No cache keeps events, and nginx passes each on at once."""


def event_stream(events: Iterable[bytes], status: int = 200) -> Response:
    """Return a response that sends events as they come."""
    return Response(events, status, _HEADERS, content_type=f"{EVENTS_TYPE}; charset=utf-8")
