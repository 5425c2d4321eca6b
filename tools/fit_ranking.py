"""Fit the weights of a question (`search.scoring`) on judged wikis, and measure each wiki with those fitted on the others.

A judged wiki is a directory with `pages/`, `queries.json` (link texts: `query`, `relevant`, `exclude`) and `questions.json`
(docs/quality.md). The questions are fitted; link texts show what names lose. Figures differ a little from those of
`otterwiki-semantic eval`: repeated passages and neighbours are left as they are. Needs the extra `map`, for SciPy.

Usage::

    python tools/fit_ranking.py WIKI... [--against COVERAGE PAGE_COVERAGE PAGE_SIMILARITY]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otterwiki_semantic.core.records import SearchOptions  # noqa: E402
from otterwiki_semantic.search import scoring  # noqa: E402
from otterwiki_semantic.search.evaluation import (  # noqa: E402
    PASSAGES,
    JudgedQuery,
    difference,
    has_answer,
    page_metrics,
    parse_judged_queries,
    read_query_file,
    score,
)
from otterwiki_semantic.search.query import parse_query  # noqa: E402
from otterwiki_semantic.search.retrieval import retrieve  # noqa: E402
from otterwiki_semantic.search.scoring import Tier  # noqa: E402
from otterwiki_semantic.search.similarity_scale import Scale  # noqa: E402
from otterwiki_semantic.storage import Filter, Generation  # noqa: E402
from tools.fit_relevance import indexed  # noqa: E402

IN_USE = (scoring.COVERAGE_WEIGHT, scoring.PAGE_COVERAGE_WEIGHT, scoring.PAGE_SIMILARITY_WEIGHT)
_CANDIDATES, _TITLED = 60, 1_000.0
_ANSWER_SHARE = 0.5
"""What the chunks with the answer count in the loss, next to those of relevant pages."""

Floats = NDArray[np.float64]
Figures = dict[str, list[float]]
"""The values of each query, by the name of the metric."""


@dataclass(frozen=True)
class Asked:
    """A query and its candidates: their pages, what does not depend on the weights, and the evidence that they weigh."""

    judged: JudgedQuery
    paths: list[str]
    scores: Floats
    evidence: Floats
    """A row of three for each candidate: coverage, page coverage and page similarity, times how much of a question it is."""
    relevant: NDArray[np.bool_]
    answering: NDArray[np.bool_]
    """Whether a candidate's text holds the answer."""

    def loss(self, weights: Floats, factor: float) -> float:
        """Return minus the square roots of the softmax shares of the relevant and of the answering candidates."""
        scores = factor * (self.scores + self.evidence @ weights)
        shares = np.exp(scores - scores.max())
        relevant, answering = (shares[kind].sum() / shares.sum() for kind in (self.relevant, self.answering))
        return float(-np.sqrt(relevant) - _ANSWER_SHARE * np.sqrt(answering))

    def order(self, weights: Floats) -> list[int]:
        """Return the positions of the candidates, best first."""
        return [int(place) for place in np.argsort(-(self.scores + self.evidence @ weights), kind="stable")]


@dataclass(frozen=True)
class Wiki:
    """The questions and the link texts of a wiki, with their candidates."""

    questions: list[Asked]
    link_texts: list[Asked]

    def figures(self, weights: Floats) -> Figures:
        """Return the metrics of each question and of each link text."""
        found: Figures = {"nDCG@10": [], "page first": [], "page in 5": [], "answer in 5": [], "link texts": []}
        for asked in self.questions:
            order = asked.order(weights)
            pages = page_metrics(asked.judged, (asked.paths[place] for place in order))
            for name, metric in (("nDCG@10", "ndcg"), ("page first", "r1"), ("page in 5", "r5")):
                found[name].append(pages[metric])
            found["answer in 5"].append(float(asked.answering[shown(order, asked.paths)].any()))
        for asked in self.link_texts:
            found["link texts"].append(score(asked.judged, (asked.paths[place] for place in asked.order(weights)))["ndcg"])
        return found


def shown(order: Sequence[int], paths: Sequence[str]) -> list[int]:
    """Return the first five positions with no more of a page than a search shows."""
    taken: Counter[str] = Counter()
    kept = []
    for place in order:
        taken[paths[place]] += 1
        if taken[paths[place]] <= SearchOptions().max_chunks_per_page:
            kept.append(place)
    return kept[:PASSAGES]


