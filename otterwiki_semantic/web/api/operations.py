"""Operations of the API: each is defined once, at its view; routes, checks and the OpenAPI document follow from that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal

from flask import Response, request

from otterwiki_semantic.core.parameters import parameters_of, parse_parameters
from otterwiki_semantic.core.serialization import encode
from otterwiki_semantic.web.api.request_body import json_object
from otterwiki_semantic.web.auth import require_admin, require_monitor, require_read

View = Callable[..., Any]
_OPERATIONS = "_operations"


class Access(Enum):
    """Who may call an operation."""

    ANYONE = "anyone"
    READERS = "readers"
    """A program with the key, and accounts with the wiki's READ permission."""
    ADMINISTRATORS = "administrators"
    """A program with the key, and accounts with the wiki's ADMIN permission."""
    MONITORS = "monitors"
    """Administrators, and programs on the machine that the wiki runs on."""


@dataclass(frozen=True, slots=True)
class Operation:
    """An HTTP method of a path."""

    method: Literal["GET", "POST"]
    path: str
    """Below ``/api/v1``; ``{path}`` is a page's path."""
    name: str
    summary: str
    answer: str
    """The name of the answer's schema."""
    access: Access
    takes: type | None
    """The record of its parameters."""
    body: Literal["required", "optional"] | None
    """Whether the parameters are sent as a JSON object."""
    in_query: tuple[str, ...]
    """The parameters of an operation with a body that may stand in the query string instead."""
    errors: tuple[str, ...]
    """Error codes, in addition to those that follow from `access` and `takes`."""
    status: int

    @property
    def rule(self) -> str:
        """The path as Flask routes it."""
        return self.path.replace("{path}", "<page_path:path>")


def operation(
    method: Literal["GET", "POST"],
    path: str,
    name: str,
    summary: str,
    answer: str,
    access: Access,
    *,
    alias: str | None = None,
    takes: type | None = None,
    body: Literal["required", "optional"] | None = None,
    in_query: Sequence[str] = (),
    errors: Sequence[str] = (),
    status: int = 200,
) -> Callable[[View], View]:
    """Return a decorator for the view of an operation.

    The view receives the path of the page and the record of parameters, if it has them; it returns a record, JSON as bytes, or
    a response. `alias` is a second path.
    """
    made = Operation(method, path, name, summary, answer, access, takes, body, tuple(in_query), tuple(errors), status)

    def decorate(view: View) -> View:
        others = [replace(made, path=alias, name=f"{name}Too")] if alias else []
        setattr(view, _OPERATIONS, (made, *others))
        return view

    return decorate


def operations_of(api: type) -> list[tuple[Operation, str]]:
    """Return the operations of a class, with the names of the methods that answer them, in order."""
    return [(made, name) for name, view in vars(api).items() for made in getattr(view, _OPERATIONS, ())]


def answer(made: Operation, view: View, api_key: str | None, path_values: dict[str, str]) -> Response:
    """Answer the current request: check permissions, parse parameters, call the view."""
    _CHECKS[made.access](api_key)
    parameters = () if made.takes is None else (parse_parameters(made.takes, _values(made)),)
    found = view(*path_values.values(), *parameters)
    if isinstance(found, Response):
        return found
    return json_response(found, made.status)


def json_response(content: Any, status: int = 200) -> Response:
    """Return an answer with a record, or with JSON as bytes."""
    return Response(content if isinstance(content, bytes) else encode(content), status, content_type="application/json")


_CHECKS: dict[Access, Callable[[str | None], None]] = {
    Access.ANYONE: lambda _: None,
    Access.READERS: require_read,
    Access.ADMINISTRATORS: require_admin,
    Access.MONITORS: require_monitor,
}


def _values(made: Operation) -> dict[str, Any]:
    """Return the parameters of the query string, overridden by those of the body."""
    assert made.takes is not None
    lists = [each.name for each in parameters_of(made.takes) if each.type.is_list]
    if made.body is None:
        return request.args.to_dict() | {name: request.args.getlist(name) for name in lists}
    in_query = {name: request.args[name] for name in made.in_query if name in request.args}
    body = json_object('{"queries": ["…"]}' if made.body == "required" else '{"full": true}') if _has_body(made) else {}
    return in_query | {name: value for name, value in body.items() if value is not None}


def _has_body(made: Operation) -> bool:
    if made.body == "required":
        return True
    return request.get_data().lstrip().startswith(b"{") or (request.is_json and bool(request.get_data()))
