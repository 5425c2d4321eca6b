"""From a query's vector to passages: the nearest vectors, their chunks, each page's share limited, neighbours joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.generations import Generation
from otterwiki_semantic.records import Hit

_LEAST_CANDIDATES = 50
_CANDIDATES_PER_RESULT = 5
_GROWTH = 4
_JOINABLE_PER_RESULT = 3
_MOST_JOINED = 3


def nearest_passages(generation: Generation, vector: Matrix, n: int, max_chunks_per_page: int) -> tuple[Hit, ...]:
    """Give the `n` passages nearest to a query's vector, at most `max_chunks_per_page` of one page; fewer if there are fewer.

    A page with many near passages can crowd out the candidates; then more of them are asked for.
    """
    count = max(_LEAST_CANDIDATES, _CANDIDATES_PER_RESULT * n)
    while True:
        distances = generation.nearest(vector, count)
        candidates = generation.catalog.hits(distances)
        chosen = _limit_pages(candidates, max_chunks_per_page)[:n]
        if len(chosen) == n or len(distances) < count:
            return tuple(join_neighbours(chosen, candidates[: _JOINABLE_PER_RESULT * n]))
        count *= _GROWTH


def _limit_pages(hits: Iterable[Hit], most: int) -> list[Hit]:
    taken: Counter[str] = Counter()
    kept: list[Hit] = []
    for hit in hits:
        if taken[hit.path] < most:
            taken[hit.path] += 1
            kept.append(hit)
    return kept


def join_neighbours(chosen: Sequence[Hit], candidates: Sequence[Hit]) -> list[Hit]:
    """Give the chosen hits with the `text` of those candidates joined that stand right before or after them in the page.

    What an answer needs often goes on beyond a chunk's end. A candidate that is a result itself is joined to no other one, and
    at most three chunks make a text.
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


def _with_text(hit: Hit, run: Sequence[Hit]) -> Hit:
    if len(run) == 1:
        return hit
    text = run[0].snippet
    for before, following in pairwise(run):
        goes_on = following.overlap_length > 0 or before.section_path == following.section_path
        new = following.snippet[following.prefix_length + following.overlap_length :]
        text += ("" if new[:1].isspace() else "\n\n") + new if goes_on else f"\n\n{following.snippet}"
    lines = [line for part in run for line in (part.start_line, part.end_line)]
    headings = tuple(dict.fromkeys(heading for part in run for heading in part.headings))
    return replace(hit, text=text, headings=headings, text_start_line=min(lines), text_end_line=max(lines))
