"""Serve on standard input and output; a line that is no JSON-RPC message is answered with an error, where the SDK drops it."""

from __future__ import annotations

import json

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import ValidationError


async def serve_stdio(server: MCPServer[None]) -> None:
    """Serve until the input ends."""
    lowlevel = server._lowlevel_server  # as `MCPServer.run_stdio_async`, which takes no streams
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
    """Return the answer to a line that the SDK could not read as a message; with the id of the request if the line has one."""
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
    except ValueError:  # no id at all, such as a list, or one that cannot be sent: it holds a lone surrogate
        return JSONRPCError(jsonrpc="2.0", id=None, error=reason)
