"""Operations of the API: each is defined once, at its view; routes, checks and the OpenAPI document follow from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache, partial
from inspect import getdoc
from typing import Any, Literal, get_type_hints

from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from otterwiki_semantic import __version__
from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import (
    Parameter,
    Request,
    check_names,
    parameters_of,
    parse_parameters,
    unique_names,
)
from otterwiki_semantic.daemon import Unchanged, conditional
from otterwiki_semantic.web.auth import require_monitor, require_read, require_same_site, require_session, require_write
from otterwiki_semantic.web.errors import ApiError, json_response
from otterwiki_semantic.web.pages.layout import page_urls

MAX_BODY_BYTES = 1 << 20
MAX_QUERY_STRING_BYTES = 1 << 16
"""Enough for every parameter at once; larger requests can be sent as a body. Few servers accept more."""
IGNORED_PARAMETERS = ("_", "csrf_token", "edit", "next", "raw", "revision", "view")
"""Of the wiki itself, and of scripts that bypass caches: every operation ignores them unless it defines them."""
View = Callable[..., Any]
_DEGRADED = b',"degraded":'
"""Part of the JSON of an incomplete answer, which may be complete the next time; quotes in texts are escaped."""


class Access(Enum):
    """The callers of an operation: programs with the key, and accounts with the wiki's permission."""

    ANYONE = "anyone"
    READERS = "readers"
    WRITERS = "writers"
    ADMINISTRATORS = "administrators"
    MONITORS = "monitors"
    """Administrators, and programs on the machine that the wiki runs on."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An HTTP method of a path; decorates the view that answers it.

    The view receives the path of the page and the record of parameters, if it has them; it returns a record, JSON as bytes,
    or a response. Its docstring is the operation's summary.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    """Below ``/api/v1``; ``{path}`` is a page's path."""
    answer: type
    """The record of its answer; `str` for plain text."""
    access: Access
    alias: str | None = None
    """A second path."""
    variants: tuple[type, ...] = ()
    """The records of alternative answers, chosen by parameters."""
    body: Literal["required", "optional"] | None = None
    """Whether the parameters are sent as a JSON object."""
    in_query: tuple[str, ...] = ()
    """The parameters of an operation with a body that are also accepted in the query string."""
    example: str = ""
    """An example of a body, for error messages."""
    examples: Mapping[str, Any] | None = field(default=None, hash=False)
    body_examples: Mapping[str, Any] | None = field(default=None, hash=False)
    """Examples of answers and of bodies, by name."""
    errors: tuple[str, ...] = ()
    """Error codes, in addition to those of `access` and of the parameters."""
    status: int = 200
    is_cacheable: bool = False
    """Whether the answer depends on the index alone, so that clients may cache it until the index changes."""
    adjust: Callable[[dict[str, Any]], None] | None = field(default=None, hash=False)
    """Changes the parameters as sent, before they are checked."""
    has_events: bool = False
    """Whether `stream` requests Server-Sent Events."""
    takes: type[Request] | None = None
    """The record of parameters: the type of the view's parameter `asked`."""
    name: str = ""
    """The name of the function in generated clients (OpenAPI's `operationId`), equal to the view's: a verb first."""
    summary: str = ""

    @property
    def refuses_other_sites(self) -> bool:
        """Whether to reject requests from other sites, because the operation is slow, and needs no token of a session."""
        return self.method == "POST" and self.access is Access.READERS

    @property
    def rule(self) -> str:
        return self.path.replace("{path}", "<page_path:path>")

    def __call__(self, view: View) -> View:
        first, *others = view.__name__.split("_")
        name = first + "".join(map(str.title, others))
        summary = (getdoc(view) or "").partition("\n")[0].removesuffix(".")
        made = replace(self, takes=get_type_hints(view).get("asked"), name=name, summary=summary)
        OPERATIONS.append((made, view))
        if self.alias:
            OPERATIONS.append((replace(made, path=self.alias, name=f"{name}AtAlias"), view))
        return view


OPERATIONS: list[tuple[Operation, View]] = []
"""All operations with their views, in order."""


