"""A page's table of contents, and lookup of sections by name.

A section reaches from its heading, inclusive, to the next heading of the same or a higher level.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import product

from rapidfuzz import fuzz

from otterwiki_semantic.content.analysis.tokenizer import fold, name_key
from otterwiki_semantic.content.chunking.chunker import shorten_heading
from otterwiki_semantic.content.chunking.sizes import count_words, section_size
from otterwiki_semantic.core.chunk_profiles import SizeUnit
from otterwiki_semantic.core.errors import AmbiguousSectionError, SectionNotFoundError
from otterwiki_semantic.core.records import Document, OutlineEntry, Section

_SEPARATOR = re.compile(r"(?:(?<!\s)\s++)?([>/])\s*+")
_ANCHORED = re.compile(r"\A(?:(?P<path>.*)\()?#(?P<anchor>[^\s()]*)\)?$", re.DOTALL)
"""``#anchor``, or a name as shown in errors: ``A > B (#anchor)``."""
_LEADING_HASHES = re.compile(r"^#{1,6}\s+")
_MAX_NAMED = 8
_MAX_LISTED = 200
_CACHED = 10_000


def outline(document: Document, last_line: int) -> tuple[OutlineEntry, ...]:
    """Return the sections of a page with `last_line` lines; the text before the first heading is a section of level 0."""
    sections = document.sections
    counts = [section_word_count(section) for section in sections]
    entries = []
    for number, section in enumerate(sections):
        end = number + 1
        while section.level and end < len(sections) and sections[end].level > section.level:
            end += 1
        last, words = min(sections[end - 1].end_line, last_line), sum(counts[number:end])
        named = section.heading, section.level, section.path, section.anchor
        entries.append(OutlineEntry(*named, section.start_line, last, words))
    return tuple(entries)


def section_word_count(section: Section) -> int:
    """Return the number of words in a section without its subsections, heading included."""
    return count_words(section.heading) + section_size(section, SizeUnit.WORDS)


@lru_cache(_CACHED)
def _key(text: str) -> str:
    """Return a name without case, accents and redundant spaces."""
    return _SEPARATOR.sub(r"\1", fold(" ".join(text.split())))


def _path_key(path: str) -> str:
    """Return the key of a path, written with ``>`` or ``/``."""
    return _key(path).replace(">", "/")


def _path_keys(entry: OutlineEntry, title: str) -> set[str]:
    return set(map(_path_key, _paths(entry, title)))


def _paths(entry: OutlineEntry, title: str, separator: str = "/") -> list[str]:
    """Return every path of a section, longest first, then the paths with long headings cut, as search results show them."""
    path = (title, *entry.path) if title else entry.path
    cut = tuple(map(shorten_heading, path))
    return [separator.join(each[start:]) for each in dict.fromkeys((path, cut)) for start in range(len(each))]


class SectionName:
    """The name of a requested section, in the forms to compare."""

    def __init__(self, text: str, title: str) -> None:
        anchored = _ANCHORED.match(text)
        self.key, self.path_key = _key(text), _path_key(text)
        self.parts = [_key(part) for part in _SEPARATOR.split(text)[::2]]
        self.letters = name_key(text)
        self.anchor = anchored["anchor"] if anchored else None
        self.anchored = _path_key(anchored["path"]) if anchored and anchored["path"] else None
        """The path before the anchor."""
        self.title = title


