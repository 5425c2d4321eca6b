"""Minified scripts and styles, as they are served."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rcssmin import cssmin
from rjsmin import jsmin

_STATIC = Path(__file__).parent / "static"


@cache
def script(name: str) -> str | None:
    """Return a script, or None if there is none of this name."""
    if name not in {path.name for path in _STATIC.glob("*.js")}:
        return None
    return str(jsmin((_STATIC / name).read_text(encoding="utf-8")))


@cache
def stylesheet() -> str:
    """Return the stylesheet."""
    return str(cssmin((_STATIC / "style.css").read_text(encoding="utf-8")))
