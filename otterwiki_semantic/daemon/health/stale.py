"""Find pages unchanged for a year whose nearest pages have changed."""

from __future__ import annotations

import time

from msgspec import structs

from otterwiki_semantic.core.records import Finding, FindingKind, PlaceInPage
from otterwiki_semantic.daemon.health.survey import MAX_FINDINGS, Findings, Survey, new_finding
from otterwiki_semantic.storage import PageFacts, iso_time

_YEAR = 365 * 86_400
_LEAST_CHANGED = 2
"""How many of the nearest pages must have changed since."""
_FLOOR = 0.5
"""The least similarity of such pages, on the bundled model's scale."""


def find_stale(survey: Survey) -> Findings:
    """Return a finding for each page that may be outdated, nearest neighbours first."""
    since, floor = time.time() - _YEAR, survey.scale.from_bundled(_FLOOR)
    old = [path for path, page in survey.by_path.items() if page.updated is not None and page.updated < since]
    found: list[tuple[float, PageFacts, list[PageFacts]]] = []
    for path, nearest in survey.nearest(old):
        page, near = survey.by_path[path], [each for each in nearest if each[1] >= floor]
        changed = [other for name, _ in near if ((other := survey.by_path[name]).updated or 0) > (page.updated or 0)]
        if len(changed) >= min(_LEAST_CHANGED, len(near)) and changed:
            found.append((sum(similarity for _, similarity in near), page, changed))
    found.sort(key=lambda each: (-each[0], each[1].path))
    return [_finding(survey, page, changed) for _, page, changed in found[:MAX_FINDINGS]]


def _finding(survey: Survey, page: PageFacts, changed: list[PageFacts]) -> Finding:
    def place(it: PageFacts) -> PlaceInPage:
        return structs.replace(survey.page(it.path), updated=iso_time(it.updated))

    about = page.path, str(page.updated)
    return new_finding(FindingKind.STALE, *about, pages=[place(page)], neighbours=tuple(map(place, changed)))
