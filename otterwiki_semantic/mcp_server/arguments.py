"""The arguments that several tools take, with what an agent is told of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from otterwiki_semantic.mcp_server.tokens import DEFAULT_MAX_TOKENS, LEAST_MAX_TOKENS, MOST_MAX_TOKENS
from otterwiki_semantic.parameters import MAX_TAGS

MaxTokens = Annotated[
    int, Field(ge=LEAST_MAX_TOKENS, le=MOST_MAX_TOKENS, description="About how many tokens the answer may take at most")
]
Path = Annotated[str, Field(description="A page's path, such as garden/irrigation; its case does not matter")]
Category = Annotated[str | None, Field(description="Only pages of this category")]
Tags = Annotated[list[str] | None, Field(max_length=MAX_TAGS, description="Only pages that have all of these tags")]
UpdatedSince = Annotated[str | None, Field(description="Only pages changed since this date or time (ISO 8601)")]

__all__ = ["DEFAULT_MAX_TOKENS", "Category", "MaxTokens", "Path", "Tags", "UpdatedSince"]
