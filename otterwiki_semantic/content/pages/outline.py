"""The sections of a page by name: what a table of contents shows, and which lines a heading's name stands for.

A section is all from its heading, which is included, to the next one of the same or a higher level.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from otterwiki_semantic.content.analysis.tokenizer import fold, name_key
from otterwiki_semantic.content.analysis.trigrams import trigram_similarity
from otterwiki_semantic.content.chunking.chunker import shorten_heading
from otterwiki_semantic.content.chunking.sizes import Unit, count_words, section_size
from otterwiki_semantic.core.errors import AmbiguousSectionError, SectionNotFoundError
from otterwiki_semantic.core.records import Document, OutlineEntry, Section

_SEPARATOR = re.compile(r"\s*[>/]\s*")
_SPACED_SIGN = re.compile(r"\s*([>/])\s*")
_MARK = re.compile(r"(?:^|(?P<path>.*)\()#(?P<anchor>[^\s()]*)\)?$", re.DOTALL)
"""``#anchor``, or a name as errors list it: ``A > B (#anchor)``."""
_LEADING_SIGNS = re.compile(r"^#{1,6}\s+")
_MOST_NAMED = 8
_CACHED = 10_000
_MOST_LISTED = 200


def outline(document: Document, last_line: int) -> tuple[OutlineEntry, ...]:
    """Give the sections of a page of so many lines; the text before the first heading is one of level 0, without a heading."""
    sections = document.sections
    words = [section_word_count(section) for section in sections]
    entries = []
    for number, section in enumerate(sections):
        below = number + 1
        while section.level and below < len(sections) and sections[below].level > section.level:
            below += 1
        entries.append(
            OutlineEntry(
                heading=section.heading,
                level=section.level,
                path=section.path,
                anchor=section.anchor,
                start_line=section.start_line,
                end_line=min(sections[below - 1].end_line, last_line),
                word_count=sum(words[number:below]),
            )
        )
    return tuple(entries)


def section_word_count(section: Section) -> int:
    """Return the number of words of a section without its subsections, heading included."""
    return count_words(section.heading) + section_size(section, Unit.WORDS)


def find_section(entries: Sequence[OutlineEntry], name: str, title: str = "") -> OutlineEntry:
    """Give the section that a name stands for: its heading, narrowed by those above it (``A/B``, ``A > B``), or its anchor.

    Case, accents and spaces do not count; where nothing else fits, punctuation does not either, and headings between those
    named may be left out. `title` is the page's, which may stand first. Errors: `SectionNotFoundError` and
    `AmbiguousSectionError`, both with the names that would do, nearest first.
    """
    headed = [entry for entry in entries if entry.level]
    for matches in _ways(name, title):
        found = [entry for entry in headed if matches(entry)]
        if len(found) == 1:
            return found[0]
        if found:
            raise _ambiguous(name, found, headed, title)
    raise _unknown(name, headed, title)


def _ways(name: str, title: str) -> Iterable[Callable[[OutlineEntry], bool]]:
    """Give the ways in which an entry can be meant, the strictest first; what was written decides between ``>`` and ``/``."""
    plain = _LEADING_SIGNS.sub("", name.strip())
    yield from _ways_as_written(name, title)
    if plain != name.strip():
        yield from _ways_as_written(plain, title)
    loosest = name_key(plain)
    parts = [_key(part) for part in _SEPARATOR.split(plain)]
    mark = _MARK.match(name.strip())
    if mark and mark["path"]:  # an anchor may be that of two headings: the wiki gives A, A and A-1 the anchors a, a-1 and a-1
        named = _any_key(mark["path"])
        yield lambda entry: entry.anchor == mark["anchor"] and named in {_any_key(joined) for joined in _suffixes(entry, title)}
    if mark:
        yield lambda entry: entry.anchor == mark["anchor"]
    yield lambda entry: _key(entry.heading) == parts[-1] and _in_order(parts, [_key(part) for part in (title, *entry.path)])
    yield lambda entry: loosest in {name_key(joined) for joined in _suffixes(entry, title)}


