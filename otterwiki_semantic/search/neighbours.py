"""Neighbour expansion: join a result's chunk with good neighbours, and show those around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from otterwiki_semantic.core.records import StoredChunk

_MAX_JOINED = 3


def chunk_runs(
    chosen: Sequence[StoredChunk], candidates: Sequence[StoredChunk], taken: set[tuple[str, int]]
) -> list[list[StoredChunk]]:
    """Return for each chosen chunk the run that it is read in: itself, and candidates next to it in the page, in order.

    What an answer needs often goes on beyond a chunk's end. A candidate that is a result itself joins no other run, and a run
    has up to three chunks. Those that are `taken` join none; all of the runs are added to them.
    """
    taken.update((chunk.path, chunk.chunk_index) for chunk in chosen)
    runs = [[chunk] for chunk in chosen]
    for candidate in candidates:
        if (candidate.path, candidate.chunk_index) in taken:
            continue
        for run in runs:
            is_next = candidate.chunk_index in (run[0].chunk_index - 1, run[-1].chunk_index + 1)
            if candidate.path == run[0].path and is_next and len(run) < _MAX_JOINED:
                run.insert(0 if candidate.chunk_index < run[0].chunk_index else len(run), candidate)
                taken.add((candidate.path, candidate.chunk_index))
                break
    return runs


def joined_text(run: Sequence[StoredChunk]) -> str:
    """Return the text of consecutive chunks: each word once, and the heading path where it changes."""
    if not run:
        return ""
    text = run[0].text[: run[0].prefix_length] + _own(run[0]).lstrip()
    for before, following in pairwise(run):
        goes_on = following.overlap_length > 0 or before.section_path == following.section_path
        new = _own(following)
        text += ("" if new[:1].isspace() else "\n\n") + new if goes_on else f"\n\n{following.text}"
    return text


def context_around(
    chunk: StoredChunk, count: int, page_chunks: Callable[[str, int, int], Sequence[StoredChunk]]
) -> tuple[str | None, str | None]:
    """Return the text of up to `count` chunks before and after a chunk, None where there are none.

    `page_chunks` reads the chunks of a page from one index to another.
    """
    if not count:
        return None, None
    around = page_chunks(chunk.path, chunk.chunk_index - count, chunk.chunk_index + count)
    before = [other for other in around if other.chunk_index < chunk.chunk_index]
    after = [other for other in around if other.chunk_index > chunk.chunk_index]
    return joined_text(before) or None, joined_text(after) or None


def _own(chunk: StoredChunk) -> str:
    return chunk.text[chunk.prefix_length + chunk.overlap_length :]
