"""Clusters of pages near in meaning, named by the words of their titles, for wikis whose folders say little."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from otterwiki_semantic.content.analysis import fold, function_words, name_parts, stem
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.embedding import Matrix

MOST_CLUSTERS = 8
"""As many as the map has colours."""
_PAGES_PER_CLUSTER = 12
_RESTARTS, _ROUNDS = 4, 30
_WORDS = 3
_LEAST_LETTERS = 3
_NOTHING = 1e-6


def cluster_names(paths: Sequence[str], titles: Mapping[str, str], vectors: Matrix) -> dict[str, str]:
    """Return the name of each page's cluster, by path; pages without a vector, and all of a very small wiki, have none.

    `vectors` are one row for each path, zeros for a page without vectors. The clusters are those of spherical k-means (Dhillon
    and Modha, 2001), the same for the same pages.
    """
    rows = np.flatnonzero(np.linalg.norm(vectors, axis=1) > _NOTHING)
    number = min(MOST_CLUSTERS, len(rows) // _PAGES_PER_CLUSTER)
    if number < 2:
        return {}
    labels = _spherical_k_means(vectors[rows], number)
    members = [[paths[row] for row in rows[labels == label]] for label in range(number)]
    names = _names([[titles.get(path, path) for path in pages] for pages in members])
    return {path: name for pages, name in zip(members, names, strict=True) for path in pages}


def _spherical_k_means(vectors: Matrix, number: int) -> np.ndarray:
    """Return a cluster for each vector, of the best of some runs from seeds of k-means++ (Arthur and Vassilvitskii, 2007)."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _NOTHING)
    random = np.random.default_rng(0)
    runs = [_run(unit, number, random) for _ in range(_RESTARTS)]
    return max(runs, key=lambda run: run[0])[1]


def _run(unit: Matrix, number: int, random: np.random.Generator) -> tuple[float, np.ndarray]:
    """Return how near the vectors are to their clusters' centres, and the clusters."""
    centres = unit[[int(random.integers(len(unit)))]]
    for _ in range(number - 1):
        distance = np.clip(1 - (unit @ centres.T).max(axis=1), 0, None).astype(np.float64)
        share = distance / distance.sum() if distance.sum() > _NOTHING else None
        centres = np.vstack((centres, unit[int(random.choice(len(unit), p=share))]))
    labels = np.zeros(len(unit), dtype=np.int64)
    for _ in range(_ROUNDS):
        similarity = unit @ centres.T
        found = similarity.argmax(axis=1)
        sums = np.stack([unit[found == label].sum(axis=0) for label in range(number)])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > _NOTHING, sums / np.maximum(lengths, _NOTHING), centres)
        if np.array_equal(found, labels):
            break
        labels = found
    return float((unit @ centres.T).max(axis=1).sum()), labels


def _names(clusters: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each cluster of titles: its most typical words by c-TF-IDF (Grootendorst, BERTopic, 2022)."""
    spelled: dict[str, Counter[str]] = {}
    counts = []
    for titles in clusters:
        count: Counter[str] = Counter()
        for title in titles:
            for key, word in dict(_words(title)).items():
                count[key] += 1
                spelled.setdefault(key, Counter())[word] += 1
        counts.append(count)
    everywhere = sum(counts, Counter[str]())
    average = sum(everywhere.values()) / max(len(clusters), 1)
    taken: set[str] = set()
    names = []
    for number, count in enumerate(counts, 1):
        total = max(sum(count.values()), 1)
        typical = {key: times for key, times in count.items() if times > 1} or count
        weights = {key: times / total * math.log(1 + average / everywhere[key]) for key, times in typical.items()}
        best = [key for key in sorted(weights, key=lambda key: (-weights[key], key)) if key not in taken][:_WORDS]
        taken.update(best)
        names.append(", ".join(spelled[key].most_common(1)[0][0] for key in best) or f"group {number}")
    return names


def _words(title: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a title that mean something: their stems, and as they are spelled."""
    for part in name_parts(title):
        word = title[part.start : part.end]
        if len(word) >= _LEAST_LETTERS and not word.isdigit() and fold(word) not in function_words(ENGLISH):
            yield stem(fold(word), ENGLISH), word
