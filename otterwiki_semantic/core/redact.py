"""What another program says, made fit to be shown: nothing secret is in it, and nothing of what it was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_LONGEST = 200
_LONGEST_READ = 10_000
_PIECE = 20
_LEAST_WHOLE = 4
_HIDDEN = "…"
_CODE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_ESCAPED_SPACE = re.compile(r"\\+[nrtfv]")


def quote(text: str, secrets: Iterable[str | None], sent: Iterable[str] = ()) -> str:
    """Give some words of a text, in one line, without the secrets; nothing at all if it repeats something that was sent.

    It does so if any 20 characters of a sent text are in it, or the whole of one that has 4 or more; however they are escaped.
    """
    for secret in filter(None, secrets):
        for form in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            text = text.replace(form, _HIDDEN)
    text = text[:_LONGEST_READ]
    return "" if _repeats(text, sent) else " ".join(text.split())[:_LONGEST]


def _repeats(text: str, sent: Iterable[str]) -> bool:
    said = {text, _unescaped(text)}
    pieces = {form[place : place + _PIECE] for form in said for place in range(len(form) - _PIECE + 1)}
    return any(
        any(len(whole) >= _LEAST_WHOLE and whole in form for form in said for whole in (each.strip(),))
        or any(each[place : place + _PIECE] in pieces for place in range(len(each) - _PIECE + 1))
        for original in sent
        for each in {original, _unescaped(original)}
    )


def _unescaped(text: str) -> str:
    """Give a text without what JSON, or Python, makes of its spaces, quotation marks and letters."""
    found = _CODE.sub(lambda code: chr(int(code[1], 16)), text)
    found = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(_ESCAPED_SPACE.sub(" ", found).replace("\\", "").split())