def _ways_as_written(name: str, title: str) -> Iterable[Callable[[OutlineEntry], bool]]:
    wanted, loose = _key(name), _any_key(name)
    yield lambda entry: _key(entry.heading) == wanted
    yield lambda entry: wanted in {_key(joined) for sign in (" > ", "/") for joined in _suffixes(entry, title, sign)}
    yield lambda entry: loose in {_any_key(joined) for joined in _suffixes(entry, title)}


@lru_cache(_CACHED)
def _key(text: str) -> str:
    """Give a name without case, accents and needless spaces."""
    return _SPACED_SIGN.sub(r"\1", fold(" ".join(text.split())))


def _any_key(text: str) -> str:
    """Give the same with ``>`` and ``/`` for the same."""
    return _key(text).replace(">", "/")


def _suffixes(entry: OutlineEntry, title: str, sign: str = "/") -> list[str]:
    """Give the headings that lead to a section, from each of them on; each as it is shown, and as search results cut it."""
    path = (title, *entry.path) if title else entry.path
    cut = tuple(map(shorten_heading, path))
    paths = (path,) if cut == path else (path, cut)
    return [sign.join(each[start:]) for each in paths for start in range(len(each))]


def _in_order(parts: Iterable[str], path: Iterable[str]) -> bool:
    rest = iter(path)
    return all(part in rest for part in parts)


def full_names(entries: Sequence[OutlineEntry], title: str = "") -> list[str]:
    """Give a name for each section that stands for it alone: its path, with its anchor where others could be meant, too.

    The text before the first heading has none.
    """
    return _whole_names(entries, _meanings(entries, title))


def _whole_names(entries: Sequence[OutlineEntry], counts: Counter[str]) -> list[str]:
    names = [" > ".join(map(shorten_heading, entry.path)) for entry in entries]
    return [
        f"{name} (#{entry.anchor})" if entry.level and counts[_any_key(name)] > 1 else name
        for name, entry in zip(names, entries, strict=True)
    ]


def short_names(entries: Sequence[OutlineEntry], title: str = "") -> list[str]:
    """Give the shortest name for each section that stands for it alone: its heading, with as many above it as it takes."""
    counts = _meanings(entries, title)
    names = []
    for entry, whole in zip(entries, _whole_names(entries, counts), strict=True):
        trails = (" > ".join(map(shorten_heading, entry.path[start:])) for start in range(len(entry.path) - 1, -1, -1))
        names.append(next((trail for trail in trails if counts[_any_key(trail)] == 1), whole))
    return names


def _meanings(entries: Iterable[OutlineEntry], title: str) -> Counter[str]:
    """Count how many sections each name could mean."""
    headed = (entry for entry in entries if entry.level)
    return Counter(key for entry in headed for key in {_any_key(suffix) for suffix in _suffixes(entry, title)})


def _ambiguous(name: str, found: Sequence[OutlineEntry], headed: Sequence[OutlineEntry], title: str) -> AmbiguousSectionError:
    meant = {id(entry) for entry in found}
    names = [shown for entry, shown in zip(headed, full_names(headed, title), strict=True) if id(entry) in meant]
    listed = "; ".join(names[:_MOST_NAMED])
    return AmbiguousSectionError(f"{len(found)} sections are named {name!r}; ask for one of them: {listed}", names)


def _unknown(name: str, headed: Sequence[OutlineEntry], title: str) -> SectionNotFoundError:
    if not headed:
        return SectionNotFoundError(f"there is no section {name!r}: the page has no headings", ())
    last = _SEPARATOR.split(name.strip())[-1]

    def distance(entry: OutlineEntry) -> float:
        return -max(trigram_similarity(last, entry.heading), trigram_similarity(name, " > ".join(entry.path)))

    nearest = sorted(zip(headed, full_names(headed, title), strict=True), key=lambda item: distance(item[0]))
    names = [shown for _, shown in nearest[:_MOST_LISTED]]
    listed = "; ".join(names[:_MOST_NAMED])
    return SectionNotFoundError(f"there is no section {name!r}; the page has, nearest first: {listed}", names)
