"""The real command as a process, and the SDK's client that asks it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.support.fork_server import python
from tests.support.live_wiki import eventually

PROGRAM = str(Path(sys.executable).with_name("otterwiki-semantic"))
_OURS = ("OTTERWIKI_", "SEMANTIC_", "MCP_")
_SERVING = re.compile(r"serving on (http://\S+)")

T = TypeVar("T")


def environment(**settings: str) -> dict[str, str]:
    """Return this process's environment without settings of the wiki, and with these."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name != "REPOSITORY"}
    return {**inherited, "OTTERWIKI_SETTINGS": "", "SEMANTIC_PAGES": "none", **settings}


@dataclass(frozen=True)
class Server:
    """A server to ask: over HTTP at `url` with a `token`, else a process that is started with these arguments."""

    arguments: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    log: Path = Path(os.devnull)
    url: str = ""
    token: str = ""
    mode: str = "auto"

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Lend a client that is connected."""
        if self.url:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
                transport = streamable_http_client(self.url, http_client=http)
                async with Client(transport, mode=self.mode) as client:
                    yield client
            return
        parameters = StdioServerParameters(
            command=python(), args=[PROGRAM, "mcp", *self.arguments], env=environment(**dict(self.settings))
        )
        with self.log.open("a", encoding="utf-8") as log:
            async with Client(stdio_client(parameters, errlog=log), mode=self.mode) as client:
                yield client

    @contextmanager
    def connected(self) -> Iterator[Agent]:
        """Lend an agent whose client stays connected."""
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(self.client()) as client:
            yield Agent(portal, client)


@dataclass(frozen=True)
class Agent:
    """A connected client, asked from tests that are not asynchronous."""

    portal: BlockingPortal
    client: Client

    def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Return the answer to a question."""
        return self.portal.call(question, self.client)

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool."""
        return self.ask(lambda client: client.call_tool(tool, arguments))

    def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return a tool's structured content; an error is none."""
        answer = self.call(tool, **arguments)
        assert not answer.is_error, text_of(answer)
        assert answer.structured_content is not None
        return dict(answer.structured_content)

    def text(self, tool: str, **arguments: Any) -> str:
        """Return a tool's text; an error is none."""
        answer = self.call(tool, **arguments)
        assert not answer.is_error, text_of(answer)
        return text_of(answer)

    def error(self, tool: str, **arguments: Any) -> str:
        """Return what a tool says that went wrong."""
        answer = self.call(tool, **arguments)
        assert answer.is_error, text_of(answer)
        return text_of(answer)


def text_of(answer: CallToolResult) -> str:
    """Return the text of a tool's answer."""
    assert len(answer.content) == 1
    assert isinstance(answer.content[0], TextContent)
    return answer.content[0].text


@contextmanager
def http_server(log: Path, *arguments: str, **settings: str) -> Iterator[Server]:
    """Serve over HTTP on a free port of this machine."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [python(), PROGRAM, "mcp", "--http", "0", *arguments], env=environment(**settings), stdout=output, stderr=output
        )
    try:
        found = eventually(lambda: process.poll() is not None or _SERVING.search(log.read_text()), why="the server listens")
        assert isinstance(found, re.Match), log.read_text()
        yield Server(url=found[1], log=log, token=settings.get("MCP_AUTH_TOKEN", ""))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
