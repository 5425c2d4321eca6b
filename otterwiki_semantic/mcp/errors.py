"""Errors of tools that help: what is wrong, and what there is instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError

from otterwiki_semantic.mcp.answers.base import BudgetError
from otterwiki_semantic.mcp.backend import BackendError
from otterwiki_semantic.mcp.budget import cut, tokens
from otterwiki_semantic.mcp.untrusted_text import marked

_OF_NAMES = {
    "page_unknown": ("there is no such page; list_notes shows those there are", "these are spelled like it", "pages"),
    "section_unknown": ("the page has no such section or line", "the sections it has, nearest first", "sections"),
    "section_ambiguous": ("several sections have that name", "ask for one of these", "sections"),
}
"""What to say of a name that stands for nothing, or for more than one thing: the wiki's own words mix it with its names."""
_MOST_TOKENS = 500
_MOST_CHARACTERS, _LONGEST_NAME = 1_000, 400


@contextmanager
def told_to_agent() -> Iterator[None]:
    """Make the wiki's errors the tool's."""
    try:
        yield
    except BackendError as error:
        raise ToolError(error_text(error)) from error
    except BudgetError as error:
        raise ToolError(str(error)) from error
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ToolError(
            f"the wiki's answer was not understood ({error!r:.80}); see that its otterwiki-semantic is as new as this one"
        ) from error


def error_text(error: BackendError) -> str:
    """Give an error as an agent reads it, in at most about 500 tokens; the wiki's names in it are marked as data."""
    if error.code not in _OF_NAMES or not error.nearest:  # then there is no name of the wiki's in it
        return cut(str(error), _MOST_CHARACTERS)
    trouble, offer, kind = _OF_NAMES[error.code]
    names = [cut(name, _LONGEST_NAME) for name in error.nearest]
    while names and tokens("\n".join(names)) > _MOST_TOKENS:
        names.pop()
    if not names:
        return trouble
    rest = len(error.nearest) - len(names)
    more = f"\n({rest} more; list_sections shows all)" if rest else ""
    return f"{trouble}; {offer}:\n{marked(chr(10).join(names), list=kind)}{more}"
