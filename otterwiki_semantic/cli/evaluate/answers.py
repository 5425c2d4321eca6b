"""Evaluate answers: whether they cite the judged pages, are supported by them, and are refused where there is none.

No other model judges. An answer counts as sourced if one of the sources cited by its sentences is a judged page. A sentence
counts as supported if the checks of `otterwiki_semantic.search.answering` find it in its sources. If a search shows the
judged answer among its first passages, the answer counts as given if a sentence that cites this page has its words.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from otterwiki_semantic.cli.common import progress_bar
from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import AskRequest, GroundedAnswer, SearchOptions
from otterwiki_semantic.daemon import IndexService, whole_answer
from otterwiki_semantic.search.evaluation import (
    PASSAGES,
    UNANSWERABLE,
    JudgedQuery,
    gives_answer,
    has_answer,
    mean_of_known,
    names_section,
    percentiles,
    score,
)

AnswerRun = dict[str, Any]
"""``{"metrics", "latency_ms", "sources_ms", "queries": [{"query", "answered", "sourced", "supported", "lead", …}, …]}``."""
_METRICS = {
    "answered": "of the judged questions have an answer",
    "sourced": "of the answers name a judged page as a source",
    "supported": "of the sentences say what their sources say",
    "lead": "of the judged answers that a search shows are the first sentence",
    "given": "of the judged answers that a search shows are in the answer",
    "right_section": "of the judged answers that are given stand under the heading that the source names",
    "refused": "of the unanswerable questions have no answer",
}


def read_unanswerable(path: Path) -> list[JudgedQuery]:
    """Return the unanswerable questions of a text file, one per line.

    Raises `ParameterError` if there is none, or the file cannot be read.
    """
    try:
        questions = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error
    if not questions:
        raise ParameterError(f"{path} has no question; it takes one on each line")
    return [JudgedQuery(question, (), kind=UNANSWERABLE) for question in questions]


def measure_answers(index: IndexService, questions: Sequence[JudgedQuery]) -> AnswerRun:
    """Ask every question, and count; a progress bar is shown on a terminal. Raises errors of `IndexService.ask`."""
    rows: list[dict[str, Any]] = []
    seconds: list[tuple[float, float]] = []
    with progress_bar("asking", questions) as bar:
        for judged in bar:
            start = time.perf_counter()
            started = index.ask(AskRequest(judged.query))
            until_sources = time.perf_counter() - start
            answer = whole_answer(index, started)
            seconds.append((until_sources, time.perf_counter() - start))
            rows.append(_row(answer, judged, is_shown=_shows_answer(index, judged)))
    answerable = [row for row, judged in zip(rows, questions, strict=True) if judged.relevant]
    others = [row for row, judged in zip(rows, questions, strict=True) if not judged.relevant]
    answered = [row for row in answerable if row["answered"]]
    return {
        "metrics": {
            "answered": mean_of_known(row["answered"] for row in answerable),
            "sourced": mean_of_known(row["sourced"] for row in answered),
            **{
                name: mean_of_known(row[name] for row in answerable) for name in ("supported", "lead", "given", "right_section")
            },
            "refused": mean_of_known(not row["answered"] for row in others),
        },
        "words": median(row["words"] for row in answered) if answered else 0,
        "sources_ms": percentiles([1000 * first for first, _ in seconds]),
        "latency_ms": percentiles([1000 * last for _, last in seconds]),
        "queries": rows,
    }


def answers_table(run: AnswerRun) -> str:
    """Return a run for people."""
    lines = [f"{value:6.1%} {_METRICS[name]}" for name, value in run["metrics"].items() if value is not None]
    times = f"sources after {run['sources_ms']['p50']:.0f} ms (p95 {run['sources_ms']['p95']:.0f})"
    lines.append(f"{run['words']:5.0f}  words, median")
    return "\n".join([*lines, f"{times}, the whole answer after {run['latency_ms']['p50']:.0f} ms"])


def _shows_answer(index: IndexService, judged: JudgedQuery) -> bool:
    """Return whether one of the passages that a search shows contains the judged answer; False if none is given."""
    if not judged.answer:
        return False
    found = index.search([judged.query], SearchOptions(n=PASSAGES, rerank=False))[0]
    return any(has_answer(judged, hit.path, hit.text) for hit in found.results)


def _row(answer: GroundedAnswer, judged: JudgedQuery, *, is_shown: bool) -> dict[str, Any]:
    sources = [[answer.sources[place] for place in sentence.sources] for sentence in answer.answer]
    named = [hit.path for hits in sources for hit in hits]
    given = [
        next((hit for hit in hits if gives_answer(judged, hit.path, sentence.text)), None)
        for hits, sentence in zip(sources, answer.answer, strict=True)
    ]
    right = next((hit for hit in given if hit is not None), None)
    return {
        "query": answer.question,
        "answered": bool(answer.answer),
        "sourced": bool(judged.relevant and score(judged, named)["mrr"]),
        "supported": mean_of_known(sentence.supported for sentence in answer.answer),
        "lead": bool(given and given[0]) if is_shown else None,
        "given": right is not None if is_shown else None,
        "right_section": names_section(judged, right) if right and judged.section is not None else None,
        "words": sum(len(sentence.text.split()) for sentence in answer.answer),
        "message": answer.message,
    }
