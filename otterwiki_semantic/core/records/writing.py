"""Pages that programs write."""

from __future__ import annotations

from msgspec import Struct

from otterwiki_semantic.core.records.search import RelatedPage


class WrittenPage(Struct, frozen=True, omit_defaults=True):
    """A page as it was saved."""

    path: str
    revision: str
    """The commit that has it, or the one before if nothing has changed."""
    created: bool
    changed: bool
    indexed: bool
    """Whether searches find it as it is now; else they will in a moment."""
    related: tuple[RelatedPage, ...] = ()
    """Of a page that was created: up to three pages about the same."""
    url: str | None = None
    """The page in the wiki."""
