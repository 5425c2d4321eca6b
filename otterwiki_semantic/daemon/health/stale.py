"""Find pages unchanged for a year whose nearest pages have changed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from msgspec import structs

from otterwiki_semantic.core.records import Finding, FindingKind, PlaceInPage
from otterwiki_semantic.daemon.health.survey import MAX_FINDINGS, Findings, Survey, new_finding
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage import PageFacts, iso_time

_YEAR = 365 * 86_400
_NEIGHBOURS, _LEAST_CHANGED = 3, 2
"""The number of nearest pages to check, and how many of them must have changed since."""
_FLOOR = 0.5
"""The least similarity of such pages, on the bundled model's scale."""
_BLOCK = 64
"""Pages per batch that are compared with all others."""


def find_stale(survey: Survey) -> Findings:
    """Return a finding for each page that may be outdated, nearest neighbours first."""
    paths, means = survey.index.page_means()
    known = [row for row, path in enumerate(paths) if path in survey.by_path]
    pages, means = [survey.by_path[paths[row]] for row in known], means[known]
    since = time.time() - _YEAR
    old = [row for row, page in enumerate(pages) if page.updated is not None and page.updated < since]
    floor = survey.scale.from_bundled(_FLOOR)
    found: list[tuple[float, PageFacts, list[PageFacts]]] = []
    for row, near in _nearest(survey, means, old, floor):
        changed = [pages[other] for other, _ in near if (pages[other].updated or 0) > (pages[row].updated or 0)]
        if len(changed) >= min(_LEAST_CHANGED, len(near)) and changed:
            found.append((sum(similarity for _, similarity in near), pages[row], changed))
    found.sort(key=lambda each: (-each[0], each[1].path))
    return [_finding(survey, page, changed) for _, page, changed in found[:MAX_FINDINGS]]


def _finding(survey: Survey, page: PageFacts, changed: list[PageFacts]) -> Finding:
    def place(it: PageFacts) -> PlaceInPage:
        return structs.replace(survey.page(it.path), updated=iso_time(it.updated))

    about = page.path, str(page.updated)
    return new_finding(FindingKind.STALE, *about, pages=[place(page)], neighbours=tuple(map(place, changed)))


def _nearest(survey: Survey, means: Matrix, rows: list[int], floor: float) -> Iterator[tuple[int, list[tuple[int, float]]]]:
    """Yield rows with their nearest rows and similarities, nearest first."""
    count = min(_NEIGHBOURS + 1, len(means))
    for first in range(0, len(rows), _BLOCK):
        block = rows[first : first + _BLOCK]
        similarities = means[block] @ means.T
        near = np.argpartition(-similarities, count - 1, axis=1)[:, :count]
        for row, of_row, others in zip(block, similarities, near, strict=True):
            ranked = sorted(((int(other), float(of_row[other])) for other in others if other != row), key=lambda it: -it[1])
            yield row, [each for each in ranked[:_NEIGHBOURS] if each[1] >= floor]
        survey.rest()
