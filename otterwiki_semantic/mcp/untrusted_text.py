"""Wrap text of the wiki, so that an agent can distinguish it from text of the server."""

from __future__ import annotations

import secrets

_NONCE_BYTES = 4
"""2**32 against the 17,000 guesses that fit into the largest answer; each further byte costs a token per wrapped text."""
_IN_ATTRIBUTES = {
    **dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), " "),
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord('"'): "&quot;",
}


class Markers:
    """The markers around the wiki's text in one answer, with a nonce that no page can know."""

    def __init__(self) -> None:
        self._tag = f"wiki-text-{secrets.token_hex(_NONCE_BYTES)}"

    def wrap(self, text: str, **attributes: str | None) -> str:
        """Return text, verbatim, between ``<wiki-text-NONCE …>`` and ``</wiki-text-NONCE>``.

        Attributes that are None are omitted; the rest is escaped.
        """
        shown = f" {escaped(**attributes)}" if attributes else ""
        return f"<{self._tag}{shown}>\n{text}\n</{self._tag}>"


def escaped(**attributes: str | None) -> str:
    """Return attributes as written in a tag, without those that are None."""
    return " ".join(f'{name}="{value.translate(_IN_ATTRIBUTES)}"' for name, value in attributes.items() if value is not None)