def main() -> None:
    """Fit, and print."""
    parser = argparse.ArgumentParser(description="Fit the weights of a question on judged wikis.")
    parser.add_argument("wikis", nargs="+", type=Path, metavar="WIKI")
    parser.add_argument("--against", nargs=3, type=float, default=IN_USE, metavar="WEIGHT", help="[default: those in use]")
    options = parser.parse_args()
    wikis = {directory.name: read(directory) for directory in options.wikis}
    sets: dict[str, list[Figures]] = {"left out": [], "in use": [], "against": []}
    for name, wiki in wikis.items():
        weights = fit([other for each, other in wikis.items() if each != name] or [wiki])
        for label, each in (("left out", weights), ("in use", np.array(IN_USE)), ("against", np.array(options.against))):
            sets[label].append(wiki.figures(each))
            print(f"{name:14} {label:8} {line(sets[label][-1:])}  weights {rounded(each)}", flush=True)
    for label, figures in sets.items():
        print(f"{'mean':14} {label:8} {line(figures)}")
    for metric in sets["left out"][0]:
        before, after = ([value for figures in sets[label] for value in figures[metric]] for label in ("against", "left out"))
        change = difference(before, after)
        print(f"left out - against, {metric:11} {change.mean:+.3f}  [{change.low:+.3f}, {change.high:+.3f}]")
    print(f"fitted on all: {rounded(fit(list(wikis.values())))}, in use: {rounded(IN_USE)}")


def line(figures: Sequence[Figures]) -> str:
    """Return the means over wikis, each counting alike."""
    return "  ".join(f"{metric} {fmean(fmean(each[metric]) for each in figures):.3f}" for metric in figures[0])


def rounded(weights: Floats | Sequence[float]) -> str:
    """Return weights for people."""
    return ", ".join(f"{weight:.1f}" for weight in weights)


def fit(wikis: Sequence[Wiki]) -> Floats:
    """Return the weights that rank relevant pages and answers best; each wiki counts alike.

    The softmax's factor of all scores is fitted as well: it stands for the weight of similarity, which is fixed.
    """
    from scipy.optimize import minimize  # takes a second

    asked = [[each for each in wiki.questions if each.relevant.any()] for wiki in wikis]

    def loss(fitted: Floats) -> float:
        return fmean(fmean(each.loss(fitted[:-1], fitted[-1]) for each in questions) for questions in asked)

    bounds = [(0.0, None)] * len(IN_USE) + [(0.01, None)]
    found: Floats = minimize(loss, np.array((*IN_USE, 1.0)), method="L-BFGS-B", bounds=bounds).x
    return found[:-1]


def read(directory: Path) -> Wiki:
    """Index a judged wiki, and return the candidates of its questions and link texts."""
    entries = json.loads((directory / "queries.json").read_text())
    link_texts = parse_judged_queries([{name: each[name] for name in ("query", "relevant", "exclude")} for each in entries])
    questions = [each for each in read_query_file(directory / "questions.json") if each.relevant]
    with indexed(directory / "pages") as index:
        generation = index._manager.serving
        assert generation is not None
        with generation.catalog.snapshot():
            return Wiki(*([ask(generation, index.embedder, each) for each in judged] for judged in (questions, link_texts)))


def ask(generation: Generation, embedder: Any, judged: JudgedQuery) -> Asked:
    """Return the candidates of one query.

    Excluded pages are no candidates: they have the whole text of the link, which would make a name of every query.
    """
    query = parse_query(judged.query)
    vector = embedder.embed_queries([query.text])[0]
    where = Filter(tuple(("lower(pages.path) != ?", (path,)) for path in judged.exclude))
    found = retrieve(generation, query, lambda: vector, where, SearchOptions(), _CANDIDATES, Scale()).candidates
    share = 1 - scoring.name_share(np.array([each.coverage for each in found] or [1.0]), scoring.DEFAULT_RATIO)
    evidence = share * np.array([(each.coverage, each.page_coverage, each.page_similarity) for each in found]).reshape(-1, 3)
    scores = np.array([each.score + _TITLED * (each.tier is Tier.EXACT_TITLE) for each in found])
    texts = generation.catalog.reader.chunks([each.id for each in found])
    return Asked(
        judged,
        [each.path for each in found],
        scores - evidence @ np.array(IN_USE),
        evidence,
        np.array([bool(page_metrics(judged, [each.path])["r1"]) for each in found], dtype=bool),
        np.array([has_answer(judged, each.path, texts[each.id].text) for each in found], dtype=bool),
    )


if __name__ == "__main__":
    main()
