"""Scripts and styles as served: without comments and needless white space."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_STATIC = Path(__file__).parent / "static"
_COMMENT = re.compile(r"^\s*//.*$|(?<=[;,{}]) // .*$|/\*.*?\*/", re.MULTILINE)
_BREAK = re.compile(r"(?<=[{;,(])\s*\n\s*|\s*\n\s*(?=[})])|(?<=\n)\s+|\A\s+")
"""Line breaks that end no statement, and indentation."""
_SCRIPT_SPACE = re.compile(r'("(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)| *([=?:&|<>{}(),;]+) *')
"""String literals, which are unchanged, and spaces around operators."""
_STYLE_SPACE = re.compile(r";?\s*(})\s*|\s*([{;,>])\s*|(?<=:)\s+")


@cache
def script(name: str) -> str | None:
    """Return a script, or None if there is none of this name."""
    if name not in {path.name for path in _STATIC.glob("*.js")}:
        return None
    return _SCRIPT_SPACE.sub(r"\1\2", _BREAK.sub("", _COMMENT.sub("", (_STATIC / name).read_text(encoding="utf-8"))))


@cache
def stylesheet() -> str:
    """Return the stylesheet."""
    return _STYLE_SPACE.sub(r"\1\2", _COMMENT.sub("", (_STATIC / "style.css").read_text(encoding="utf-8"))).strip()
