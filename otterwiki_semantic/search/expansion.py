"""What a result gives to read: its passage joined with good neighbours, and on request those around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from otterwiki_semantic.core.records import Hit

_MOST_JOINED = 3


def join_neighbours(chosen: Sequence[Hit], candidates: Sequence[Hit]) -> list[Hit]:
    """Give the chosen hits with the `text` of those candidates joined that stand right before or after them in the page.

    What an answer needs often goes on beyond a chunk's end. A candidate that is a result itself is joined to no other one, and
    at most three chunks make a text. What a text would only repeat of the chunk before it is left out.
    """
    taken = {(hit.path, hit.chunk_index) for hit in chosen}
    runs = [[hit] for hit in chosen]
    for candidate in candidates:
        if (candidate.path, candidate.chunk_index) in taken:
            continue
        for run in runs:
            is_next = candidate.chunk_index in (run[0].chunk_index - 1, run[-1].chunk_index + 1)
            if candidate.path == run[0].path and is_next and len(run) < _MOST_JOINED:
                run.insert(0 if candidate.chunk_index < run[0].chunk_index else len(run), candidate)
                taken.add((candidate.path, candidate.chunk_index))
                break
    return [_with_text(hit, run) for hit, run in zip(chosen, runs, strict=True)]


def add_context(hit: Hit, chunks: int, page_hits: Callable[[str, int, int], Sequence[Hit]]) -> Hit:
    """Give a hit with the text of up to `chunks` passages before and after its own, as `page_hits` reads them."""
    around = page_hits(hit.path, hit.chunk_index - chunks, hit.chunk_index + chunks)
    before = [other for other in around if other.chunk_index < hit.chunk_index]
    after = [other for other in around if other.chunk_index > hit.chunk_index]
    return replace(hit, context_before=_text_of(before) or None, context_after=_text_of(after) or None)


def _with_text(hit: Hit, run: Sequence[Hit]) -> Hit:
    lines = [line for part in run for line in (part.start_line, part.end_line)]
    headings = tuple(dict.fromkeys(heading for part in run for heading in part.headings))
    return replace(hit, text=_text_of(run), headings=headings, text_start_line=min(lines), text_end_line=max(lines))


def _text_of(run: Sequence[Hit]) -> str:
    """Give the text of consecutive chunks: each word once, and the heading path where it changes."""
    if not run:
        return ""
    text = run[0].snippet[: run[0].prefix_length] + _own(run[0]).lstrip()
    for before, following in pairwise(run):
        goes_on = following.overlap_length > 0 or before.section_path == following.section_path
        new = _own(following)
        text += ("" if new[:1].isspace() else "\n\n") + new if goes_on else f"\n\n{following.snippet}"
    return text


def _own(hit: Hit) -> str:
    return hit.snippet[hit.prefix_length + hit.overlap_length :]
