"""Errors of tools: what is wrong, and what to use instead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from otterwiki_semantic.core.token_count import count_tokens
from otterwiki_semantic.mcp.answers.base import BudgetError, truncate
from otterwiki_semantic.mcp.backend import BackendError
from otterwiki_semantic.mcp.untrusted_text import Markers

_NAME_ERRORS = {
    "page_unknown": ("there is no such page; list_notes lists all", "pages with similar names", "pages"),
    "section_unknown": ("the page has no such section", "its sections, nearest first", "sections"),
    "section_ambiguous": ("several sections have this name", "ask for one of these", "sections"),
}
"""By code: message, label and kind of the names. The wiki's own message would mix trusted text with its names."""
_MAX_TOKENS, _MAX_CHANGES = 500, 1_500
_MAX_CHARACTERS, _MAX_NAME = 1_000, 400


@contextmanager
def tool_errors() -> Iterator[None]:
    """Turn errors of the wiki into errors of the tool."""
    try:
        yield
    except BackendError as error:
        raise ToolError(error_text(error)) from error
    except BudgetError as error:
        raise ToolError(str(error)) from error
    except (KeyError, TypeError, AttributeError, IndexError, ValidationError) as error:
        raise ToolError(
            f"the wiki's answer is invalid ({error!r:.80}); make sure that both have the same version of otterwiki-semantic"
        ) from error


def error_text(error: BackendError) -> str:
    """Return an error as text of about 500 tokens at most; names and texts from the wiki are wrapped as untrusted."""
    if error.diff:
        changes = Markers().wrap(truncate(error.diff, _MAX_CHANGES), list="changes")
        return f"the page was changed since that revision; read it again. The changes:\n{changes}"
    if error.code not in _NAME_ERRORS or not error.nearest:  # contains no names from the wiki
        return truncate(str(error), _MAX_CHARACTERS)
    message, label, kind = _NAME_ERRORS[error.code]
    names = [truncate(name, _MAX_NAME) for name in error.nearest]
    while names and count_tokens("\n".join(names)) > _MAX_TOKENS:
        names.pop()
    if not names:
        return message
    rest = len(error.nearest) - len(names)
    more = f"\n({rest} more; list_sections shows all)" if rest else ""
    shown = Markers().wrap("\n".join(names), list=kind)
    return f"{message}; {label}:\n{shown}{more}"
