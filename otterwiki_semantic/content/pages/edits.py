"""Changes to the text of a page. As in Markdown, a line ends with a line feed, a carriage return, or both."""

from __future__ import annotations

import difflib
import re

_NEWLINE = re.compile(r"\r\n?")
_ITEM = re.compile(r"\A[ \t]*+(?:([-*+])|\d{1,9}([.)]))[ \t]+\S")
_ROW = re.compile(r" {0,3}\|")
_DELIMITER_ROW = re.compile(r"\A[ \t|:]*+-[ \t|:-]*+")
_MAX_COMPARED = 5_000
"""The most lines to compare in each text; ten times as many repetitive lines take half a minute."""


def normalize_newlines(text: str) -> str:
    """Convert all line ends to line feeds."""
    return _NEWLINE.sub("\n", text)


def saved_text(text: str) -> str:
    """Return a text as a page is saved: without empty lines around it, and with a line feed at its end."""
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", normalize_newlines(text)).rstrip() + "\n"


def count_occurrences(text: str, part: str) -> int:
    """Count the non-overlapping occurrences of `part`. If the only two occurrences overlap, return 2."""
    count = text.count(part) if part else 0
    return 2 if count == 1 and text.find(part, text.find(part) + 1) >= 0 else count


def append_after(text: str, line: int, addition: str) -> str:
    """Insert an addition below a line (from 1), after an empty line unless it continues a list or a table."""
    lines = normalize_newlines(text).split("\n")
    before, after = "\n".join(lines[:line]).rstrip(), "\n".join(lines[line:])
    addition = saved_text(addition).removesuffix("\n")
    if addition and _continues(before, addition):
        before, addition = "", f"{before}\n{addition}"
    parts = (before, addition, saved_text(after).removesuffix("\n"))
    return "\n\n".join(part for part in parts if part) + "\n"


def _continues(before: str, addition: str) -> bool:
    last, (first, *others) = before.rpartition("\n")[2], addition.split("\n")
    if (item := _ITEM.match(last)) and (other := _ITEM.match(first)):
        return item.groups() == other.groups()
    is_header = bool(others and _DELIMITER_ROW.fullmatch(others[0]))
    return bool(_ROW.match(last) and _ROW.match(first)) and not is_header


def unified_diff(before: str, after: str, names: tuple[str, str]) -> str:
    """Return the difference between two texts; empty if one has too many lines to compare."""
    old, new = (re.findall(r".*\n|.+\Z", normalize_newlines(text)) for text in (before, after))
    if max(len(old), len(new)) > _MAX_COMPARED:
        return ""
    lines = difflib.unified_diff(old, new, *names, n=2)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
