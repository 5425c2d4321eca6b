"""YAML front matter, recognised as in the wiki, and the fields that the index uses."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import yaml

_FENCE = "---"
_MAX_CHARACTERS = 65_536
_LARGEST_NUMBER = 1 << 53
"""JSON parsers disagree on larger integers."""


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases, because a few lines of aliases can expand to gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("front matter has no use for aliases")
        return super().compose_node(parent, index)


def split_front_matter(lines: list[str]) -> tuple[dict[str, Any], int]:
    """Return the front matter in a page's lines and its number of lines, fences included; ``({}, 0)`` if there is none."""
    end = front_matter_end(lines)
    source = "\n".join(lines[1 : end - 1]) if end else ""
    if not source or len(source) > _MAX_CHARACTERS:
        return {}, 0
    try:
        value = yaml.load(source, Loader=_PlainLoader)
    except Exception:  # noqa: BLE001 - PyYAML raises errors of any kind for values that do not fit their tags
        return {}, 0
    return (value, end) if isinstance(value, dict) else ({}, 0)


def front_matter_end(lines: list[str]) -> int:
    """Return the number of lines through the closing fence; 0 if the page does not begin with a fenced block."""
    if not lines or lines[0] != _FENCE:
        return 0
    return next((number + 1 for number, line in enumerate(lines) if number > 1 and line.startswith(_FENCE)), 0)


def text_field(front_matter: dict[str, Any], name: str) -> str | None:
    """Return a field as one line of text; None if it is missing, empty or not a single value."""
    return _one_line(front_matter.get(name)) or None


def list_field(front_matter: dict[str, Any], name: str, separator: str | None = ",") -> tuple[str, ...]:
    """Return a field's distinct texts in order, from a list or a text; a text is split at `separator`, if given."""
    value = front_matter.get(name)
    text = text_field(front_matter, name) or ""
    values = value if isinstance(value, list) else text.split(separator) if separator else [text]
    return tuple(dict.fromkeys(text for text in map(_one_line, values) if text))


def json_safe(value: Any) -> Any:
    """Return front matter with values that JSON has no type for, such as dates, as text."""
    if isinstance(value, dict):
        return {_one_line(name): json_safe(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set):
        return [json_safe(each) for each in value]
    is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) < _LARGEST_NUMBER
    if value is None or isinstance(value, bool) or is_number:
        return value
    return _without_surrogates(value if isinstance(value, str) else _one_line(value) or repr(value))


def _without_surrogates(value: str) -> str:
    """Return a text with surrogate pairs, which YAML can escape, joined, and lone surrogates replaced."""
    return value.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def _one_line(value: object) -> str:
    if not isinstance(value, str | int | float | date):
        return ""
    try:
        text = str(value)
    except ValueError:  # more digits than Python converts
        return ""
    return " ".join(_without_surrogates(text).split())
