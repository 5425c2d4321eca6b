"""What a tool returns: text and structured content of the same answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from otterwiki_semantic.core.records import FIRST_BUILD
from otterwiki_semantic.mcp.backend import Json
from otterwiki_semantic.mcp.budget import count_tokens

_MAX_URL = 400


class Part(BaseModel):
    """A part of an answer. Fields that are None are left out."""

    model_config = ConfigDict(frozen=True)


class ToolResponse(Part):
    """The answer of a tool; subclasses add fields and `lines`."""

    left_out: str | None = Field(default=None, description="What did not fit into max_tokens, and how to get it")

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the answer as paragraphs of text, without `left_out`. The wiki's text is wrapped as untrusted."""

    def text(self) -> str:
        return "\n".join([*self.lines(), *([f"({self.left_out})"] if self.left_out else [])])

    def structured(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)

    def cost(self) -> int:
        """Return its size in tokens, as text or as structured content, whichever is larger."""
        return max(count_tokens(self.text()), count_tokens(self.model_dump_json(exclude_none=True)))


def count(number: int, thing: str) -> str:
    """Return a number with a noun, in the plural unless it is 1."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def line_range(first: int, last: int) -> str:
    """Return a range of lines in the syntax of `read_note`."""
    return f"{first}-{last}"


def short_url(body: Json) -> str | None:
    """Return the URL of a result, without its anchor if the heading is excessively long."""
    url: str | None = body.get("url")
    return url if url is None or len(url) <= _MAX_URL else url.partition("#")[0]


def notice_of(body: Json) -> str | None:
    """Return why the wiki's answer is incomplete or outdated; None if it is neither."""
    index: Json = body.get("index", {})
    is_first_build = index.get("commit") is None and index.get("head") is not None
    notices = [FIRST_BUILD if is_first_build else None, body.get("degraded")]
    behind = index.get("pending_pages") if index.get("commit") != index.get("head") else 0
    if behind and not is_first_build:
        notices.append(f"the index is behind by {count(behind, 'page')}; semantic_search with wait=true waits for the latest")
    return "; ".join(notice for notice in notices if notice) or None
