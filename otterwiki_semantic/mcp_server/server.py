"""The server: its tools, resources and prompt, over one wiki."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from otterwiki_semantic import __version__
from otterwiki_semantic.mcp_server.guidance import INSTRUCTIONS, research_prompt
from otterwiki_semantic.mcp_server.reindexing import add_reindexing
from otterwiki_semantic.mcp_server.resources import add_resources
from otterwiki_semantic.mcp_server.tools import add_tools
from otterwiki_semantic.mcp_server.wiki import Wiki


def make_server(wiki: Wiki, *, allow_reindex: bool = False) -> MCPServer[None]:
    """Make the server that answers from `wiki`; the tool `reindex` is there only if it is allowed."""
    server: MCPServer[None] = MCPServer(
        "otterwiki-semantic",
        title="An Otter Wiki",
        description="Search a wiki by meaning, and read its pages section by section",
        instructions=INSTRUCTIONS,
        version=__version__,
        subscriptions=False,
        log_level="WARNING",
    )
    add_tools(server, wiki)
    if allow_reindex:
        add_reindexing(server, wiki)
    add_resources(server, wiki)

    @server.prompt(title="Research a question in the wiki")
    def research(question: Annotated[str, Field(description="What to find out")]) -> str:
        """Answer a question from the wiki, citing page and section."""
        return research_prompt(question)

    return server
