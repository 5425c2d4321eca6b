"""Project vectors onto a plane and group them: pages related in meaning are close, in groups named by their titles and folders.

Only `project` imports scikit-learn, and only a process that lives for one map calls it, so that the memory is freed with it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.content.analysis import fold, function_words, name_parts, stem
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.embedding import Matrix

Places = npt.NDArray[np.float64]
"""One position per row, in units of t-SNE; a row of NaN is no position."""
Labels = Sequence[str]
"""The title of a page, and the names of the folders that it is in."""

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
_LEAST_APART, _LEAST_OF_MANY, _ROUNDS = 0.016, 0.4, 30
"""The least distance of two points, as a share of the map's side: the first, or the second divided by the root of their number,
whichever is less; and the most rounds in which points are moved apart."""

_NAME_WORDS = 3
_BETWEEN_WORDS = re.compile(r"[ -]|[^\w '’.-]")
"""What separates the words of a name, and signs that none has."""
_LEAST_NAME_LETTERS = 3
_ENOUGH_PAGES, _ENOUGH_SHARE = 3, 0.2
"""The number of pages, or the share of a small group, that a phrase must be on to name it; in any case two pages."""


def project(vectors: Matrix, last: Places, labels: Sequence[Labels]) -> tuple[Places, list[str | None]]:
    """Return the position of each vector, and the name of its group of similar vectors.

    Rows of `last` are the positions on the last map. Zero vectors, and all vectors of a very small wiki, have no group.
    Deterministic on one machine; every position is finite. Raises `ImportError` without scikit-learn.
    """
    return _apart(_places(vectors, last)), _groups(vectors, labels)


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


def _apart(places: Places) -> Places:
    """Return positions of which none coincide, or nearly do."""
    from scipy.spatial import cKDTree

    least = np.ptp(places, axis=0).max() * min(_LEAST_APART, _LEAST_OF_MANY / math.sqrt(len(places))) if len(places) > 2 else 0
    for _ in range(_ROUNDS if least else 0):
        one, other = cKDTree(places).query_pairs(least, output_type="ndarray").T
        away = places[one] - places[other]
        away[~away.any(axis=1)] = least / 2, 0
        length = np.linalg.norm(away, axis=1, keepdims=True)
        push = away / length * (1.02 * least - length) / 2
        np.add.at(places, one, push)
        np.subtract.at(places, other, push)
    return places


def _groups(vectors: Matrix, labels: Sequence[Labels]) -> list[str | None]:
    """Return the name of each vector's group by k-means, which for unit vectors groups by cosine."""
    rows = np.flatnonzero(vectors.any(axis=1))
    number = min(MOST_GROUPS, len(rows) // _PAGES_PER_GROUP)
    found: list[str | None] = [None] * len(vectors)
    if number > 1:
        from sklearn.cluster import KMeans

        means = KMeans(number, n_init=4, random_state=0).fit(vectors[rows])
        central = rows[np.argsort(-np.einsum("ij,ij->i", vectors[rows], means.cluster_centers_[means.labels_]), kind="stable")]
        group_of = dict(zip(rows, means.labels_, strict=True))
        names = group_names([[labels[row] for row in central if group_of[row] == group] for group in range(number)])
        for row, group in group_of.items():
            found[row] = names[group]
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


def group_names(groups: Sequence[Sequence[Labels]]) -> list[str]:
    """Return a name for each group of pages: the phrase of its titles and folders that most distinguishes it from the others.

    A phrase counts once per page. Its weight is the number of pages with it, times the logarithm of the ratio of its
    frequencies in and outside the group. Words that could name most groups name none. A group without such a phrase has the
    title of its first page: of the first one whose title is a phrase that no other group has, if there is one.
    """
    phrases = [[dict(found for label in labels[::-1] for found in _phrases(label)) for labels in group] for group in groups]
    counts = [Counter(key for of_page in group for key in of_page) for group in phrases]
    total, everywhere = sum(map(len, groups)), sum(counts, Counter[str]())
    least = [max(2, min(_ENOUGH_PAGES, math.ceil(_ENOUGH_SHARE * len(group)))) for group in groups]
    naming = Counter(key for count, enough in zip(counts, least, strict=True) for key in count if count[key] >= enough)
    shared = {key for key, number in naming.items() if number > len(groups) / 2}
    names: list[str] = []
    for number, (group, count, enough) in enumerate(zip(phrases, counts, least, strict=True)):
        outside = (total - len(group) + 1) / max(len(group), 1)
        weights = {
            key: here * math.log(here * outside / (everywhere[key] - here + 1))
            for key, here in count.items()
            if here >= enough and shared.isdisjoint(key.split())
        }
        best = max(weights, key=lambda key: (weights[key], len(key)), default="")
        spelled = Counter(of_page[best] for of_page in group if best in of_page and weights[best] > 0)
        titles = [labels[0] for labels in groups[number]]
        own = {spelling for of_page in group for key, spelling in of_page.items() if count[key] == everywhere[key]}
        clear = [title for title in titles if title in own]
        found = (*(_as_title(phrase) for phrase, _ in spelled.most_common(1)), *clear, *titles, f"Group {number + 1}")
        names.append(next(name for name in found if name not in names))
    return names


def _as_title(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:] if phrase.split(maxsplit=1)[0].islower() else phrase


def _phrases(label: str) -> Iterator[tuple[str, str]]:
    """Yield the phrases of a title or folder that begin and end with content words: their stems and their spellings."""
    parts = list(name_parts(label))
    words = [fold(label[part.start : part.end]) for part in parts]
    is_content = [
        len(word) >= _LEAST_NAME_LETTERS and not word.isdigit() and word not in function_words(ENGLISH) for word in words
    ]
    for first, last in combinations_with_replacement(range(len(parts)), 2):
        spelled = label[parts[first].start : parts[last].end]
        is_phrase = last - first < _NAME_WORDS and len(_BETWEEN_WORDS.split(spelled)) == last - first + 1
        if is_phrase and is_content[first] and is_content[last]:
            yield " ".join(stem(word, ENGLISH) for word in words[first : last + 1]), spelled
