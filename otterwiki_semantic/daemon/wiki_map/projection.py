"""Project vectors onto a plane, near ones near each other, in a process that lives for one map.

``python -m otterwiki_semantic.daemon.wiki_map.projection`` reads eight bytes from its standard input, the length of what
follows, and then the arguments of `project` as NumPy's npz. It answers with the positions as npy. scikit-learn is imported
here and nowhere else, so that its memory goes with the process. The process ends when its input is closed.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.float64]
"""One position per row, in units of t-SNE; a row of NaN stands for no position."""

LIBRARY_MISSING = 3
"""Exit status if scikit-learn is not installed."""
LENGTH_BYTES = 8
MIDDLE = 0.5
_TIMEOUT_SECONDS = 3600
_NICE = 10
_COMPONENTS = 50
_PERPLEXITY = 30.0
_FRESH_ITERATIONS, _FEWER_ITERATIONS, _MORE_ITERATIONS = 1000, 500, 250
_MANY = 5_000
"""From this number of pages on a new map gets fewer iterations, to take half a minute instead of a whole one."""
_CONTINUED_LEARNING_RATE = 0.1
"""Share of the usual learning rate (Belkina et al., 2019) when a map is continued, so that unchanged pages hardly move."""
_FIRST_SPREAD, _JITTER = 1e-4, 1e-2
_ENOUGH_KNOWN = 0.5
"""Share of vectors with a last position from which on the map is continued; below it a new map shows neighbourhoods better."""
_EXACT = 3
"""Up to this number of points their distances in the plane are exact."""
_NEAREST = 3
_BATCH_ROWS = 1_000


def project(vectors: npt.NDArray[np.float32], last: Places) -> Places:
    """Return a position for each vector by t-SNE (van der Maaten & Hinton, 2008; Barnes-Hut: van der Maaten, 2014).

    Rows of `last` are the positions on the last map. With enough of them the map is continued and changes most where the
    vectors did; a new one starts with principal components (Kobak & Berens, 2019). Deterministic on one machine; every
    position is finite.
    """
    count = len(vectors)
    if count <= 1:
        return np.zeros((count, 2))
    components = _principal_components(vectors)
    if count <= _EXACT:
        return _first_two(components)
    is_known = np.isfinite(last).all(axis=1)
    if is_known.sum() <= max(_EXACT, _ENOUGH_KNOWN * count) or not np.ptp(last[is_known], axis=0).any():
        iterations = _FRESH_ITERATIONS if count < _MANY else _FEWER_ITERATIONS
        return _tsne(components, _initial_positions(components), max_iter=iterations)
    start = last.copy()
    start[~is_known] = near_places(components[~is_known], components[is_known], last[is_known])
    rate = _CONTINUED_LEARNING_RATE * max(count / 4, 50)
    return _tsne(components, start + _jitter(count), early_exaggeration=1.0, learning_rate=rate, max_iter=_MORE_ITERATIONS)


def framed(places: Places) -> tuple[Places, float]:
    """Return positions scaled into the unit square, keeping the aspect ratio, and the length of its side in their own units."""
    if not len(places):
        return places, 1.0
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max()) or 1.0
    return np.clip((places - (low + high) / 2) / span + MIDDLE, 0, 1), span


def near_places(vectors: npt.NDArray[np.float32], known: npt.NDArray[np.float32], places: Places) -> Places:
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


def _principal_components(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    from sklearn.decomposition import PCA

    if not np.ptp(vectors, axis=0).any():  # all are the same
        return np.zeros((len(vectors), 2), dtype=np.float32)
    found: Any = PCA(min(_COMPONENTS, *vectors.shape), random_state=0).fit_transform(vectors)
    return np.asarray(found, dtype=np.float32)


def _first_two(components: npt.NDArray[np.float32]) -> Places:
    places = np.zeros((len(components), 2))
    places[:, : components.shape[1]] = components[:, :2]
    return places


def _initial_positions(components: npt.NDArray[np.float32]) -> Places:
    places = _first_two(components)
    return _FIRST_SPREAD * (places / max(float(places[:, 0].std()), 1e-9) + _jitter(len(places)))


def _jitter(count: int) -> Places:
    """Return small random offsets, so that points at the same position can separate."""
    return _JITTER * np.random.default_rng(0).standard_normal((count, 2))


def _tsne(components: npt.NDArray[np.float32], start: Places, **how: float) -> Places:
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(components) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init=start.astype(np.float32), random_state=0, n_jobs=1, **how)
    return np.nan_to_num(np.asarray(tsne.fit_transform(components), dtype=np.float64))


def _exit_with_parent() -> None:
    os.read(0, 1)
    os._exit(1)


def main() -> int:
    """Read the arguments of `project`, write its result, and return the exit status."""
    os.nice(_NICE)
    signal.alarm(_TIMEOUT_SECONDS)
    length = int.from_bytes(sys.stdin.buffer.read(LENGTH_BYTES), "big")
    given = np.load(io.BytesIO(sys.stdin.buffer.read(length)))
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        places = project(given["vectors"], given["last"])
    except ImportError as error:
        print(error, file=sys.stderr)
        return LIBRARY_MISSING
    answer = io.BytesIO()
    np.save(answer, places)
    sys.stdout.buffer.write(answer.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
