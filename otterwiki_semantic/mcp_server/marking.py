"""Text of the wiki marked as data, so that an agent can tell it from what the server says."""

from __future__ import annotations

import re

_INVISIBLE = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
_NAME = _INVISIBLE.join("wiki") + "[^0-9A-Za-z]{0,3}" + _INVISIBLE.join("text")
_TAG_LIKE = re.compile(f"[<＜﹤‹〈⟨](?=[^0-9A-Za-z]{{0,8}}{_NAME})", re.IGNORECASE)
_IN_ATTRIBUTES = {
    **dict.fromkeys((*range(32), *range(127, 160), 8232, 8233), " "),
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord('"'): "&quot;",
}


def marked(text: str, **attributes: str | None) -> str:
    """Give text between ``<wiki-text …>`` and ``</wiki-text>``; attributes that are None are left out.

    Nothing in the text can end it early: the bracket of whatever looks like one of these tags, in any case and with spaces,
    invisible characters or a similar bracket, becomes ``&lt;``.
    """
    shown = "".join(f' {name}="{value.translate(_IN_ATTRIBUTES)}"' for name, value in attributes.items() if value is not None)
    return f"<wiki-text{shown}>\n{_TAG_LIKE.sub('&lt;', text)}\n</wiki-text>"
