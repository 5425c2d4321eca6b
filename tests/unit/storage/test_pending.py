"""Chunks that are stored without a vector, and get it later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.embedding.vectors import vector_id
from otterwiki_semantic.storage import StoredVector
from tests.support.small_index import QUERY, SmallIndex


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallIndex]:
    made = SmallIndex(tmp_path / "index")
    yield made
    made.generation.close()


def add(small: SmallIndex, path: str, text: str, similarity: float) -> None:
    small.catalog.vectors.add([StoredVector(vector_id(f"[{path}] {text}"), small._vector(similarity))])


def pending(small: SmallIndex) -> list[str]:
    return sorted(path for path, *_ in small.catalog.vectors.pending_pages())


def nearest(small: SmallIndex) -> list[tuple[str, int, float]]:
    index = small.catalog.reader.exact_index()
    return [(chunk.path, chunk.ordinal, round(cosine, 3)) for chunk, cosine in index.nearest(QUERY, 10)]


def test_chunks_without_a_vector_are_pending_until_they_get_it(small: SmallIndex) -> None:
    small.put("boat", ("hull", 0.5), ("sail", None))
    small.put("house", ("roof", None))
    small.put("secret", ("words", None), words_only=True)
    assert (pending(small), small.catalog.vectors.count_pending()) == (["boat", "house"], 2)
    of_house = small.catalog.vectors.pending_chunks(["house", "boat"], first=True)
    assert [(key, chunk.path, chunk.text) for key, chunk in of_house] == [(vector_id("[house] roof"), "house", "[house] roof")]
    assert [chunk.text for _, chunk in small.catalog.vectors.pending_chunks(["house", "boat"], first=False)] == ["[boat] sail"]
    add(small, "boat", "sail", 0.9)
    assert pending(small) == ["house"]


def test_equal_texts_on_two_pages_get_one_vector(small: SmallIndex) -> None:
    small.put("boat", ("hull", None))
    small.put("boat", ("hull", None), ("keel", None))
    assert small.catalog.vectors.count_pending() == 2
    assert nearest(small) == []
    add(small, "boat", "hull", 0.5)
    assert nearest(small) == [("boat", 0, 0.5)]


def test_a_deleted_page_lacks_nothing(small: SmallIndex) -> None:
    small.put("boat", ("hull", None))
    small.put("house", ("roof", None))
    small.catalog.remove_pages(["boat"])
    assert (pending(small), small.catalog.vectors.count_pending()) == (["house"], 1)


def test_a_reader_that_missed_much_reads_all_again(small: SmallIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.catalog._MAX_FILLED", 1)
    small.put("boat", *((f"plank {number}", None) for number in range(5)))
    assert nearest(small) == []
    for number in range(5):
        add(small, "boat", f"plank {number}", (number + 1) / 10)
    small.catalog.end_change("a commit")
    assert small.catalog.select("SELECT COUNT(*) FROM filled")[0][0] == 1
    assert [cosine for *_, cosine in nearest(small)] == [0.5, 0.4, 0.3, 0.2, 0.1]
    assert small.catalog.reader.exact_index() is small.catalog.reader.exact_index(), "only once"


def test_the_number_of_pages_that_lack_vectors_is_kept(small: SmallIndex) -> None:
    small.put("boat", ("hull", None))
    small.catalog.begin_change("a commit")
    small.catalog.set_meta("stored", "a commit")
    assert (small.catalog.commit, small.catalog.stored_commit) == (None, "a commit")
    small.catalog.end_change("a commit")
    assert (small.catalog.commit, small.catalog.unfinished) == ("a commit", 1)
    add(small, "boat", "hull", 0.5)
    small.catalog.begin_change("another")
    assert small.catalog.stored_commit is None
    small.catalog.end_change("another")
    assert small.catalog.unfinished == 0


def test_looking_for_pages_that_lack_vectors_reads_no_other_chunks(small: SmallIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    select = small.catalog.select
    plans: list[str] = []

    def explain(statement: str, *values: str) -> list[tuple[str, ...]]:
        plans.extend(row["detail"] for row in select(f"EXPLAIN QUERY PLAN {statement}", *values))
        return []

    monkeypatch.setattr(small.catalog, "select", explain)
    assert not small.catalog.vectors.pending_pages()
    assert any("pending" in step for step in plans)
    assert not any(step.startswith("SCAN chunks") for step in plans)


def test_counts_follow_every_change(small: SmallIndex) -> None:
    def counted() -> tuple[int, ...]:
        return tuple(small.catalog.select(f"SELECT COUNT(*) FROM {table}")[0][0] for table in ("pages", "chunks", "vectors"))

    small.put("boat", ("hull", 0.5), ("sail", None))
    small.put("house", ("roof", 0.7))
    changes: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: add(small, "boat", "sail", 0.9),
        lambda: small.catalog.remove_pages(["boat"]),
        small.catalog.vectors.collect_garbage,
        lambda: small.put("garden", ("pond", 0.3)),
    )
    for change in changes:
        change()
        counts = small.catalog.counts()
        assert (counts.pages, counts.chunks, counts.vectors) == counted()
    assert counted() == (2, 2, 2)
