"""Answers of the API in JSON. Errors are ``{"error": {"code", "message"}}`` or problem details, never a stack trace."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import quote
from uuid import uuid4

from flask import Blueprint, Response, request
from msgspec import Struct
from werkzeug.exceptions import HTTPException

from otterwiki_semantic.core.errors import NotFoundError, PageChangedError, SemanticError
from otterwiki_semantic.core.records import Problem
from otterwiki_semantic.core.serialization import encode
from otterwiki_semantic.core.telemetry import logfmt


class ErrorKind(NamedTuple):
    """The meaning of an error code, with an example of its message, and further fields of the example."""

    status: int
    meaning: str
    """When it occurs; the part before a semicolon is the title of its problem details."""
    example: str
    facts: Mapping[str, Any] = MappingProxyType({})


ERRORS: dict[str, ErrorKind] = {
    "bad_request": ErrorKind(400, "the body is not a JSON object", 'the body is not JSON; send {"queries": ["…"]}'),
    "unauthorized": ErrorKind(401, "neither a session with permission nor a key", "log in to the wiki, or send its API key"),
    "wrong_key": ErrorKind(401, "the key is wrong", "the API key is wrong"),
    "no_key_configured": ErrorKind(401, "a key was sent, but the wiki has none", "this wiki has no API key"),
    "forbidden": ErrorKind(403, "the account lacks the permission", "your account has no ADMIN permission in this wiki"),
    "csrf_failed": ErrorKind(
        403, "the CSRF token of the session is missing or wrong, or another site sent the request", "The CSRF token is missing."
    ),
    "writing_disabled": ErrorKind(
        403, "programs may not write", "programs may not write pages: the wiki's administrator can set SEMANTIC_ALLOW_WRITE"
    ),
    "not_found": ErrorKind(404, "there is no such route", "the search API has nothing at 'statu'"),
    "page_unknown": ErrorKind(
        404,
        "there is no such page; `pages` lists similar ones, if there are any",
        "the wiki has no page 'garden/irigation'",
        {"pages": ("garden/irrigation",)},
    ),
    "revision_unknown": ErrorKind(404, "git has no such commit", "there is no revision 'dbf15600'"),
    "job_unknown": ErrorKind(
        404, "there is no such job; the last 100 are kept until the index daemon ends", "there is no job '9f86d081'"
    ),
    "answers_disabled": ErrorKind(404, "no model writes answers", "nothing writes answers: set SEMANTIC_ANSWERS"),
    "finding_unknown": ErrorKind(
        404, "the report has no such finding; it may be a newer report", "the report has no finding '5b0c1f2f0a9d7e43'"
    ),
    "section_unknown": ErrorKind(
        404,
        "the page has no such section; `sections` lists its sections, nearest first",
        "the page 'garden/irrigation' has no section 'wintr'",
        {"sections": ("Winter", "Irrigation")},
    ),
    "method_not_allowed": ErrorKind(
        405, "the route does not support the method; the header Allow lists those it does", "/reindex supports POST, not GET"
    ),
    "reindex_running": ErrorKind(409, "a rebuild is running", "a rebuild has been running since 2026-11-21T09:30:00+00:00"),
    "no_rollback": ErrorKind(409, "there is no previous index", "there is no earlier index to return to"),
    "page_exists": ErrorKind(
        409, "the page exists already; send the revision that the text is based on", "there is a page 'garden' already"
    ),
    "page_changed": ErrorKind(
        409,
        "the page was changed since `revision`; `diff` has the changes, and `revision` the new one",
        "the page 'garden' was changed since 4b825dc6",
        {"revision": "9a3c2f10", "diff": "@@ -1 +1 @@\n-Plant in May.\n+Plant in June.\n"},
    ),
    "too_large": ErrorKind(413, "the body is too large", "the body is too large; at most 1,048,576 bytes are allowed"),
    "uri_too_long": ErrorKind(
        414, "the query string is too long", "the query string has 70,000 bytes; at most 65,536 are allowed"
    ),
    "section_ambiguous": ErrorKind(
        422,
        "several sections have the name; `sections` lists their full names",
        "the page 'countries' has 2 sections 'Capital'",
        {"sections": ("Chad > Capital", "Peru > Capital")},
    ),
    "invalid_parameter": ErrorKind(
        422,
        "a parameter is unknown, missing, too long, out of range or given twice; the message names it",
        "n is '0'; allowed are the whole numbers 1 to 50",
    ),
    "rate_limited": ErrorKind(
        429, "too many questions were asked, or are being answered; try again after Retry-After seconds", "ask again in 12 min"
    ),
    "internal_error": ErrorKind(
        500, "a bug; the wiki's log has the details", "the search plugin failed; the wiki's log says why"
    ),
    "index_unavailable": ErrorKind(
        503, "the index cannot answer now; try again after Retry-After seconds", "the index daemon did not answer within 15 s"
    ),
    "write_failed": ErrorKind(
        503, "git or the disk did not take the page", "the page's file differs from git; commit it first"
    ),
    "page_unreadable": ErrorKind(
        503,
        "parsing the page takes too long; the message names the limit",
        "the page log cannot be read: it took more than 10 s",
    ),
    "package_missing": ErrorKind(
        503,
        "a required package is not installed; the message has the command that installs it",
        "prometheus-client is not installed: pip install '/src/otterwiki-semantic[metrics]'",
    ),
    "disk_full": ErrorKind(
        507,
        "there is not enough disk space for a second index",
        "a rebuild needs about 310 MB in addition to the serving index, and 120 MB are free in /data; make room there",
    ),
}
"""Every error code of the API, in the order of its HTTP status."""

JSON_TYPE, PROBLEM_TYPE = "application/json", "application/problem+json"
_URN = "urn:otterwiki-semantic:error:"
_RETRY_AFTER_SECONDS = {429: "60", 503: "5"}
_MAX_CHARACTERS = 2_000
_CODE_OF_STATUS = {kind.status: code for code, kind in reversed(ERRORS.items())}

REQUEST_ID_HEADER = "X-Request-ID"
REQUEST_ID_PATTERN = "[A-Za-z0-9._:/@+=-]{1,128}"
_REQUEST_ID = re.compile(REQUEST_ID_PATTERN)

log = logging.getLogger(__name__)


def request_id() -> str:
    """Return the id of the current request, for the log: its header `X-Request-ID` if that is valid, otherwise a new one."""
    given = request.headers.get(REQUEST_ID_HEADER, "")
    is_valid = _REQUEST_ID.fullmatch(given)
    return str(request.environ.setdefault("otterwiki_semantic.request_id", given if is_valid else uuid4().hex))


def json_response(content: Any, status: int = 200) -> Response:
    """Return an answer with a record, or JSON as bytes."""
    return Response(content if isinstance(content, bytes) else encode(content), status, content_type=JSON_TYPE)


class ErrorFacts(Struct, frozen=True):
    """What went wrong."""

    code: str
    """For programs."""
    message: str
    """For people."""


class _Details(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What both forms of an error have."""

    request_id: str | None = None
    """As in the header `X-Request-ID`, and in the wiki's log if the server is at fault."""
    pages: tuple[str, ...] | None = None
    """The pages that may be meant."""
    sections: tuple[str, ...] | None = None
    """The sections that may be meant."""
    problems: tuple[Problem, ...] | None = None
    revision: str | None = None
    """The last commit that changed the page."""
    diff: str | None = None
    """What was changed since the revision that was sent, as a unified diff."""


