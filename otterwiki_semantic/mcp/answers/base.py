"""The result of a tool: the same answer as text and as structured content, within a token budget."""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict, Field

from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.core.records import FIRST_BUILD, Progress
from otterwiki_semantic.core.token_count import count_tokens
from otterwiki_semantic.mcp.backend import Json
from otterwiki_semantic.mcp.untrusted_text import Markers

_MAX_URL = 400
REVISION_DIGITS = 12
"""Enough to identify a commit; all 40 would cost as many tokens as a sentence."""
STRUCTURED: ContextVar[bool] = ContextVar("structured content", default=False)
"""Whether answers include structured content; with it, the agent reads everything twice in most clients."""


class BudgetError(Exception):
    """Even the smallest answer exceeds the budget; the message names the budget that it needs."""


class Part(BaseModel):
    """A part of an answer. Fields that are None are omitted, and further ones of the API's JSON ignored."""

    model_config = ConfigDict(frozen=True)


class ToolResponse(Part):
    """The answer of a tool; subclasses add fields and `lines`."""

    notice: str | None = Field(default=None, description="Why this answer is incomplete or outdated")
    left_out: str | None = Field(default=None, description="What did not fit into max_tokens, and how to get it")

    @abstractmethod
    def lines(self, markers: Markers) -> list[str]:
        """Return the answer as paragraphs, without `notice` and `left_out`. The wiki's text is wrapped in the markers."""

    def text(self) -> str:
        notice = [self.notice] if self.notice else []
        return "\n".join([*notice, *self.lines(Markers()), *([f"({self.left_out})"] if self.left_out else [])])

    def result(self) -> CallToolResult:
        structured = self.model_dump(mode="json", exclude_none=True) if STRUCTURED.get() else None
        return CallToolResult(content=[TextContent(type="text", text=self.text())], structured_content=structured)

    def cost(self) -> int:
        """Return the size in tokens: that of the text or, if enabled, of the structured content, whichever is larger."""
        structured = count_tokens(self.model_dump_json(exclude_none=True)) if STRUCTURED.get() else 0
        return max(count_tokens(self.text()), structured)


R = TypeVar("R", bound=ToolResponse)


def fit(make: Callable[[int], R], largest: int, max_tokens: int) -> R:
    """Return the largest answer of at most `max_tokens` tokens; `make` builds one of a size from 0 to `largest`.

    Errors: `BudgetError` if the answer of size 0 is too large.
    """
    whole = make(largest)
    if whole.cost() <= max_tokens:
        return whole
    least = make(0).cost()
    if least > max_tokens:
        raise BudgetError(f"max_tokens={max_tokens} is too little for this answer; ask with {least} or more")
    return make(bisect_right(range(largest), max_tokens, lo=1, key=lambda size: make(size).cost()) - 1)


def fit_entries(answer: R, field: str, what: str, max_tokens: int) -> R:
    """Return an answer with as many of a field's first entries as fit; `what` names one left out. Errors: `BudgetError`."""
    entries = getattr(answer, field) or []

    def with_first(number: int) -> R:
        if number == len(entries):
            return answer
        left_out = f"{count(len(entries) - number, what)} left out; ask with a higher max_tokens"
        return answer.model_copy(update={field: entries[:number], "left_out": left_out})

    return fit(with_first, len(entries), max_tokens)


def truncate(text: str, size: int) -> str:
    """Truncate a text to at most `size` characters, at the end of a line, or else of a word, if this keeps half of them."""
    if len(text) <= size:
        return text
    room = text[: max(size, 0) + 1]
    for mark in ("\n", " "):
        end = room.rfind(mark)
        if end >= max(size, 1) / 2:
            return text[:end]
    return text[: max(size, 0)]


def short_url(body: Json) -> str | None:
    """Return the URL of a result, without its anchor if the heading is excessively long."""
    url: str | None = body.get("url")
    return url if url is None or len(url) <= _MAX_URL else url.partition("#")[0]


def notice_of(body: Json) -> str | None:
    """Return why the wiki's answer is incomplete, outdated or to another question; None if it is not."""
    index: Json = body.get("index", {})
    is_first_build = index.get("commit") is None and index.get("head") is not None
    corrections = (
        f"no page has {each['typed']!r}; searched for {each['corrected']!r} as well" for each in body.get("corrections", ())
    )
    notices = [FIRST_BUILD if is_first_build else None, body.get("degraded"), *corrections]
    progress = index.get("progress")
    behind = index.get("pending_pages") if index.get("commit") != index.get("head") else 0
    if progress and progress["pages_total"] > 1:
        notices.append(f"indexed so far: {Progress(**progress).describe()}")
    elif behind and not is_first_build:
        notices.append(f"the index is behind by {count(behind, 'page')}; semantic_search with wait=true waits for the latest")
    return "; ".join(filter(None, notices)) or None
