"""Makes other programs' messages safe to show: without secrets, and without the texts sent to them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_MAX_SHOWN = 200
_MAX_READ = 10_000
_FRAGMENT = 20
_MIN_WHOLE = 4
_HIDDEN = "…"
_CODE = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")
_ESCAPED_SPACE = re.compile(r"(?<!\\)\\++[nrtfv]")


def redact(text: str, secrets: Iterable[str | None], sent: Iterable[str] = ()) -> str:
    """Return the beginning of a text on one line, with its secrets hidden; empty if it repeats 20 characters of a sent text."""
    for secret in filter(None, secrets):
        for form in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            text = text.replace(form, _HIDDEN)
    text = text[:_MAX_READ]
    return "" if _repeats(text, sent) else " ".join(text.split())[:_MAX_SHOWN]


def _repeats(text: str, sent: Iterable[str]) -> bool:
    forms = {text, _unescaped(text)}
    fragments = {form[start : start + _FRAGMENT] for form in forms for start in range(len(form) - _FRAGMENT + 1)}
    return any(
        any(len(whole) >= _MIN_WHOLE and whole in form for form in forms for whole in (each.strip(),))
        or any(each[start : start + _FRAGMENT] in fragments for start in range(len(each) - _FRAGMENT + 1))
        for original in sent
        for each in {original, _unescaped(original)}
    )


def _unescaped(text: str) -> str:
    found = _CODE.sub(lambda code: chr(int(code[1], 16)), text)
    found = found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(_ESCAPED_SPACE.sub(" ", found).replace("\\", "").split())
