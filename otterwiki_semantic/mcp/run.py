"""Run the server on standard input and output, or over HTTP."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError
from starlette.types import ASGIApp

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.mcp.backend import WikiBackend
from otterwiki_semantic.mcp.http_auth import PATH, BearerToken, HttpAccess
from otterwiki_semantic.mcp.oauth import authorized_app
from otterwiki_semantic.mcp.server import make_server


def serve(wiki: WikiBackend, access: HttpAccess | None, **offered: Any) -> None:
    """Serve a wiki until the input ends or the process is stopped; over HTTP if `access` is given.

    `offered` is passed to `make_server`. Raises `ConfigError` if the address cannot be bound.
    """
    # URLs in validation errors are of no use to an agent.
    os.environ.setdefault("PYDANTIC_ERRORS_INCLUDE_URL", "0")
    # Before the SDK configures logging: plain lines on standard error, without the content of requests.
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    server = make_server(wiki, has_connectors=access is not None, **offered)
    if access is None:
        # The thread that reads the input cannot be interrupted, so Ctrl-C kills the process.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        anyio.run(serve_stdio, server)
    else:
        anyio.run(_serve_http, server, access)


async def _serve_http(server: MCPServer[None], access: HttpAccess) -> None:
    listener = _listen(access)
    port = listener.getsockname()[1]
    sys.stderr.write(f"serving on http://{access.url_host}:{port}{PATH}\n")
    if access.oauth:
        sys.stderr.write(f"remote clients connect to {access.oauth.resource}\n")
    sys.stderr.flush()
    config = uvicorn.Config(http_app(server, access), log_config=None, access_log=False, timeout_graceful_shutdown=2)
    await uvicorn.Server(config).serve(sockets=[listener])


def http_app(server: MCPServer[None], access: HttpAccess) -> ASGIApp:
    """Return the ASGI application. It is stateless, so that clients survive its restart."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        host=access.host,
        transport_security=TransportSecuritySettings(
            allowed_hosts=access.allowed_hosts, allowed_origins=access.allowed_origins
        ),
    )
    if access.oauth:
        return authorized_app(app, access.oauth, access.token)
    return BearerToken(app, access.token) if access.token else app


def _listen(access: HttpAccess) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in access.host else socket.AF_INET
        listener = socket.create_server((access.host, access.port), family=family)
        # asyncio sets this only on sockets that name their protocol; without it, every answer waits 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"cannot listen on {access.url_host}:{access.port}: {reason}") from error
    return listener


async def serve_stdio(server: MCPServer[None]) -> None:
    """Serve until the input ends."""
    lowlevel = server._lowlevel_server  # as `MCPServer.run_stdio_async`, which accepts no streams
    async with stdio_server() as (received, answers), anyio.create_task_group() as tasks:
        send, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        refusals = answers.clone()

        async def refuse_invalid() -> None:
            async with send, refusals:
                async for message in received:
                    if isinstance(message, ValidationError):
                        await refusals.send(SessionMessage(_refusal(message)))
                    else:
                        await send.send(message)

        tasks.start_soon(refuse_invalid)
        await lowlevel.run(messages, answers, lowlevel.create_initialization_options())


def _refusal(error: ValidationError) -> JSONRPCError:
    """Return the error for a line that is not a valid message, with the id of the request if the line has one."""
    reasons = error.errors(include_url=False)
    if not reasons[0]["loc"]:  # the line itself, not a part of a message
        reason, line = ErrorData(code=PARSE_ERROR, message=f"Parse error: {reasons[0]['msg']}"), reasons[0]["input"]
        return _error(reason, _parsed(line))
    whole = next((reason["input"] for reason in reasons if reason["type"] == "missing"), None)
    return _error(ErrorData(code=INVALID_REQUEST, message="Invalid request: this is not a message of JSON-RPC 2.0"), whole)


def _parsed(line: str) -> object:
    try:
        return json.loads(line)  # unlike the SDK's parser, accepts lone surrogates
    except (ValueError, RecursionError):
        return None


def _error(reason: ErrorData, request: object) -> JSONRPCError:
    given = request.get("id") if isinstance(request, dict) else None
    try:
        answer = JSONRPCError(jsonrpc="2.0", id=given, error=reason)
        answer.model_dump_json()
        return answer
    except ValueError:  # no id, such as in a list, or one with a lone surrogate, which cannot be sent
        return JSONRPCError(jsonrpc="2.0", id=None, error=reason)
