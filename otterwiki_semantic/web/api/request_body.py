"""How large a request may be; every route refuses a larger one before it does anything else with it."""

from __future__ import annotations

from typing import Any

from flask import request
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from otterwiki_semantic.web.errors import ApiError

MAX_BODY_BYTES = 1 << 20
MAX_QUERY_STRING_BYTES = 1 << 16
"""Room for every parameter at once; what does not fit here can be sent as a body. Few servers take more."""


def check_size() -> None:
    """Bound the request at hand: no more of its body is read than shows that it is too large, whatever length it claims.

    Errors: `ApiError` for a query string that is too long. What reads a body that claims to be larger raises
    `RequestEntityTooLarge`; one that does not say its length is cut off there.
    """
    request.max_content_length = MAX_BODY_BYTES + 1
    size = len(request.query_string)
    if size > MAX_QUERY_STRING_BYTES:
        allowed = f"allowed are {MAX_QUERY_STRING_BYTES:,}; POST takes more"
        raise ApiError("uri_too_long", f"the query string has {size:,} bytes; {allowed}")


def json_object(example: str) -> dict[str, Any]:
    """Give the body of the request at hand, a JSON object of any content type; `ApiError`, with an example, for anything else.

    JSON has one kind of number: a field of 5.0 is 5.
    """
    try:
        is_too_large = len(request.get_data()) > MAX_BODY_BYTES
    except RequestEntityTooLarge:
        is_too_large = True
    if is_too_large:
        raise ApiError("too_large", f"the body is too large; allowed are {MAX_BODY_BYTES:,} bytes")
    try:
        body = request.get_json(force=True)
    except (BadRequest, RecursionError) as error:
        raise ApiError("bad_request", f"the body is not JSON; send {example}") from error
    if not isinstance(body, dict):
        raise ApiError("bad_request", f"the body is not a JSON object; send {example}")
    return {name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in body.items()}
