"""Group questions without a relevant result by meaning, and ask them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from otterwiki_semantic.core.records import Finding, FindingKind, UnansweredQuery
from otterwiki_semantic.daemon.health.survey import Check, Findings, Survey, finding_id, place_of
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search import SearchResult
from otterwiki_semantic.storage import Generation

_ALIKE = 0.65
"""The least similarity of questions in a group, on the bundled model's scale."""


class Asked(NamedTuple):
    """A question with the result of asking it again."""

    vector: Matrix | None
    """None if the model cannot be used."""
    result: SearchResult


def find_unanswered(queries: Callable[[], Sequence[UnansweredQuery]], ask: Callable[[Generation, str], Asked]) -> Check:
    """Return a check that finds groups of questions, most frequent first, those answered by now last."""

    def find(survey: Survey) -> Findings:
        groups: list[list[tuple[UnansweredQuery, Asked]]] = []
        least = survey.scale.from_bundled(_ALIKE)
        for query in queries():
            asked = ask(survey.generation, query.query)
            survey.rest()
            group = next((group for group in groups if _are_alike(group[0][1], asked, least)), None)
            if group is None:
                groups.append([(query, asked)])
            else:
                group.append((query, asked))
        findings = [_finding(group, survey.private_id) for group in groups]
        return sorted(findings, key=lambda each: (each.answered_by is not None, -each.times))

    return find


def _are_alike(leader: Asked, other: Asked, least: float) -> bool:
    return leader.vector is not None and other.vector is not None and float(leader.vector @ other.vector) >= least


def _finding(group: Sequence[tuple[UnansweredQuery, Asked]], private_id: Callable[[str], str]) -> Finding:
    queries = [query for query, _ in group]
    hit = next((hit for hit in group[0][1].result.hits if hit.relevant), None)
    is_answered = all(asked.result.confident for _, asked in group)
    subject = min(" ".join(query.query.casefold().split()) for query in queries)
    return Finding(
        id=private_id(finding_id(FindingKind.UNANSWERED, subject)),
        kind=FindingKind.UNANSWERED,
        is_dismissed=False,
        queries=tuple(query.query for query in queries),
        times=sum(query.times for query in queries),
        answered_by=place_of(hit) if hit and is_answered else None,
    )
