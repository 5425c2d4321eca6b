"""The syntax of Obsidian, Logseq and Dendron notes that differs from a wiki: links, tags and page properties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from typing import Any

from otterwiki_semantic.content.markdown.front_matter import list_field
from otterwiki_semantic.content.markdown.parser import parse_within_limits, split_lines
from otterwiki_semantic.content.pages.page import page_name
from otterwiki_semantic.content.pages.source import without_code
from otterwiki_semantic.core.humanize import ordinal
from otterwiki_semantic.core.records import Document, Notation

_LABELLED = re.compile(r"(!?)\[\[([^\[\]|\\\n]+)(\\?\|)([^\[\]\n]*)\]\]|!(?=\[\[)")
_TAG = re.compile(r"(?<!\S)#(?:\[\[([^\[\]\n]{1,100}+)\]\]|([\w/-]{1,100}+))")
_PROPERTY = re.compile(r"\A(?:- )?(tags|alias|aliases|title)::(.+)")
_JOURNAL = re.compile(r"\A(?:.*/)?journals/(\d{4})_(\d\d)_(\d\d)")
_VAULT = re.compile(r"(?<=[\[|])dendron://[^\[\]|/\n]+/")
_MAX_TAGS = 100


def parse_page(path: str, text: str, notation: Notation) -> Document:
    """Parse a page, or a note with its tags, aliases and title. Errors: `LimitExceededError`."""
    if notation.is_wiki:
        return parse_within_limits(text, page_first=notation.is_page_first)
    document = parse_within_limits(as_wiki_text(text, notation))
    return replace(document, front_matter=_note_fields(path, text, document.front_matter))


def as_wiki_text(text: str, notation: Notation) -> str:
    """Return a note with its links in wiki syntax, except in code: ``[[label|Page]]``, and embedded pages as links."""
    if notation.is_wiki or "[[" not in text:
        return text
    parts: list[str] = []
    done = 0
    if notation is Notation.DENDRON:
        prose = without_code(text)
        text = _VAULT.sub(lambda vault: "" if prose.startswith(vault[0], vault.start()) else vault[0], text)
    for match in _LABELLED.finditer(without_code(text)):
        embeds, page, bar, label = match.groups()
        is_swapped = page and notation is Notation.NOTES
        shown = "" if not page else f"[[{page}]]" if embeds else f"[[{label or page}{bar}{page}]]" if is_swapped else match[0]
        parts += (text[done : match.start()], shown)
        done = match.end()
    return "".join((*parts, text[done:]))


def _note_fields(path: str, text: str, front_matter: dict[str, Any]) -> dict[str, Any]:
    """Return the front matter with the text's tags and Logseq's properties, under the names of a wiki page."""
    properties = dict(_properties(text))
    in_text = (*_split(properties.get("tags", "")), *_text_tags(text))
    tags = (*_values(front_matter, "tags"), *_values(front_matter, "tag"), *in_text)
    aliases = (*_values(front_matter, "aliases"), *_values(front_matter, "alias"))
    aliases += tuple(_split(f"{properties.get('alias', '')},{properties.get('aliases', '')}"))
    name, day = page_name(path), _journal_day(path)
    aliases += (day.isoformat(),) if day else ()
    own_name = f"{day:%b} {ordinal(day.day)}, {day.year}" if day else namespaced(name)
    title = front_matter.get("title") or properties.get("title") or (None if name == own_name else own_name)
    found = {"tags": _unique(tags), "aliases": _unique(aliases), "title": title}
    return {**front_matter, **{field: value for field, value in found.items() if value}}


def _journal_day(path: str) -> date | None:
    """Return the day of a Logseq journal, which is named after it, such as ``Jan 15th, 2024``."""
    match = _JOURNAL.fullmatch(path)
    with suppress(ValueError):
        return date(*map(int, match.groups())) if match else None
    return None


def namespaced(name: str) -> str:
    """Return a path with the slashes that Logseq writes as ``___`` or ``%2F`` in file names."""
    return name.replace("___", "/").replace("%2F", "/").replace("%2f", "/")


def _values(front_matter: dict[str, Any], name: str) -> Iterator[str]:
    for value in list_field(front_matter, name):
        yield from value.split() if name.startswith("tag") and not isinstance(front_matter[name], list) else (value,)


def _split(value: str) -> Iterator[str]:
    yield from (part.strip().strip("[]#") for part in value.split(","))


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the properties at the beginning of a Logseq page."""
    for line in split_lines(text):
        if match := _PROPERTY.fullmatch(line):
            yield match[1], match[2].strip()
        elif "::" not in line:
            return


def _text_tags(text: str) -> Iterator[str]:
    for match in _TAG.finditer(without_code(text)):
        tag = match[1] or match[2]
        if any(character.isalpha() for character in tag):  # which an issue number has not
            yield tag


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for each in values if (value := each.strip().lstrip("#").strip("/"))))[:_MAX_TAGS]
