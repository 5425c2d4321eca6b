"""Errors of the API: always JSON, ``{"error": {"code", "message"}}``, never a stack trace."""

from __future__ import annotations

import logging

from flask import Blueprint, Response, jsonify
from werkzeug.exceptions import HTTPException

from otterwiki_semantic.errors import PageUnknownError, ParameterError, RebuildRunningError, SemanticError

_RETRY_AFTER_SECONDS = "5"
_CODES = {400: "bad_request", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type"}

log = logging.getLogger(__name__)


class ApiError(Exception):
    """An answer other than the one asked for: its HTTP status, a code for programs and a message for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def handle_errors(blueprint: Blueprint) -> None:
    """Make every error of a blueprint's views an answer in JSON."""
    blueprint.register_error_handler(ApiError, lambda error: _answer(error.status, error.code, error.message))
    blueprint.register_error_handler(ParameterError, lambda error: _answer(422, "invalid_parameter", str(error)))
    blueprint.register_error_handler(PageUnknownError, lambda error: _answer(404, "page_unknown", str(error)))
    blueprint.register_error_handler(RebuildRunningError, lambda error: _answer(409, "reindex_running", str(error)))
    blueprint.register_error_handler(SemanticError, _unavailable)
    blueprint.register_error_handler(HTTPException, _http_error)
    blueprint.register_error_handler(Exception, _failure)


def _answer(status: int, code: str, message: str) -> Response:
    response = jsonify({"error": {"code": code, "message": message}})
    response.status_code = status
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _unavailable(error: SemanticError) -> Response:
    response = _answer(503, "index_unavailable", str(error))
    response.headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return response


def _http_error(error: HTTPException) -> Response:
    status = error.code or 500
    response = _answer(status, _CODES.get(status, "error"), error.description or error.name)
    response.headers.extend((name, value) for name, value in error.get_headers() if name == "Allow")
    return response


def _failure(error: Exception) -> Response:
    log.error("a request of the search API failed", exc_info=error)
    return _answer(500, "internal_error", "the search plugin failed; the wiki's log says why")
