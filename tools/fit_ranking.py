"""Fit the weights of `search.name_evidence` on judged wikis, and measure them on each wiki with those fitted on the others.

A judged wiki is a directory with `pages/` and `queries.json`: a list of objects with `query`, `relevant` (paths of pages) and
`exclude` (paths to leave out of the ranking). Needs SciPy (`pip install 'otterwiki-semantic[map]'`).

Usage::

    python tools/fit_ranking.py WIKI...
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otterwiki_semantic.core.records import SearchOptions  # noqa: E402
from otterwiki_semantic.search import parse_query  # noqa: E402
from otterwiki_semantic.search.name_evidence import WEIGHTS  # noqa: E402
from otterwiki_semantic.search.retrieval import Tier, retrieve  # noqa: E402
from otterwiki_semantic.search.similarity_scale import Scale  # noqa: E402
from otterwiki_semantic.storage import Filter, Generation  # noqa: E402
from tools.fit_relevance import indexed  # noqa: E402

_CANDIDATES, _DEPTH = 100, 10
_TITLED = 1_000.0
_TEMPERATURE = 0.3
"""Of the softmax over candidates whose cross-entropy is minimised."""
_PENALTY = 1e-4

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ranked:
    """The candidates of a query: scores without names, features of names, pages by number, and which of those are relevant."""

    scores: Floats
    features: Floats
    pages: NDArray[np.intp]
    relevant: NDArray[np.bool_]
    wanted: int

    def ndcg(self, weights: Floats) -> float:
        """Return nDCG at 10 of the pages, each ranked by its best chunk."""
        best = np.full(len(self.relevant), -np.inf)
        np.maximum.at(best, self.pages, self.scores + self.features @ weights)
        discounts = 1 / np.log2(np.arange(2, _DEPTH + 2))
        found = self.relevant[np.argsort(-best, kind="stable")[:_DEPTH]]
        return float(discounts[: len(found)] @ found / discounts[: min(self.wanted, _DEPTH)].sum())


class _Padded:
    """The candidates of many queries, in rows of the same length."""

    def __init__(self, queries: list[Ranked]) -> None:
        shape = len(queries), max(len(query.scores) for query in queries)
        self.scores, self.features = np.full(shape, -np.inf), np.zeros((*shape, len(WEIGHTS)))
        self.relevant = np.zeros(shape, dtype=bool)
        for row, query in enumerate(queries):
            count = len(query.scores)
            self.scores[row, :count], self.features[row, :count] = query.scores, query.features
            self.relevant[row, :count] = query.relevant[query.pages]

    def loss(self, weights: Floats) -> float:
        """Return the mean cross-entropy of the relevant candidates."""
        scores = _TEMPERATURE * (self.scores + self.features @ weights)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        relevant = np.where(self.relevant, shares, 0.0).sum(axis=1)
        return float(np.mean(np.log(shares.sum(axis=1)) - np.log(relevant + 1e-12)))


def main(directories: list[str]) -> None:
    """Fit, and print."""
    wikis = {Path(directory).name: read(Path(directory)) for directory in directories}
    gains = []
    for name, queries in wikis.items():
        weights = fit([others for other, others in wikis.items() if other != name])
        none, left_out, used = (
            np.mean([query.ndcg(each) for query in queries]) for each in (0 * weights, weights, np.array(WEIGHTS))
        )
        gains.append((none, left_out, used))
        print(f"{name:16} nDCG@10 {none:.3f} without names, {left_out:.3f} left out, {used:.3f} with those in use", flush=True)
    print("macro           ", *(f"{value:.4f}" for value in np.mean(gains, axis=0)))
    print("fitted on all:  ", *(f"{weight:.2f}" for weight in fit(list(wikis.values()))), "in use:", *WEIGHTS)


def fit(wikis: list[list[Ranked]]) -> Floats:
    """Return the weights that rank relevant pages best; each wiki counts alike."""
    padded = [_Padded([query for query in queries if query.relevant.any()]) for queries in wikis]

    def loss(weights: Floats) -> float:
        return float(np.mean([wiki.loss(weights) for wiki in padded]) + _PENALTY * weights @ weights)

    found: Floats = minimize(loss, np.array(WEIGHTS), method="Powell", options={"maxiter": 4, "ftol": 1e-4}).x
    return found


def read(directory: Path) -> list[Ranked]:
    """Index a judged wiki, and return the candidates of its queries."""
    judged = json.loads((directory / "queries.json").read_text())
    with indexed(directory / "pages") as index:
        generation = index._manager.serving
        assert generation is not None
        with generation.catalog.snapshot():
            return [ranked for entry in judged if (ranked := candidates(generation, index.embedder, entry))]


def candidates(generation: Generation, embedder: Any, entry: dict[str, Any]) -> Ranked | None:
    """Return the candidates of one query; None if there are none."""
    query = parse_query(entry["query"])
    vector = embedder.embed_queries([query.text])[0]
    found = retrieve(generation, query, lambda: vector, Filter(), SearchOptions(), _CANDIDATES, Scale())
    excluded, wanted = set(entry["exclude"]), set(entry["relevant"])
    kept = [each for each in found.candidates if each.path not in excluded]
    paths = list(dict.fromkeys(each.path for each in kept))
    if not kept:
        return None
    return Ranked(
        np.array([each.score - each.names.points + _TITLED * (each.tier is Tier.EXACT_TITLE) for each in kept]),
        np.array([each.names for each in kept]),
        np.array([paths.index(each.path) for each in kept]),
        np.array([path in wanted for path in paths]),
        len(wanted),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