def answer(made: Operation, view: View, path_values: dict[str, str]) -> Response:
    """Answer the current request: check permissions, parse parameters, call the view.

    The view's first call of the index also requests its version, from before the call. If the client has the answer of this
    version, the status is 304 without a body.
    """
    if made.access is not Access.ANYONE:
        _CHECKS[made.access]()
    if made.refuses_other_sites:
        require_same_site()
    values = _values(made)
    if made.adjust is not None:
        made.adjust(values)
    parameters = () if made.takes is None else (parse_parameters(made.takes, values),)
    if not made.is_cacheable:
        return _response(made, view(*path_values.values(), *parameters))
    suffix = f"-{_request_digest()}"
    tags = request.if_none_match.as_set(include_weak=True)
    with conditional(tag.removesuffix(suffix) for tag in tags if tag.endswith(suffix)) as condition:
        try:
            response = _response(made, view(*path_values.values(), *parameters))
        except Unchanged:
            response = Response(status=304)
    if condition.version is None or _DEGRADED in response.get_data():
        return response
    response.set_etag(f"{condition.version}{suffix}", weak=True)
    response.headers["Cache-Control"] = "private, no-cache"  # clients may store it, but must ask before they use it again
    response.vary.update(("Authorization", "Cookie"))
    return response


def _response(made: Operation, found: Any) -> Response:
    return found if isinstance(found, Response) else json_response(found, made.status)


def _request_digest() -> str:
    """Return a digest of everything that the answer to the current request depends on, besides the index."""
    today = datetime.now(UTC).date()  # `recency` counts the time since a change
    asked = f"{__version__}\n{today}\n{request.script_root}{request.full_path}\n{page_urls()}"
    return hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()[:16]


_CHECKS: dict[Access, Callable[[], None]] = {
    Access.READERS: require_read,
    Access.WRITERS: require_write,
    Access.ADMINISTRATORS: partial(require_session, "ADMIN"),
    Access.MONITORS: require_monitor,
}


def check_size() -> None:
    """Limit the body of the current request, whatever its stated length. Raises `ApiError` if the query string is too long.

    Reading a body with a larger stated length raises `RequestEntityTooLarge`; a body of unknown length is truncated.
    """
    request.max_content_length = MAX_BODY_BYTES + 1
    size = len(request.query_string)
    if size > MAX_QUERY_STRING_BYTES:
        allowed = f"at most {MAX_QUERY_STRING_BYTES:,} are allowed; use POST for more"
        raise ApiError("uri_too_long", f"the query string has {size:,} bytes; {allowed}")


def _values(made: Operation) -> dict[str, Any]:
    """Return the parameters of the query string, overridden by those of the body."""
    body = _json_object(made.example) if _has_body(made) else None
    known = _in_query_string(made)
    given = dict((request.values if body is None else request.args).lists())  # `values` includes the fields of a form
    given = {name: values for name, values in given.items() if name in known or name not in IGNORED_PARAMETERS}
    check_names(given, known, " in the query string" if made.body else "")
    for name, values in given.items():
        if len(values) > 1 and not known[name].repeats:
            raise ParameterError(f"{name} is given {len(values)} times; allowed is once")
    in_query = {name: values if known[name].repeats else values[0] for name, values in given.items()}
    return in_query | {name: value for name, value in (body or {}).items() if value is not None or name not in in_query}


@cache
def _in_query_string(made: Operation) -> Mapping[str, Parameter]:
    known = {each.name: each for each in (parameters_of(made.takes) if made.takes else ())}
    return known if made.body is None else {name: known[name] for name in made.in_query}


def _has_body(made: Operation) -> bool:
    if made.body != "optional":
        return made.body == "required"
    data = request.get_data().strip()
    return data.startswith(b"{") or bool(data and not request.form)


def _json_object(example: str) -> dict[str, Any]:
    """Return the body of the current request, a JSON object of any content type."""
    try:
        is_too_large = len(request.get_data()) > MAX_BODY_BYTES
    except RequestEntityTooLarge:
        is_too_large = True
    if is_too_large:
        raise ApiError("too_large", f"the body is too large; at most {MAX_BODY_BYTES:,} bytes are allowed")
    try:
        body = json.loads(request.get_data(), object_pairs_hook=unique_names)
    except (ValueError, RecursionError) as error:
        raise ApiError("bad_request", f"the body is not JSON; send {example}") from error
    if not isinstance(body, dict):
        raise ApiError("bad_request", f"the body is not a JSON object; send {example}")
    return body
