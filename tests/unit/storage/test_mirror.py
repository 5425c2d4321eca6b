"""The states of a mirror, with a collection in memory that can be made to fail."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreUnreachableError
from otterwiki_semantic.core.records import ChromaFill, ChromaState
from otterwiki_semantic.core.telemetry import NO_TELEMETRY
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.chroma.mirror import MirrorState, VectorMirror
from otterwiki_semantic.storage.vector_store import CollectionSpec, StoredVector
from tests.support.vectors import MemoryStore


class Store(MemoryStore):
    """A collection that raises `failure`, if one is set."""

    failure: VectorStoreError | None = None

    def _check_open(self) -> None:
        if self.failure is not None:
            raise self.failure
        super()._check_open()


class Bench:
    """A catalog with vectors, and its mirror."""

    def __init__(self, place: Path) -> None:
        place.mkdir(exist_ok=True)
        self.place = place
        self.now = 1_000.0
        self.catalog = Catalog(place / "catalog.sqlite3")
        self.stores: list[Store] = []
        self.mirror = VectorMirror(self.catalog, place, CollectionSpec("otterwiki-test"), self._open, NO_TELEMETRY)
        self.mirror._rest = Cooldown(30.0, lambda: self.now)
        self.mirror._replaced_lately = Cooldown(30.0, lambda: self.now)

    def _open(self, directory: Path, spec: CollectionSpec) -> Store:
        self.stores.append(Store(directory, spec))
        return self.stores[-1]

    def add(self, *numbers: int) -> None:
        self.mirror.expect_more()
        self.catalog.vectors.add([StoredVector(f"v{number}", unit(number)) for number in numbers])

    def state(self) -> MirrorState:
        return self.mirror.state

    def break_store(self) -> None:
        self.stores[-1].failure = VectorStoreError("it is broken")

    def close(self) -> None:
        self.mirror.close()
        self.catalog.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "generation")
    yield made
    made.close()


@pytest.fixture
def current(bench: Bench) -> Bench:
    """A mirror of three vectors that searches may use."""
    bench.add(1, 2, 3)
    bench.mirror.push()
    assert bench.mirror.is_current
    return bench


def unit(number: int) -> Matrix:
    row = np.random.default_rng(number).normal(size=8).astype(np.float32)
    vector: Matrix = row / np.linalg.norm(row)
    return vector


def test_a_new_mirror_is_unverified_and_answers_nothing(bench: Bench) -> None:
    assert bench.state() is MirrorState.UNVERIFIED
    assert bench.mirror.query(unit(1), 1) is None
    bench.mirror.verify()
    assert bench.state() is MirrorState.FILLING


def test_a_mirror_is_current_once_its_outbox_is_empty(bench: Bench) -> None:
    bench.add(1, 2, 3)
    bench.mirror.push(seconds=0)
    assert bench.state() is MirrorState.FILLING
    assert bench.mirror.fill == ChromaFill(ChromaState.FILLING, 3, 0, collection="otterwiki-test")
    bench.mirror.push()
    assert bench.state() is MirrorState.CURRENT
    assert bench.mirror.fill == ChromaFill(ChromaState.READY, 0, 3, collection="otterwiki-test")
    assert list(bench.mirror.query(unit(2), 1) or ()) == ["v2"]


def test_a_fill_that_was_counted_before_the_last_push_is_not_ready(bench: Bench) -> None:
    bench.add(1, 2, 3)
    with ThreadPoolExecutor(1) as executor, bench.catalog.snapshot():
        assert bench.mirror.fill.pending == 3
        executor.submit(bench.mirror.push).result()
        assert (bench.mirror.fill.state, bench.mirror.fill.pending) == (ChromaState.FILLING, 3)
    assert bench.mirror.fill.state is ChromaState.READY


def test_more_vectors_take_a_mirror_from_searches_until_they_are_pushed(current: Bench) -> None:
    current.add(4)
    assert current.state() is MirrorState.FILLING
    assert current.mirror.query(unit(4), 1) is None
    current.mirror.push()
    assert list(current.mirror.query(unit(4), 1) or ()) == ["v4"]


def test_a_store_that_cannot_be_reached_rests_and_is_verified_again(current: Bench) -> None:
    current.stores[-1].failure = VectorStoreUnreachableError("it is down")
    assert current.mirror.query(unit(1), 1) is None
    assert current.state() is MirrorState.RESTING
    assert current.mirror.retry_in == 30.0
    assert current.mirror.fill == ChromaFill(ChromaState.RESTING, 0, 3, collection="otterwiki-test")
    assert str(current.mirror.error) == "it is down"
    current.stores[-1].failure = None
    current.mirror.push()
    assert current.state() is MirrorState.RESTING, "it is left alone"
    current.now += 31
    assert (current.state(), current.mirror.retry_in) == (MirrorState.UNVERIFIED, 0.0)
    assert current.mirror.error is not None, "until it has answered"
    current.mirror.push()
    assert current.state() is MirrorState.CURRENT
    assert bool(current.mirror.error) is False
    assert len(current.stores) == 1


def test_a_broken_store_is_replaced_and_filled_again(current: Bench) -> None:
    broken = current.mirror.store
    current.break_store()
    with pytest.raises(VectorStoreError, match="it is broken") as failure:
        current.mirror.query(unit(1), 1)
    current.mirror.handle_failure(broken, failure.value)
    assert current.state() is MirrorState.UNVERIFIED
    assert current.mirror.store is not broken
    assert not Path(broken.place).exists()
    replacement = current.mirror.store
    current.mirror.handle_failure(broken, failure.value)
    assert current.mirror.store is replacement, "another thread has replaced it already"
    current.mirror.push()
    assert current.mirror.is_current
    assert current.mirror.store.ids() == {"v1", "v2", "v3"}


def test_a_store_that_breaks_again_and_again_rests(current: Bench, caplog: pytest.LogCaptureFixture) -> None:
    for state in (MirrorState.UNVERIFIED, MirrorState.RESTING):
        current.break_store()
        current.mirror.handle_failure(current.mirror.store, VectorStoreError("it is broken"))
        assert current.state() is state
    assert "searching the catalog's vectors meanwhile" in caplog.text
    current.now += 31
    current.mirror.push()
    assert current.mirror.is_current


def test_a_failure_while_pushing_is_handled(current: Bench, caplog: pytest.LogCaptureFixture) -> None:
    current.add(4)
    current.break_store()
    current.mirror.push()
    assert current.state() is MirrorState.UNVERIFIED
    assert "it is broken; filling it again from the catalog" in caplog.text
    current.mirror.push()
    assert current.mirror.store.count() == 4


def test_a_push_ends_when_it_is_told_to(bench: Bench) -> None:
    class Stop(Exception):  # noqa: N818 - a request, not an error
        pass

    def stop() -> None:
        raise Stop

    bench.add(1)
    with pytest.raises(Stop):
        bench.mirror.push(check_stop=stop)
    assert bench.state() is MirrorState.FILLING
    bench.break_store()
    with pytest.raises(Stop):
        bench.mirror.push(check_stop=stop)
    assert len(bench.stores) == 1, "a store that was closed also fails, and is not replaced"


def test_what_a_store_lacks_or_has_needlessly_is_put_right(current: Bench, caplog: pytest.LogCaptureFixture) -> None:
    current.close()
    again = Bench(current.place)
    again.mirror.store.delete(["v1"])
    again.mirror.store.upsert([StoredVector("needless", unit(9))])
    again.mirror.push()
    assert again.mirror.is_current
    assert again.mirror.store.ids() == {"v1", "v2", "v3"}
    assert "ChromaDB differed from the catalog's record in 2 vectors" in caplog.text
    again.close()


@pytest.mark.parametrize(("missed", "is_sound"), [(3, True), (4, False)])
def test_a_store_is_replaced_if_it_misses_more_of_its_vectors_than_an_approximate_search_does(
    bench: Bench, missed: int, is_sound: bool
) -> None:
    bench.add(*range(12))
    bench.mirror.push()
    bench.stores[0].upsert([StoredVector(f"v{number}", -unit(number)) for number in range(missed)])
    bench.mirror._state = MirrorState.UNVERIFIED
    bench.mirror.push()
    assert (bench.mirror.store is bench.stores[0]) is is_sound


def test_a_collection_with_many_tombstones_is_replaced(current: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.mirror._MAX_TOMBSTONES", 1)
    current.add(*range(10, 13))
    current.catalog.vectors.collect_garbage()
    current.mirror.push()
    current.catalog.outbox.mark_deleted(["gone", "as well"])
    worn = current.mirror.store
    current.mirror.compact()
    assert current.state() is MirrorState.UNVERIFIED
    assert current.mirror.store is not worn
    assert current.catalog.outbox.tombstones == 0


def test_what_a_crash_left_of_a_replaced_collection_is_removed_once_the_new_one_is_whole(bench: Bench) -> None:
    (bench.place / "chroma-00000000").mkdir()
    bench.mirror.push()
    assert (bench.place / "chroma-00000000").exists(), "the catalog equals no commit yet"
    bench.catalog.end_change("a commit")
    bench.mirror.push()
    assert bench.mirror.is_whole
    assert [str(path) for path in bench.place.glob("chroma-*")] == [bench.mirror.store.place]
