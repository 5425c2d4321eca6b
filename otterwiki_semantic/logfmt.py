"""Facts at the end of a line of a log, in logfmt: ``event=sync pages=5 seconds=0.125``, for programs that read logs."""

from __future__ import annotations

import json
import re

_PLAIN = re.compile(r"[^\s\"=]+")


def logfmt(event: str, **facts: object) -> str:
    """Give an event with its facts: numbers with up to three decimals, truth values in small letters, odd text in quotes."""
    return " ".join(f"{name}={_shown(value)}" for name, value in {"event": event, **facts}.items())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
