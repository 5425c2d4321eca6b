"""Evaluation of answers: whether they rest on the judged pages, say what these say, and are refused where there is none.

No other model judges. An answer counts as sourced if one of the sources that its sentences name is a judged page; a sentence
counts as supported if the checks of `otterwiki_semantic.search.answering` find it in its sources.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import AskRequest, GroundedAnswer
from otterwiki_semantic.daemon import IndexService, whole_answer
from otterwiki_semantic.search.evaluation import JudgedQuery, percentiles, score

AnswerRun = dict[str, Any]
"""``{"metrics", "latency_ms", "sources_ms", "queries": [{"query", "answered", "sourced", "supported", "message"}, …]}``."""
_METRICS = {
    "answered": "of the judged questions have an answer",
    "sourced": "of the answers name a judged page as a source",
    "supported": "of the sentences say what their sources say",
    "refused": "of the unanswerable questions have no answer",
}


def read_questions(path: Path) -> list[str]:
    """Return the questions of a text file, one on a line. Errors: `ParameterError` if there is none, or it cannot be read."""
    try:
        questions = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path} cannot be read: {error}") from error
    if not questions:
        raise ParameterError(f"{path} has no question; it takes one on each line")
    return questions


def measure_answers(index: IndexService, judged: Sequence[JudgedQuery], unanswerable: Sequence[str]) -> AnswerRun:
    """Ask every question, and count; a progress bar is shown on a terminal. Errors: those of `IndexService.ask`."""
    rows: list[dict[str, Any]] = []
    seconds: list[tuple[float, float]] = []
    questions = [(each.query, each) for each in judged] + [(question, None) for question in unanswerable]
    with click.progressbar(questions, label="asking", file=sys.stderr, hidden=not sys.stderr.isatty()) as bar:
        for question, judgement in bar:
            answer, until_sources, until_end = _asked(index, question)
            seconds.append((until_sources, until_end))
            rows.append(_row(answer, judgement))
    answerable, others = rows[: len(judged)], rows[len(judged) :]
    answered = [row for row in answerable if row["answered"]]
    supported = [row["supported"] for row in answered]
    return {
        "metrics": {
            "answered": _mean([row["answered"] for row in answerable]),
            "sourced": _mean([row["sourced"] for row in answered]),
            "supported": _mean(supported),
            "refused": _mean([not row["answered"] for row in others]),
        },
        "sources_ms": percentiles([1000 * first for first, _ in seconds]),
        "latency_ms": percentiles([1000 * last for _, last in seconds]),
        "queries": rows,
    }


def answers_table(run: AnswerRun) -> str:
    """Return a run for people."""
    lines = [f"{value:6.1%} {_METRICS[name]}" for name, value in run["metrics"].items() if value is not None]
    times = f"sources after {run['sources_ms']['p50']:.0f} ms (p95 {run['sources_ms']['p95']:.0f})"
    return "\n".join([*lines, f"{times}, the whole answer after {run['latency_ms']['p50']:.0f} ms"])


def _asked(index: IndexService, question: str) -> tuple[GroundedAnswer, float, float]:
    """Return the answer to a question, and the seconds until its sources and until its end."""
    start = time.perf_counter()
    started = index.ask(AskRequest(question))
    until_sources = time.perf_counter() - start
    return whole_answer(index, started), until_sources, time.perf_counter() - start


def _row(answer: GroundedAnswer, judged: JudgedQuery | None) -> dict[str, Any]:
    named = [answer.sources[place].path for sentence in answer.answer for place in sentence.sources]
    return {
        "query": answer.question,
        "answered": bool(answer.answer),
        "sourced": bool(judged and score(judged, named)["mrr"]),
        "supported": _mean([sentence.supported for sentence in answer.answer]),
        "message": answer.message,
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
