"""YAML front matter: found as the wiki finds it, read for what the index uses."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import yaml

_FENCE = "---"
_MAX_CHARACTERS = 65_536
_LARGEST_NUMBER = 1 << 53
"""From here on readers of JSON differ."""


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("front matter has no use for aliases")
        return super().compose_node(parent, index)


def split_front_matter(lines: list[str]) -> tuple[dict[str, Any], int]:
    """Give the front matter of a page and the number of lines it takes, fences included.

    `lines` are the page's lines without their ends. Both results are empty for a page that has none. Something between two
    fences that is not a YAML mapping is not front matter but text.
    """
    end = front_matter_end(lines)
    source = "\n".join(lines[1 : end - 1]) if end else ""
    if not source or len(source) > _MAX_CHARACTERS:
        return {}, 0
    try:
        value = yaml.load(source, Loader=_PlainLoader)
    except Exception:  # noqa: BLE001 - PyYAML lets errors of every kind through for values that do not fit their tags
        return {}, 0
    return (value, end) if isinstance(value, dict) else ({}, 0)


def front_matter_end(lines: list[str]) -> int:
    """Give the number of lines up to and including the closing fence; 0 when the page does not begin with a fenced block."""
    if not lines or lines[0] != _FENCE:
        return 0
    return next((number + 1 for number, line in enumerate(lines) if number > 1 and line.startswith(_FENCE)), 0)


def text_field(front_matter: dict[str, Any], name: str) -> str | None:
    """Give a field as one line of text; None when it is missing, empty or not a single value."""
    value = front_matter.get(name)
    return _clean(value) or None


def tags_field(front_matter: dict[str, Any]) -> tuple[str, ...]:
    """Give the tags, from a list or from text with commas, each once and in order."""
    value = front_matter.get("tags")
    values = value if isinstance(value, list) else (text_field(front_matter, "tags") or "").split(",")
    return tuple(dict.fromkeys(tag for tag in map(_clean, values) if tag))


def json_safe(value: Any) -> Any:
    """Give front matter as JSON can hold it: dates and what else JSON has no kind for as text."""
    if isinstance(value, dict):
        return {_clean(name): json_safe(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set):
        return [json_safe(part) for part in value]
    is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < _LARGEST_NUMBER
    if value is None or isinstance(value, bool) or is_number:
        return value
    return _text(value if isinstance(value, str) else _clean(value) or repr(value))


def _text(value: str) -> str:
    """YAML can escape half characters; pairs of them are joined, single ones replaced."""
    return value.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def _clean(value: object) -> str:
    """Give a value as one line of text."""
    if not isinstance(value, str | int | float | date):
        return ""
    try:
        text = str(value)
    except ValueError:  # a number of more digits than Python writes out
        return ""
    return " ".join(_text(text).split())
