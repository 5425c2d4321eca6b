"""Find pages and attached files that share nearly equal passages: candidates by MinHash signature, confirmed by their words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from textwrap import shorten

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis.minhash import MIN_SHARED, ShingledText, Signatures
from otterwiki_semantic.core.records import Finding, FindingKind, PlaceInPage
from otterwiki_semantic.daemon.health.survey import MAX_FINDINGS, MAX_PAGES, Findings, Survey, new_finding, place_of
from otterwiki_semantic.storage import ExactIndex

_BANDS = ((0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (6, 7))
"""Positions in a signature. Any four positions include one of these pairs, because three sets cannot separate four (Turán)."""
_MAX_PAIRS = 50_000
_MAX_RUN = 16
"""The largest run of equal bands that is compared completely; in a longer one, each passage with the first and the next."""
_MIN_WORDS = 20
"""Shorter passages repeat by chance."""
_EXCERPT = 160
_BATCH = 100

Pair = tuple[int, int]


def find_duplicates(survey: Survey) -> Findings:
    """Return a finding for each set of pages that share passages, most shared passages first."""
    index = survey.index
    groups = _groups(_confirmed(survey, sorted(_candidates(index, survey))))
    chunks = np.array([chunk for group in groups for chunk in group], dtype=np.int64)
    pages_of = index.columns.pages[np.searchsorted(index.columns.ids, chunks)]
    paths = {chunk: index.paths[page] for chunk, page in zip(chunks.tolist(), pages_of.tolist(), strict=True)}
    shared: defaultdict[tuple[str, ...], list[list[int]]] = defaultdict(list)
    for group in groups:
        shared[tuple(sorted({paths[chunk] for chunk in group}))].append(group)
    largest = sorted(shared, key=lambda pages: (-len(shared[pages]), pages))[:MAX_FINDINGS]
    return [_finding(survey, pages, shared[pages]) for pages in largest]


def _finding(survey: Survey, pages: tuple[str, ...], groups: list[list[int]]) -> Finding:
    survey.rest()
    chunks = survey.generation.catalog.reader.chunks(min(groups)[: 4 * MAX_PAGES])
    places: dict[str, PlaceInPage] = {}
    for chunk in chunks.values():
        text = chunk.text[chunk.prefix_length + chunk.overlap_length :]
        places.setdefault(chunk.path, place_of(chunk, shorten(text, _EXCERPT, placeholder=" …")))
    shown = [places.get(page) or survey.page(page) for page in pages[:MAX_PAGES]]
    return new_finding(FindingKind.DUPLICATE, *pages, pages=shown, total_pages=len(pages), passages=len(groups))


def _candidates(index: ExactIndex, survey: Survey) -> set[Pair]:
    """Return pairs of chunks on different pages with similar signatures, by id."""
    rows = np.flatnonzero(index.live)
    signatures, pages, ids = index.columns.signatures[rows], index.columns.pages[rows], index.columns.ids[rows]
    found: set[Pair] = set()
    for first, second in _BANDS:
        keys = signatures[:, first].astype(np.uint64) << np.uint64(32) | signatures[:, second]
        for run in _runs(keys):
            found.update((int(ids[one]), int(ids[other])) for one, other in _alike(run, signatures, pages))
            survey.rest()
            if len(found) >= _MAX_PAIRS:
                return found
    return found


def _runs(keys: npt.NDArray[np.uint64]) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the positions of keys that occur several times."""
    order = np.argsort(keys, kind="stable")
    is_first = np.concatenate(([True], np.diff(keys[order]) != 0, [True])) if len(keys) else np.array([True])
    starts = np.flatnonzero(is_first)
    for number in np.flatnonzero(np.diff(starts) > 1).tolist():
        yield order[starts[number] : starts[number + 1]]


def _alike(run: npt.NDArray[np.intp], signatures: Signatures, pages: npt.NDArray[np.int32]) -> Iterator[Pair]:
    of_run = run.tolist()
    pairs: Iterable[Pair] = combinations(of_run, 2)
    if len(of_run) > _MAX_RUN:
        _, firsts = np.unique(pages[run], return_index=True)
        of_run = run[np.sort(firsts)].tolist()
        pairs = {(of_run[max(0, place - step)], of_run[place]) for place in range(1, len(of_run)) for step in (1, place)}
    for one, other in pairs:
        if pages[one] != pages[other] and np.count_nonzero(signatures[one] == signatures[other]) >= MIN_SHARED:
            yield min(one, other), max(one, other)


def _confirmed(survey: Survey, pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield the pairs whose texts are long enough and nearly equal."""
    for first in range(0, len(pairs), _BATCH):
        batch = pairs[first : first + _BATCH]
        stored = survey.generation.catalog.keywords.stored_words(sorted({chunk for pair in batch for chunk in pair}))
        bodies = {chunk: body for chunk, (_, body) in stored.items() if body.count(" ") + 1 >= _MIN_WORDS}
        texts = {chunk: ShingledText(body) for chunk, body in bodies.items()}
        for one, other in batch:
            if one in texts and other in texts:
                if bodies[one] == bodies[other] or texts[one].is_near_duplicate_of(texts[other]):
                    yield one, other
                survey.rest()


def _groups(pairs: Iterable[Pair]) -> list[list[int]]:
    """Return the connected groups of chunks."""
    group_of: dict[int, list[int]] = {}
    for pair in pairs:
        smaller, larger = sorted((group_of.setdefault(chunk, [chunk]) for chunk in pair), key=len)
        if smaller is not larger:
            larger += smaller
            group_of |= dict.fromkeys(smaller, larger)
    return sorted(sorted(group) for group in {id(group): group for group in group_of.values()}.values())
