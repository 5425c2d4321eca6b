"""An answer of a tool, as text and as structured content, and how it is made to fit a budget."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from otterwiki_semantic.core.records import FIRST_BUILD
from otterwiki_semantic.mcp.backend import Json
from otterwiki_semantic.mcp.budget import tokens

_LONGEST_ADDRESS = 400

A = TypeVar("A", bound="Answer")


class BudgetError(Exception):
    """Not even the least of an answer fits into the budget; its text says what does."""


class Part(BaseModel):
    """A part of an answer. What is None is not sent."""

    model_config = ConfigDict(frozen=True)


class Answer(Part):
    """What a tool answers: subclasses add their fields and say how they read as text."""

    left_out: str | None = Field(default=None, description="What did not fit into max_tokens, and how to get it")

    @abstractmethod
    def lines(self) -> list[str]:
        """Give the answer as an agent reads it, without `left_out`, in paragraphs."""

    def text(self) -> str:
        """Give all of the answer as an agent reads it; what the wiki says is marked as data."""
        return "\n".join([*self.lines(), *([f"({self.left_out})"] if self.left_out else [])])

    def structured(self) -> dict[str, Any]:
        """Give the answer as structured content."""
        return self.model_dump(mode="json", exclude_none=True)

    def cost(self) -> int:
        """Give how many tokens it takes, as text or as structured content, whichever takes more."""
        return max(tokens(self.text()), tokens(self.model_dump_json(exclude_none=True)))


def fit(make: Callable[[int], A], most: int, max_tokens: int) -> A:
    """Give the largest answer that costs at most `max_tokens`; `make` makes one of a size from 0 to `most`.

    Errors: `BudgetError` when the one of size 0 costs more.
    """
    whole = make(most)
    if whole.cost() <= max_tokens:
        return whole
    best, least, above = make(0), 0, most
    if best.cost() > max_tokens:
        raise BudgetError(f"max_tokens={max_tokens} is too little for this answer; ask with {best.cost()} or more")
    while above - least > 1:
        size = (least + above) // 2
        answer = make(size)
        if answer.cost() <= max_tokens:
            best, least = answer, size
        else:
            above = size
    return best


def count(number: int, thing: str) -> str:
    """Give a number with its thing, in the plural unless it is one."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def line_range(first: int, last: int) -> str:
    """Give a range of lines as `read_note` takes it."""
    return f"{first}-{last}"


def address(body: Json) -> str | None:
    """Give the address of what the wiki tells of; of a heading as long as a page only that of its page."""
    url: str | None = body.get("url")
    return url if url is None or len(url) <= _LONGEST_ADDRESS else url.partition("#")[0]


def notice_of(body: Json) -> str | None:
    """Tell what keeps the wiki's answer from being all it could be; None if nothing does."""
    index: Json = body.get("index", {})
    is_first_build = index.get("commit") is None and index.get("head") is not None
    notices = [FIRST_BUILD if is_first_build else None, body.get("degraded")]
    behind = index.get("pending_pages") if index.get("commit") != index.get("head") else 0
    if behind and not is_first_build:
        notices.append(f"the index is behind by {count(behind, 'page')}; semantic_search with wait=true waits for the latest")
    return "; ".join(notice for notice in notices if notice) or None
