"""The id of a request, by which its answer and lines of the log are found."""

from __future__ import annotations

import re
from uuid import uuid4

from flask import request

HEADER = "X-Request-ID"
PATTERN = "[A-Za-z0-9._:/@+=-]{1,128}"
_VALID = re.compile(PATTERN)
_KEY = "otterwiki_semantic.request_id"


def request_id() -> str:
    """Return the id of the current request: that of its header `X-Request-ID` if it is valid, else a new one."""
    if _KEY not in request.environ:
        given = request.headers.get(HEADER, "")
        request.environ[_KEY] = given if _VALID.fullmatch(given) else uuid4().hex
    found: str = request.environ[_KEY]
    return found
