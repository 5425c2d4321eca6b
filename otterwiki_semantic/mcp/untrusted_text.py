"""Wrap text of the wiki, so that an agent can distinguish it from the words of the server."""

from __future__ import annotations

import re
from unicodedata import normalize

_BRACKET = re.compile("[<＜﹤‹〈⟨❮❬〈《«]")
_LOOK_AHEAD = 80
_LOOK_ALIKES = str.maketrans("ікетхωԝ", "iketxww")
"""Letters of other scripts that look like those of the tag."""
_IN_ATTRIBUTES = {
    **dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), " "),
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord('"'): "&quot;",
}


def wrap_untrusted(text: str, **attributes: str | None) -> str:
    """Return text between ``<wiki-text …>`` and ``</wiki-text>``; attributes that are None are left out.

    The text cannot close the tag: the bracket of anything that looks like one of these tags, in any case, with spaces, signs,
    invisible characters, similar letters or a similar bracket, becomes ``&lt;``.
    """
    shown = "".join(f' {name}="{value.translate(_IN_ATTRIBUTES)}"' for name, value in attributes.items() if value is not None)
    return f"<wiki-text{shown}>\n{_BRACKET.sub(_harmless, text)}\n</wiki-text>"


def _harmless(bracket: re.Match[str]) -> str:
    following = (
        normalize("NFKD", bracket.string[bracket.end() : bracket.end() + _LOOK_AHEAD]).casefold().translate(_LOOK_ALIKES)
    )
    letters = "".join(character for character in following if character.isalnum())
    return "&lt;" if letters.startswith("wikitext") else bracket[0]