class ErrorAnswer(_Details, frozen=True, omit_defaults=True):
    """The answer to a request that failed."""

    error: ErrorFacts
    status: Literal["unavailable"] | None = None
    """Only in answers about the status of the index."""


class ProblemDetails(_Details, frozen=True, omit_defaults=True):
    """An error in the form of RFC 9457, for clients that accept `application/problem+json`."""

    type: str
    """`urn:otterwiki-semantic:error:` and the code."""
    title: str
    """The meaning of the code; always the same."""
    status: int
    """The HTTP status."""
    detail: str
    """What went wrong, for people."""
    instance: str
    """The path that was requested."""
    code: str
    """For programs."""

    @classmethod
    def of(cls, answer: ErrorAnswer, path: str) -> ProblemDetails:
        """Return the details of an error of a request for a path."""
        code, kind = answer.error.code, ERRORS[answer.error.code]
        title = kind.meaning.partition(";")[0]
        shared = {name: getattr(answer, name) for name in _Details.__struct_fields__}
        title = title[0].upper() + title[1:]
        return cls(_URN + code, title, kind.status, answer.error.message, quote(path, errors="replace"), code, **shared)


class ApiError(SemanticError):
    """A rejected request, with a code of `ERRORS`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def handle_errors(blueprint: Blueprint) -> None:
    """Answer every error in a view of the blueprint with JSON."""
    blueprint.register_error_handler(SemanticError, _semantic_error)
    blueprint.register_error_handler(HTTPException, _http_error)
    blueprint.register_error_handler(Exception, _failure)


def _semantic_error(error: SemanticError) -> Response:
    facts: dict[str, Any] = {}
    if isinstance(error, NotFoundError) and error.nearest_field:
        facts = {error.nearest_field: error.nearest}
    elif isinstance(error, PageChangedError):
        facts = {"revision": error.revision, "diff": error.diff}
    if ERRORS[error.code].status >= 500:
        log.warning("%s; %s", error, _logged(error.code))
    return error_answer(error.code, str(error), **facts)


def _logged(code: str) -> str:
    return logfmt("request_error", code=code, request_id=request_id(), method=request.method, path=request.path)


def error_answer(code: str, message: str, **facts: Any) -> Response:
    """Return an error answer, with further fields of `ErrorAnswer`; as problem details if the client prefers them."""
    shown = message if len(message) <= _MAX_CHARACTERS else f"{message[: _MAX_CHARACTERS - 1]}…"
    answer = error_facts(code, shown, request_id=request_id(), **facts)
    if _prefers_problem_details():
        details = ProblemDetails.of(answer, request.script_root + request.path)
        response = Response(encode(details), details.status, content_type=PROBLEM_TYPE)
    else:
        response = Response(encode(answer), ERRORS[code].status, content_type=JSON_TYPE)
    response.vary.add("Accept")
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if response.status_code in _RETRY_AFTER_SECONDS:
        response.headers["Retry-After"] = _RETRY_AFTER_SECONDS[response.status_code]
    return response


def error_facts(code: str, message: str, **facts: Any) -> ErrorAnswer:
    """Return an error as a record."""
    return ErrorAnswer(ErrorFacts(code, message), **facts)


def _prefers_problem_details() -> bool:
    """Whether the client names problem details, and prefers them to plain JSON or has no preference."""
    accepted = request.accept_mimetypes
    is_named = any(name.partition(";")[0].strip().lower() == PROBLEM_TYPE for name in accepted.values())
    return is_named and accepted[PROBLEM_TYPE] > 0 and accepted[PROBLEM_TYPE] >= accepted[JSON_TYPE]


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    code = _CODE_OF_STATUS.get(status, "bad_request" if status < 500 else "internal_error")
    response = error_answer(code, error.description or error.name)
    response.headers.extend((name, value) for name, value in error.get_headers() if name == "Allow")
    return response


def _failure(error: Exception) -> Response:
    log.error("a request of the search API failed; %s", _logged("internal_error"), exc_info=error)
    return error_answer("internal_error", "the search plugin failed; the wiki's log says why")
