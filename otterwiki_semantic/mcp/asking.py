"""The tool that lets the wiki answer; only of use to clients without a model of their own."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult
from pydantic import Field

from otterwiki_semantic.core.records import numbered_sources
from otterwiki_semantic.mcp.answers.base import ToolResponse
from otterwiki_semantic.mcp.backend import Json, WikiBackend
from otterwiki_semantic.mcp.errors import tool_errors
from otterwiki_semantic.mcp.tools import reading_notes
from otterwiki_semantic.mcp.untrusted_text import Markers


class AskAnswer(ToolResponse):
    """The wiki's answer to a question."""

    sentences: list[str] = Field(description="Each with the numbers of its sources; one that they do not support is marked")
    sources: list[str] = Field(description="Address or path, and section, by number")
    notice: str | None = Field(default=None, description="Why there is no answer, or only a part")

    def lines(self, markers: Markers) -> list[str]:
        shown = [self.notice] if self.notice else []
        shown += [markers.wrap("\n".join(self.sentences), list="answer")] if self.sentences else []
        return [*shown, markers.wrap("\n".join(self.sources), list="sources")] if self.sources else shown


def add_asking(server: MCPServer[None], wiki: WikiBackend) -> None:
    """Add `answer_question`."""

    async def answer_question(question: Annotated[str, Field(description="A question")]) -> CallToolResult:
        """Let the wiki answer a question itself, with a source for each sentence; semantic_search returns passages instead."""
        with tool_errors():
            return _answer(await wiki.ask(question)).result()

    server.add_tool(answer_question, title="Answer a question", annotations=reading_notes("Answer a question"))


def _answer(body: Json) -> AskAnswer:
    numbers = numbered_sources([sentence["sources"] for sentence in body["answer"]], len(body["sources"]))
    sources = [f"[{number}] {_named(body['sources'][place])}" for place, number in numbers.items()]
    sentences = [_sentence(sentence, numbers) for sentence in body["answer"]]
    return AskAnswer(sentences=sentences, sources=sources, notice=body.get("message"))


def _named(source: Json) -> str:
    return f"{source.get('url') or source['path']} ({source['breadcrumb']})"


def _sentence(sentence: Json, numbers: dict[int, int]) -> str:
    marks = "".join(f"[{numbers[place]}]" for place in sentence["sources"])
    return f"{sentence['text']} {marks}".rstrip() + ("" if sentence["supported"] else " (not confirmed by its source)")
