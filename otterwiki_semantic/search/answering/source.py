"""What an answer may rest on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that a model is given, and that the sentences of its answer name by number."""

    number: int
    """From 1, as notes are numbered."""
    path: str
    """The page's path in the wiki."""
    title: str
    headings: tuple[str, ...]
    """Those above the passage, the outermost first."""
    text: str
    """Markdown, whole blocks of the page."""
    updated: str | None = None
    """When a commit last changed the page, ISO 8601 in UTC."""
