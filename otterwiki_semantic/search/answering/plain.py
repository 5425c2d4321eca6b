"""Text without Markdown and HTML, as a reader sees it: links as their text, no images."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable

CODE = re.compile(r"(?<!`)(?P<ticks>`++)(?P<code>(?:[^`]++|(?!(?P=ticks)(?!`))`++){1,50})(?P=ticks)(?!`)")
_COMMENT = re.compile(r"<!--.*?(?:-->|$)", re.DOTALL)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_ADDRESS_IN_ANGLES = re.compile(r"<((?:[a-z][a-z0-9+.-]{1,15}:|[^<>\s@]+@)[^<>\s]*)>", re.IGNORECASE)
_IMAGE = re.compile(r"!\[[^\[\]]*\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])?")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|]*)(?:\|[^\[\]]*)?\]\]")
_LINK = re.compile(r"\[([^\[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_STRONG = re.compile(r"\*\*|__(?!\w{1,40}__\w)|~~")
_EMPHASIS = re.compile(r"(?<![\w*])[*_](?=[^\s*])|(?<=[^\s*])[*_](?![\w*])")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_KEPT = "\ue010"
"""Replaces code while markup is removed around it; `clean` removes this character from all input."""
_KEPT_PART = re.compile(f"({_KEPT}\\d+{_KEPT})")
_KEPT_NUMBER = re.compile(f"{_KEPT}(\\d+){_KEPT}")
_UNSEEN_PART = re.compile(
    r"(?P<code>^[ \t>]*+(?P<fence>`{3,}+|~{3,}+)[^\n]*\n.*?(?:^[ \t>]*+(?P=fence)[`~]*+[ \t]*+$|\Z)"
    r"|(?<!`)(?P<ticks>`++)(?:[^`\n]++|(?!(?P=ticks)(?!`))`++){1,50}(?P=ticks)(?!`))"
    r"|<!--.*?(?:-->|\Z)|~~(?=\S)(?:(?!~~)[^\n]|\n(?![^\S\n]*+\n)){1,1000}(?<=\S)~~|<(?P<tag>del|s|strike)(?:\s[^<>]*)?>(?:(?!</?(?P=tag)[\s>]).){0,4000}</(?P=tag)\s*+>",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_UNTICKED = re.compile(r"^([ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]+)\[ \][ \t]+", re.MULTILINE)
_UNSEEN = {"Cc", "Cf", "Co", "Cs", "Cn"}
_BLANK = "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5"
"""Invisible letters and marks; the variation selectors are blank, too."""


def clean(text: str) -> str:
    """Return text without control, zero-width, bidirectional, private and unassigned characters; tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_cleaned, text))


def visible_markdown(text: str) -> str:
    """Return Markdown without comments and struck-out text; unticked items begin with ☐. Code is unchanged."""
    return _UNTICKED.sub(r"\1☐ ", _UNSEEN_PART.sub(lambda match: match["code"] or "", text))


def _cleaned(character: str) -> str:
    if character == "\n":
        return character
    if character in "\t\v\f\u2028\u2029\x85":
        return " "
    is_blank = character in _BLANK or "\ufe00" <= character <= "\ufe0f" or character > "\U000e0000"
    return "" if is_blank or unicodedata.category(character) in _UNSEEN else character


def plain_text(markdown: str, kept: re.Pattern[str] = CODE, shown: Callable[[re.Match[str]], str] | None = None) -> str:
    """Return the text of inline Markdown, cleaned, without marks, tags, images and link targets; code is kept verbatim.

    `kept` may match more than `CODE`; `shown` returns the replacement of a match.
    """
    parts: list[str] = []

    def keep(match: re.Match[str]) -> str:
        parts.append(shown(match) if shown and not match["ticks"] else match["code"].strip())
        return f"{_KEPT}{len(parts) - 1}{_KEPT}"

    text = kept.sub(keep, clean(markdown))
    text = _ADDRESS_IN_ANGLES.sub(r"\1", _COMMENT.sub(" ", text))
    text = "".join(part if at % 2 else _without_tags(part) for at, part in enumerate(_KEPT_PART.split(text)))
    text = _WIKI_LINK.sub(r"\1", _IMAGE.sub("", text))
    text = _LINK.sub(r"\1", _LINK.sub(r"\1", text))
    text = _ESCAPE.sub(r"\1", _EMPHASIS.sub("", _STRONG.sub("", text))).replace("`", "")
    return " ".join(_KEPT_NUMBER.sub(lambda match: parts[int(match[1])], text).split())


def _without_tags(text: str) -> str:
    """Return text without tags, including tags written with character references."""
    for _ in range(3):
        stripped = clean(html.unescape(_TAG.sub("", text)).replace("\n", " ")) if "&" in text else _TAG.sub("", text)
        if stripped == text:
            break
        text = stripped
    return text
