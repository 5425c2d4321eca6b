"""Project vectors onto a plane and group them: pages related in meaning are close, in groups named by their titles.

Only `project` imports scikit-learn, and only a process that lives for one map calls it, so that the memory is freed with it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis import fold, function_words, name_parts, stem
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.embedding import Matrix

Places = npt.NDArray[np.float64]
"""One position per row, in units of t-SNE; a row of NaN is no position."""

MOST_GROUPS = 8
"""The number of colours of the map."""
MIDDLE = 0.5
_PAGES_PER_GROUP = 12
_COMPONENTS = 50
_PERPLEXITY = 30.0
_FRESH_ITERATIONS, _FEWER_ITERATIONS, _MORE_ITERATIONS = 1000, 500, 250
_MANY = 5_000
"""From this number of pages, a new map gets fewer iterations, to take half a minute instead of a whole one."""
_CONTINUED_LEARNING_RATE = 0.1
"""Share of the usual learning rate (Belkina et al., 2019) when a map is continued, so that unchanged pages hardly move."""
_FIRST_SPREAD, _JITTER = 1e-4, 1e-2
_ENOUGH_KNOWN = 0.5
"""The least share of known positions for continuing a map; below it, a new map preserves neighbourhoods better."""
_EXACT = 3
"""Up to this number of points, distances in the plane are exact."""
_NEAREST = 3
_BATCH_ROWS = 1_000

_NAME_WORDS = 3
_LEAST_NAME_LETTERS = 3


def project(vectors: Matrix, last: Places, titles: Sequence[str]) -> tuple[Places, list[str | None]]:
    """Return the position of each vector, and the name of its group of similar vectors.

    Rows of `last` are the positions on the last map. Zero vectors, and all vectors of a very small wiki, have no group.
    Deterministic on one machine; every position is finite. Raises `ImportError` without scikit-learn.
    """
    return _places(vectors, last), _groups(vectors, titles)


def _places(vectors: Matrix, last: Places) -> Places:
    """Return positions by t-SNE (van der Maaten & Hinton, 2008; Barnes-Hut: van der Maaten, 2014).

    With enough positions of the last map, it is continued, and changes most where the vectors did. A new map starts with
    principal components (Kobak & Berens, 2019).
    """
    count = len(vectors)
    if count < 2:
        return np.zeros((count, 2))
    centred = vectors - vectors.mean(axis=0)
    components = centred @ np.linalg.eigh(centred.T @ centred)[1][:, : -_COMPONENTS - 1 : -1]
    plane: Places = components[:, :2].astype(np.float64)
    if count <= _EXACT:
        return plane
    is_known = np.isfinite(last).all(axis=1)
    jitter = _JITTER * np.random.default_rng(0).standard_normal((count, 2))  # separates points at the same position
    if is_known.sum() <= max(_EXACT, _ENOUGH_KNOWN * count) or not np.ptp(last[is_known], axis=0).any():
        start = _FIRST_SPREAD * (plane / max(plane[:, 0].std(), 1e-9) + jitter)
        return _tsne(components, start, max_iter=_FRESH_ITERATIONS if count < _MANY else _FEWER_ITERATIONS)
    start = last.copy()
    start[~is_known] = near_places(components[~is_known], components[is_known], last[is_known])
    rate = _CONTINUED_LEARNING_RATE * max(count / 4, 50)
    return _tsne(components, start + jitter, early_exaggeration=1.0, learning_rate=rate, max_iter=_MORE_ITERATIONS)


def _tsne(components: Matrix, start: Places, **how: Any) -> Places:
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(components) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init=start.astype(np.float32), random_state=0, n_jobs=1, **how)
    return np.nan_to_num(np.asarray(tsne.fit_transform(components), dtype=np.float64))


def _groups(vectors: Matrix, titles: Sequence[str]) -> list[str | None]:
    """Return the name of each vector's group by k-means, which for unit vectors groups by cosine."""
    rows = np.flatnonzero(vectors.any(axis=1))
    number = min(MOST_GROUPS, len(rows) // _PAGES_PER_GROUP)
    found: list[str | None] = [None] * len(vectors)
    if number > 1:
        from sklearn.cluster import KMeans

        labels = KMeans(number, n_init=4, random_state=0).fit_predict(vectors[rows])
        names = group_names([[titles[row] for row in rows[labels == label]] for label in range(number)])
        for row, label in zip(rows, labels, strict=True):
            found[row] = names[label]
    return found


def framed(places: Places) -> tuple[Places, float]:
    """Return positions scaled into the unit square, keeping the aspect ratio, and the length of its side in their own units."""
    if not len(places):
        return places, 1.0
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max()) or 1.0
    return np.clip((places - (low + high) / 2) / span + MIDDLE, 0, 1), span


def near_places(vectors: Matrix, known: Matrix, places: Places) -> Places:
    """Return for each vector the mean position of the three nearest known ones; at least one must be known."""
    lengths = np.einsum("ij,ij->i", known, known)
    found = np.empty((len(vectors), 2))
    for start in range(0, len(vectors), _BATCH_ROWS):
        part = vectors[start : start + _BATCH_ROWS]
        distances = lengths - 2 * (part @ known.T)
        count = min(_NEAREST, len(known))
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        found[start : start + _BATCH_ROWS] = places[nearest].mean(axis=1)
    return found


def group_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each group of titles: its most typical words by c-TF-IDF (Grootendorst, BERTopic, 2022)."""
    words = [[word for title in titles for word in dict(_words(title)).items()] for titles in groups]
    spelled: dict[str, Counter[str]] = {}
    for key, word in (each for found in words for each in found):
        spelled.setdefault(key, Counter())[word] += 1
    average = sum(map(len, words)) / max(len(groups), 1)
    names: list[str] = []
    for number, found in enumerate(words, 1):
        counts = Counter(key for key, _ in found)
        weight = {key: count * math.log(1 + average / spelled[key].total()) for key, count in counts.items() if key in spelled}
        best = sorted(weight, key=lambda key: (-weight[key], key))[:_NAME_WORDS]
        shown = (spelled.pop(key).most_common(1)[0][0] for key in best)  # no other name has these words
        names.append(", ".join(shown) or f"group {number}")
    return names


def _words(title: str) -> Iterator[tuple[str, str]]:
    """Yield the content words of a title: their stems and their spellings."""
    for part in name_parts(title):
        word = title[part.start : part.end]
        if len(word) >= _LEAST_NAME_LETTERS and not word.isdigit() and fold(word) not in function_words(ENGLISH):
            yield stem(fold(word), ENGLISH), word
