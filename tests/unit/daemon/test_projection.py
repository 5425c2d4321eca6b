"""Places in the plane: what holds for any vectors, and that near ones are near each other."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from otterwiki_semantic.daemon.wiki_map.projection import Places, framed, near_places
from otterwiki_semantic.daemon.wiki_map.projection import project as project_named
from otterwiki_semantic.embedding.base import Matrix

DIMENSION = 64


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with threadpool_limits(1):
        yield


def none_of(count: int) -> Places:
    return np.full((count, 2), np.nan)


def project(vectors: Matrix, last: Places) -> Places:
    return project_named(vectors, last, [[f"Page {number}"] for number in range(len(vectors))])[0]


def clusters(sizes: list[int], spread: float = 1.0) -> tuple[Matrix, npt.NDArray[np.intp]]:
    """Return unit vectors around as many directions as there are sizes, and which is of which."""
    random = np.random.default_rng(1)
    directions = random.standard_normal((len(sizes), DIMENSION))
    group = np.repeat(np.arange(len(sizes)), sizes)
    vectors = directions[group] + spread * random.standard_normal((len(group), DIMENSION))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), group


def distances(places: npt.NDArray[np.floating]) -> Places:
    found: Places = np.linalg.norm(places[:, None] - places[None], axis=2)
    return found


ZERO, ONE, OTHER = 0, 1, 2
"""Kinds of a page: without text, one text, another text; every other number is a text of its own."""


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@settings(max_examples=6)
@given(st.lists(st.tuples(st.integers(ZERO, 12), st.booleans()), max_size=14))
@example([])
@example([(ONE, False)])
@example([(ONE, True), (ONE, True)])
@example([(ZERO, False)] * 9)
@example([(ONE, False)] * 40)
@example([(ONE, False)] * 20 + [(OTHER, False)] * 20)
@example([(number, True) for number in range(3, 12)])
def test_every_vector_gets_a_place_in_the_square(pages: list[tuple[int, bool]]) -> None:
    texts = np.vstack((np.zeros((1, DIMENSION), np.float32), clusters([1] * 40)[0]))
    vectors = texts[[kind for kind, _ in pages]].reshape(-1, DIMENSION)
    last = none_of(len(pages))
    for number, (_, has_place) in enumerate(pages):
        if has_place:
            last[number] = number % 5, number % 3
    places, span = framed(project(vectors, last))
    assert places.shape == (len(pages), 2)
    assert np.isfinite(places).all()
    assert span > 0
    assert ((places >= 0) & (places <= 1)).all()
    again, _ = framed(project(vectors, last))
    assert np.array_equal(places, again)
    if len({kind for kind, _ in pages}) > 1:
        assert np.ptp(places, axis=0).max() == pytest.approx(1)


def test_a_missing_library_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    with pytest.raises(ImportError):
        project(clusters([6])[0], none_of(6))


def test_three_have_their_true_distances() -> None:
    vectors = clusters([1, 1, 1])[0]
    places, span = framed(project(vectors, none_of(3)))
    assert distances(places) * span == pytest.approx(distances(vectors), abs=1e-5)


def test_what_is_near_is_near_on_the_map() -> None:
    from sklearn.manifold import trustworthiness

    vectors, group = clusters([20] * 5)
    places = project(vectors, none_of(len(vectors)))
    assert trustworthiness(vectors, places, n_neighbors=10) > 0.95
    apart = distances(places) + np.diag(np.full(len(places), np.inf))
    assert (group[apart.argmin(axis=1)] == group).all()


def test_a_map_is_carried_on_where_it_was() -> None:
    vectors, group = clusters([12] * 8)
    first = project(vectors, none_of(len(vectors)))
    changed = vectors.copy()
    changed[0] = vectors[group == 5].mean(axis=0)
    changed[0] /= np.linalg.norm(changed[0])
    new = project(np.vstack((changed, vectors[-1:])), np.vstack((first, none_of(1))))
    before, _ = framed(first)
    after, _ = framed(new[:-1])
    moved = np.linalg.norm(after - before, axis=1)
    assert np.median(moved[1:]) < 0.02
    assert moved[1:].max() < 0.1
    same = np.flatnonzero(group == 5)
    assert distances(after)[0, same].min() < 0.05 < distances(before)[0, same].min()
    assert np.linalg.norm(new[-1] - new[-2]) < 0.1 * np.ptp(new, axis=0).max()


def test_pages_that_say_the_same_have_places_of_their_own() -> None:
    vectors, _ = clusters([12] * 3, spread=0)
    places, _ = framed(project(vectors, none_of(len(vectors))))
    assert (distances(places) + np.eye(len(places))).min() > 0.01


def test_a_new_one_stands_amid_the_three_nearest() -> None:
    vectors, _ = clusters([3, 4])
    places = np.array([(0, 0), (3, 0), (0, 3), (9, 9), (9, 9), (9, 9), (9, 9)], dtype=np.float64)
    found = near_places(vectors[:3].mean(axis=0, keepdims=True), vectors, places)
    assert found.tolist() == [[1, 1]]
    assert near_places(vectors[:1], vectors[:1], places[1:2]).tolist() == [[3, 0]]
