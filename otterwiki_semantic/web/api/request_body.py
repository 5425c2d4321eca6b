"""Limits on the size of requests, checked first, and the parser of JSON bodies."""

from __future__ import annotations

from typing import Any

from flask import request
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from otterwiki_semantic.web.errors import ApiError

MAX_BODY_BYTES = 1 << 20
MAX_QUERY_STRING_BYTES = 1 << 16
"""Enough for every parameter at once; larger requests can be sent as a body. Few servers accept more."""


def check_size() -> None:
    """Limit the body of the current request, whatever length it claims. Errors: `ApiError` for a query string that is too long.

    Reading a body that claims to be larger raises `RequestEntityTooLarge`; a body of unknown length is truncated.
    """
    request.max_content_length = MAX_BODY_BYTES + 1
    size = len(request.query_string)
    if size > MAX_QUERY_STRING_BYTES:
        allowed = f"at most {MAX_QUERY_STRING_BYTES:,} are allowed; use POST for more"
        raise ApiError("uri_too_long", f"the query string has {size:,} bytes; {allowed}")


def json_object(example: str) -> dict[str, Any]:
    """Return the body of the current request, a JSON object of any content type; whole floats become integers.

    Errors: `ApiError`, with an example.
    """
    try:
        is_too_large = len(request.get_data()) > MAX_BODY_BYTES
    except RequestEntityTooLarge:
        is_too_large = True
    if is_too_large:
        raise ApiError("too_large", f"the body is too large; at most {MAX_BODY_BYTES:,} bytes are allowed")
    try:
        body = request.get_json(force=True)
    except (BadRequest, RecursionError) as error:
        raise ApiError("bad_request", f"the body is not JSON; send {example}") from error
    if not isinstance(body, dict):
        raise ApiError("bad_request", f"the body is not a JSON object; send {example}")
    return {name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in body.items()}
