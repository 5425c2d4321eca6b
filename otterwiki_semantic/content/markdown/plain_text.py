"""Text as a reader sees it: without markup, link targets and image paths, but with link texts and alternative texts."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from otterwiki_semantic.core.records import Link

Token = Mapping[str, Any]

_INLINE_TAGS = (
    "a abbr b bdi bdo cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small span strike strong sub sup "
    "time tt u var wbr"
)
_BLOCK_TAGS = (
    "address article aside audio blockquote body br button caption center col colgroup dd details div dl dt figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hr html img input legend li main nav ol option p picture pre section select "
    "source summary table tbody td tfoot th thead title tr ul video"
)
_TAG_NAMES = frozenset(f"{_INLINE_TAGS} {_BLOCK_TAGS}".split())
_BLOCK_TAG_NAMES = frozenset(_BLOCK_TAGS.split())
_STRUCK_TAG_NAMES = frozenset({"del", "s", "strike"})
STRUCK = "~~"
"""Encloses text that is struck out, so that it can be found and recognised as withdrawn."""
MARKUP = re.compile(
    r"\A(?:(?:(?:import (?:[^'\"\n]* from )?['\"][^'\"\n]*['\"];?|</?[A-Za-z][^<>\n]*>)\s*)+"
    r"|export (?:default|const|let|function|\{)[^\n]*)"
)
"""Imports and components of MDX, which a wiki shows as text."""
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]*)?/?>")
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_NOT_WORD = re.compile(r"[^\w\s-]")
_SEPARATORS = re.compile(r"[-\s]+")


def visible_html(source: str) -> str:
    """Return the text of HTML on the same lines; an unknown tag, such as ``<T>`` in ``Vec<T>``, is text, as in the wiki."""

    def replacement(match: re.Match[str]) -> str:
        name = match[1].lower()
        if name not in _TAG_NAMES:
            return match[0]
        if name in _STRUCK_TAG_NAMES:
            return STRUCK
        alternative = _ALT.search(match[0]) if name == "img" else None
        shown = (alternative[1] or alternative[2] or "") if alternative else ""
        return shown + _line_breaks(match[0]) + (" " if name in _BLOCK_TAG_NAMES else "")

    return html.unescape(_TAG.sub(replacement, _without_comments(source)))


def visible_text(tokens: Iterable[Token]) -> str:
    """Return the text of parsed inline Markdown (mistune's tokens), line breaks included."""
    return "".join(_text(token, with_images=True) for token in tokens)


def links_in(tokens: Iterable[Token]) -> Iterator[Link]:
    """Yield the links in parsed inline Markdown, in order."""
    for token in tokens:
        if token["type"] in {"link", "wiki_link"}:
            text = " ".join(_text(token, with_images=True).split())
            yield Link(str(token["attrs"]["url"]), text, token["type"] == "wiki_link")
        else:
            yield from links_in(token.get("children", ()))


def heading_anchor(tokens: Iterable[Token]) -> str:
    """Return the wiki's id for a heading, before repeated ones are numbered: its text without images, as a slug."""
    return slug("".join(_text(token, with_images=False) for token in tokens))


def slug(text: str) -> str:
    """Return the anchor of a heading with this text and no images, before repeated ones are numbered."""
    ascii_text = unicodedata.normalize("NFKD", " ".join(text.split())).encode("ascii", "ignore").decode("ascii")
    return _SEPARATORS.sub("-", _NOT_WORD.sub("", ascii_text.strip().lower()))


def _without_comments(source: str) -> str:
    """Remove comments. A comment that is not closed, or contains angle brackets, is text: the wiki shows it."""
    kept: list[str] = []
    position = 0
    while (start := source.find("<!--", position)) >= 0 and (end := source.find("-->", start + 4)) >= 0:
        comment = source[start : end + 3]
        is_shown = "<" in comment[4:-3] or ">" in comment[4:-3]
        kept += (source[position:start], comment if is_shown else _line_breaks(comment))
        position = end + 3
    return "".join(kept) + source[position:]


def _line_breaks(text: str) -> str:
    return "\n" * text.count("\n")


def _text(token: Token, with_images: bool) -> str:
    children = "".join(_text(child, with_images) for child in token.get("children", ()))
    match token["type"]:
        case "text" | "wiki_link":
            return html.unescape(token["raw"])
        case "inline_html":
            return visible_html(token["raw"])
        case "softbreak" | "linebreak":
            return "\n"
        case "link":
            return children or str(token.get("attrs", {}).get("url", ""))
        case "image" if not with_images:
            return ""
        case "strikethrough":
            return f"{STRUCK}{children}{STRUCK}"
    return children if "children" in token else str(token.get("raw", ""))
