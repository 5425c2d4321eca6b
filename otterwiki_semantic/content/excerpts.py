"""Excerpts: the part of a passage that shows why it matches, and table rows as text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import TypeVar

from otterwiki_semantic.content.sentences import sentence_ends

Range = tuple[int, int]
T = TypeVar("T")

_VISIBLE = 7 / 18
"""Share of an excerpt that is visible everywhere; it should contain most matches."""
_FILLED = 0.3
"""Share of an excerpt that fills about two lines and is visible even in the palette on a phone."""
_LEAD = 1 / 6
"""Share of an excerpt that is shown before the first match."""
_LONGEST_WORD = 30
"""Characters within which to look for a word boundary; text without spaces has none."""


def excerpt_window(
    text: str, start: int, matches: Sequence[Range], best_sentence: Range | None, size: int, *, is_filled: bool = False
) -> Range:
    """Return where to cut a passage, between words: about `size` characters after `start`.

    The excerpt contains the best sentence, or else as many of the `matches` (in order) as possible, and begins shortly before
    them. It begins earlier if the passage ends soon: with `is_filled`, before `size` characters; otherwise at a sentence or
    line within about two lines of the end, or at any word if less than one line would be left.
    """
    start += len(text[start:]) - len(text[start:].lstrip())
    if best_sentence is not None:
        first = max(start, best_sentence[0]) if best_sentence[1] - start > _VISIBLE * size else start
    elif matches:
        first = _best_start(text, start, matches, size)
    else:
        first = start
    least = size if is_filled else int(_FILLED * size)
    if (begin := max(start, len(text) - least)) < first:
        ends = sentence_ends(text, begin, at_lines=True) if begin > start and not is_filled else iter(())
        if (end := next(ends, len(text))) <= first:
            first = end
        elif is_filled or begin == start or len(text) - first < least // 2:
            first = min(first, _start_of_word(text, begin, start, _LONGEST_WORD))
    return first, len(text) if len(text) - first <= size else _end_of_word(text, first, first + size)


def row_parts(cells: Sequence[T], names: Sequence[T]) -> Iterator[T | str]:
    """Yield the parts of a table row as text: `photos`, a dash, `runs on: otter · since: 2024`.

    Without a name for each cell, no cell has one: `photos · otter · 2024`.
    """
    filled = [at for at, cell in enumerate(cells) if cell]
    has_names = len(names) >= len(cells)
    for at in filled:
        name = names[at] if at and has_names else None
        if at != filled[0]:
            yield " – " if name and at == filled[1] and not filled[0] else " · "
        if name:
            yield from (name, ": ")
        yield cells[at]


def _best_start(text: str, start: int, matches: Sequence[Range], size: int) -> int:
    """Return the start of the window with the most matches; the first one in case of a tie."""
    lead = int(_LEAD * size)
    starts, ends = [begin for begin, _ in matches], [end for _, end in matches]
    visible = max(_VISIBLE * size, lead + max(end - begin for begin, end in matches))

    def matches_from(first: int) -> int:
        return bisect_right(ends, first + visible) - bisect_left(starts, first)

    begins = [start, *(max(start, begin - lead) for begin, _ in matches)]
    return _start_of_word(text, max(begins, key=lambda begin: (matches_from(begin), -begin)), start, lead // 2)


def _start_of_word(text: str, place: int, least: int, reach: int) -> int:
    """Return the start of a word shortly after a position, or else shortly before it; the position itself in unspaced text."""
    if place <= least:
        return least
    after = range(place - 1, min(place + reach, len(text)))
    before = range(place - 1, max(least, place - _LONGEST_WORD) - 1, -1)
    space = next((at for places in (after, before) for at in places if text[at].isspace()), None)
    return place if space is None else space + 1


def _end_of_word(text: str, first: int, place: int) -> int:
    """Return the end of a word at or shortly before a position; the position itself in text without spaces."""
    places = range(place, max(first, place - _LONGEST_WORD), -1)
    return next((at for at in places if text[at].isspace()), place)