MATCHERS: tuple[tuple[str, Callable[[SectionName, OutlineEntry], bool]], ...] = (
    ("heading", lambda name, entry: name.key == _key(entry.heading)),
    ("path", lambda name, entry: any(name.key in map(_key, _paths(entry, name.title, each)) for each in (" > ", "/"))),
    ("path with any separators", lambda name, entry: name.path_key in _path_keys(entry, name.title)),
    # Two headings can share an anchor: the wiki gives A, A and A-1 the anchors a, a-1 and a-1.
    ("path and anchor", lambda name, entry: name.anchor == entry.anchor and name.anchored in _path_keys(entry, name.title)),
    ("anchor", lambda name, entry: name.anchor == entry.anchor),
    ("path with headings left out", lambda name, entry: name.parts[-1] == _key(entry.heading) and _is_on_path(name, entry)),
    ("letters and digits", lambda name, entry: name.letters in map(name_key, _paths(entry, name.title))),
)
"""Meanings of a name, strictest first. A path is the section's heading after any number of the headings above it."""


def find_section(entries: Sequence[OutlineEntry], name: str, title: str = "") -> OutlineEntry:
    """Return the section with this name: the first of `MATCHERS` that matches any section decides.

    Case, accents, spaces and ``#`` before the name are ignored. `title` is the page's. Errors: `SectionNotFoundError` and
    `AmbiguousSectionError`, both with valid names, nearest first.
    """
    headed = [entry for entry in entries if entry.level]
    spellings = dict.fromkeys((name.strip(), _LEADING_HASHES.sub("", name.strip())))
    readings = product(MATCHERS, [SectionName(spelling, title) for spelling in spellings])
    for (kind, matches), wanted in readings:
        found = [entry for entry in headed if matches(wanted, entry)]
        if len(found) == 1:
            return found[0]
        if found:
            names = [full_name for entry, full_name in zip(headed, full_names(headed, title), strict=True) if entry in found]
            listed = "; ".join(names[:_MAX_NAMED])
            message = f"{len(found)} sections match {name!r} by {kind}; ask for one of them: {listed}"
            raise AmbiguousSectionError(message, names)
    raise _not_found(name, headed, title)


def _is_on_path(name: SectionName, entry: OutlineEntry) -> bool:
    rest = map(_key, (name.title, *entry.path))
    return all(part in rest for part in name.parts)


def full_names(entries: Sequence[OutlineEntry], title: str = "") -> list[str]:
    """Return a unique name for each section with a heading: its path, with its anchor if the path is ambiguous."""
    meanings = _count_meanings(entries, title)
    names = [" > ".join(map(shorten_heading, entry.path)) for entry in entries]
    return [
        f"{name} (#{entry.anchor})" if entry.level and meanings[_path_key(name)] > 1 else name
        for name, entry in zip(names, entries, strict=True)
    ]


def short_names(entries: Sequence[OutlineEntry], title: str = "") -> list[str]:
    """Return the shortest unique name for each section: its heading, after as many headings above it as necessary."""
    meanings = _count_meanings(entries, title)
    names = []
    for entry, full_name in zip(entries, full_names(entries, title), strict=True):
        paths = (" > ".join(map(shorten_heading, entry.path[start:])) for start in range(len(entry.path) - 1, -1, -1))
        names.append(next((path for path in paths if meanings[_path_key(path)] == 1), full_name))
    return names


def _count_meanings(entries: Iterable[OutlineEntry], title: str) -> Counter[str]:
    return Counter(key for entry in entries if entry.level for key in _path_keys(entry, title))


def _not_found(name: str, headed: Sequence[OutlineEntry], title: str) -> SectionNotFoundError:
    if not headed:
        return SectionNotFoundError(f"there is no section {name!r}: the page has no headings", ())
    heading = _SEPARATOR.split(name.strip())[-1]

    def similarity(entry: OutlineEntry) -> float:
        return max(fuzz.ratio(_key(heading), _key(entry.heading)), fuzz.ratio(_key(name), _key(" > ".join(entry.path))))

    nearest = sorted(zip(headed, full_names(headed, title), strict=True), key=lambda item: -similarity(item[0]))
    names = [full_name for _, full_name in nearest[:_MAX_LISTED]]
    listed = "; ".join(names[:_MAX_NAMED])
    return SectionNotFoundError(f"there is no section {name!r}; the page has, nearest first: {listed}", names)
