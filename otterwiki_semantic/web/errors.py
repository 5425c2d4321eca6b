"""Errors of the API: always JSON, ``{"error": {"code", "message"}}``, never a stack trace."""

from __future__ import annotations

import logging
from typing import Any, Literal

from flask import Blueprint, Response
from msgspec import Struct
from werkzeug.exceptions import HTTPException

from otterwiki_semantic.core.errors import NotFoundError, SemanticError
from otterwiki_semantic.core.records import Problem
from otterwiki_semantic.core.serialization import encode

ERRORS: dict[str, tuple[int, str]] = {
    "bad_request": (400, "the body is not a JSON object"),
    "unauthorized": (401, "neither a session with permission nor a key"),
    "wrong_key": (401, "the key is wrong"),
    "no_key_configured": (401, "a key was sent, but the wiki has none"),
    "forbidden": (403, "the account lacks the permission"),
    "csrf_failed": (403, "the CSRF token of the session is missing or wrong"),
    "not_found": (404, "there is no such route"),
    "page_unknown": (404, "there is no such page; `pages` lists similar ones, if there are any"),
    "revision_unknown": (404, "git has no such commit"),
    "job_unknown": (404, "there is no such job, or no longer: the last 100 are kept until the index daemon ends"),
    "finding_unknown": (404, "the report has no such finding, or no longer"),
    "section_unknown": (404, "the page has no such section; `sections` lists its sections, nearest first"),
    "method_not_allowed": (405, "the route does not support the method; the header Allow lists those it does"),
    "reindex_running": (409, "a rebuild is running"),
    "no_rollback": (409, "there is no earlier index"),
    "too_large": (413, "the body is too large"),
    "uri_too_long": (414, "the query string is too long"),
    "section_ambiguous": (422, "several sections have the name; `sections` lists their full names"),
    "invalid_parameter": (
        422,
        "a parameter is unknown, missing, too long, out of range or given twice; the message names it",
    ),
    "internal_error": (500, "a bug; the wiki's log has the details"),
    "index_unavailable": (503, "the index cannot answer now; try again after Retry-After seconds"),
    "page_unreadable": (503, "the page takes longer to parse than a page may; the message names the limit"),
    "package_missing": (503, "a required package is not installed; the message says how to install it"),
    "disk_full": (507, "there is not enough disk space for a second index"),
}
"""Every error code of the API: its HTTP status, and what it means."""

_RETRY_AFTER_SECONDS = "5"
_MAX_CHARACTERS = 2_000
_CODE_OF_STATUS = {status: code for code, (status, _) in reversed(ERRORS.items())}

log = logging.getLogger(__name__)


class ErrorFacts(Struct, frozen=True):
    """What went wrong."""

    code: str
    """For programs."""
    message: str
    """For people."""


class ErrorAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer to a request that failed."""

    error: ErrorFacts
    pages: tuple[str, ...] | None = None
    """The pages that may be meant."""
    sections: tuple[str, ...] | None = None
    """The sections that may be meant."""
    status: Literal["unavailable"] | None = None
    """Only in answers about the status of the index."""
    problems: tuple[Problem, ...] | None = None


class ApiError(SemanticError):
    """A request that is refused, with a code of `ERRORS`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def handle_errors(blueprint: Blueprint) -> None:
    """Answer every error in a view of the blueprint with JSON."""
    blueprint.register_error_handler(NotFoundError, _not_found)
    blueprint.register_error_handler(SemanticError, lambda error: error_answer(error.code, str(error)))
    blueprint.register_error_handler(HTTPException, _http_error)
    blueprint.register_error_handler(Exception, _failure)


def _not_found(error: NotFoundError) -> Response:
    nearest = {error.nearest_field: error.nearest} if error.nearest_field else {}
    return error_answer(error.code, str(error), **nearest)


def error_answer(code: str, message: str, **facts: Any) -> Response:
    """Return an error answer, with further fields of `ErrorAnswer`."""
    shown = message if len(message) <= _MAX_CHARACTERS else f"{message[: _MAX_CHARACTERS - 1]}…"
    answer = encode(ErrorAnswer(ErrorFacts(code, shown), **facts))
    response = Response(answer, ERRORS[code][0], content_type="application/json")
    if response.status_code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if response.status_code == 503:
        response.headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return response


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    response = error_answer(
        _CODE_OF_STATUS.get(status, "bad_request" if status < 500 else "internal_error"), error.description or error.name
    )
    response.headers.extend((name, value) for name, value in error.get_headers() if name == "Allow")
    return response


def _failure(error: Exception) -> Response:
    log.error("a request of the search API failed", exc_info=error)
    return error_answer("internal_error", "the search plugin failed; the wiki's log says why")
