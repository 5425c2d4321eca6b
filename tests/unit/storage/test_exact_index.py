"""Exact search gives the answers of comparing every vector, after any change."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.records import Chunk, Filters, Page
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.vectors import vector_id
from otterwiki_semantic.search.query import filter_of, parse_query
from otterwiki_semantic.storage import exact_index as exact_module
from otterwiki_semantic.storage import exact_index_cache, vector_rows
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.exact_index import ChunkRef, Columns, ExactIndex
from otterwiki_semantic.storage.filters import Filter
from otterwiki_semantic.storage.vector_rows import VectorRows
from otterwiki_semantic.storage.vector_store import StoredVector

DIMENSION = 8


@pytest.fixture(params=["float32", "int8", "disk"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return Catalog(tmp_path / "catalog.sqlite3", request.param)


def unit(text: str) -> Matrix:
    """Return a vector that belongs to a text."""
    numbers = np.random.default_rng(list(text.encode())).normal(size=DIMENSION).astype(np.float32)
    vector: Matrix = numbers / np.linalg.norm(numbers)
    return vector


def put(catalog: Catalog, path: str, texts: Sequence[str], *, tags: tuple[str, ...] = (), embed: bool = True) -> None:
    chunks = tuple(Chunk(text, 0, 0, "S", ("S",), ("S",), "s", 1, 1) for text in texts)
    if embed:
        catalog.vectors.add([StoredVector(vector_id(text), unit(text)) for text in texts])
    page = Page(path, f"blob {texts}", path, None, tags, 10, chunks)
    catalog.put_pages([(page, [vector_id(text) for text in texts])])


def nearest(catalog: Catalog, query: Matrix, count: int, tag: str | None = None) -> list[tuple[str, str]]:
    """Return the page and the vector of what the exact index finds."""
    with catalog.snapshot():
        where = filter_of(Filters(tags=(tag,) if tag else ()), parse_query("anything"))
        index = catalog.reader.exact_index()
        allowed = catalog.reader.mask(index, where)
        found = index.nearest(query, count, allowed.mask if allowed else None)
    assert [cosine for _, cosine in found] == sorted((cosine for _, cosine in found), reverse=True)
    return [(candidate.path, candidate.vector) for candidate, _ in found]


def brute_force(pages: dict[str, list[str]], query: Matrix, count: int) -> list[tuple[str, str]]:
    everything = [(path, text) for path, texts in pages.items() for text in texts]
    everything.sort(key=lambda item: -float(unit(item[1]) @ query))
    return [(path, vector_id(text)) for path, text in everything[:count]]


@given(
    changes=st.lists(
        st.tuples(st.integers(0, 5), st.lists(st.integers(0, 99), max_size=6, unique=True)), min_size=1, max_size=12
    ),
    block=st.integers(1, 5),
    count=st.integers(1, 20),
    vectors=st.sampled_from(["float32", "int8"]),
)
def test_it_finds_what_comparing_every_vector_finds_after_every_change(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, list[int]]], block: int, count: int, vectors: str
) -> None:
    query = unit("the question")
    wiki: dict[str, list[str]] = {}
    catalog = Catalog(tmp_path_factory.mktemp("flat") / "catalog.sqlite3", vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_rows, "BLOCK", block)
        patch.setattr(exact_module, "_MAX_DELETED", 2)
        for number, words in changes:
            path, texts = f"page-{number}", [f"{number} {word}" for word in words]
            if texts:
                put(catalog, path, texts, tags=("even",) if number % 2 == 0 else ())
                wiki[path] = texts
            else:
                catalog.remove_pages([path])
                wiki.pop(path, None)
            assert nearest(catalog, query, count) == brute_force(wiki, query, count)
            even = {path: texts for path, texts in wiki.items() if int(path[-1]) % 2 == 0}
            assert nearest(catalog, query, count, tag="even") == brute_force(even, query, count)
    catalog.close()


def test_a_search_that_began_before_a_change_sees_the_state_before_it(catalog: Catalog) -> None:
    put(catalog, "a", ["oak"])
    began, changed = threading.Event(), threading.Event()
    seen: list[tuple[list[tuple[str, str]], dict[str, int]]] = []

    def search() -> None:
        with catalog.snapshot():
            catalog.meta("revision")
            began.set()
            assert changed.wait(10)
            seen.append((nearest(catalog, unit("oak"), 5), catalog.keywords.frequencies(["oak", "elm"])))

    thread = threading.Thread(target=search)
    thread.start()
    assert began.wait(10)
    put(catalog, "a", ["elm"])
    put(catalog, "b", ["more"])
    assert [path for path, _ in nearest(catalog, unit("elm"), 5)] == ["a", "b"]
    changed.set()
    thread.join(10)
    assert seen == [([("a", vector_id("oak"))], {"oak": 1, "elm": 0})]
    with catalog.snapshot():
        assert catalog.keywords.frequencies(["oak", "elm"]) == {"oak": 0, "elm": 1}, "nothing of the older state is left"


def test_a_filter_is_made_for_the_rows_that_it_is_used_with(catalog: Catalog) -> None:
    """The same state may be in memory with the rows of pages that have gone, and without them."""
    put(catalog, "a", ["one", "two"], tags=("even",))
    with catalog.snapshot():
        catalog.reader.exact_index()
    put(catalog, "a", ["three"], tags=("even",))
    where = filter_of(Filters(tags=("even",)), parse_query("anything"))
    with catalog.snapshot():
        grown = catalog.reader.exact_index()
        of_grown = catalog.reader.mask(grown, where)
    catalog.reader.exact_indexes._states = ()
    with catalog.snapshot():
        afresh = catalog.reader.exact_index()
        of_afresh = catalog.reader.mask(afresh, where)
    assert of_grown is not None
    assert of_afresh is not None
    assert (len(grown), len(afresh)) == (3, 1)
    for rows, allowed in ((grown, of_grown), (afresh, of_afresh)):
        assert [each.vector for each, _ in rows.nearest(unit("one"), 5, allowed.mask)] == [vector_id("three")]


def test_a_passage_without_a_vector_is_known_but_near_to_nothing(catalog: Catalog) -> None:
    put(catalog, "a", ["embedded"])
    put(catalog, "b", ["not embedded"], embed=False)
    with catalog.snapshot():
        found = catalog.reader.exact_index()
        ids = found.columns.ids[found.live].tolist()
        assert found.size == 2
        assert [candidate.path for candidate in found.candidates(ids)] == ["a", "b"]
        assert list(found.similarities(unit("embedded"), ids)) == ids[:1]
        assert [candidate.path for candidate, _ in found.nearest(unit("embedded"), 5)] == ["a"]


def test_a_closed_catalog_frees_its_index_without_a_garbage_collection(catalog: Catalog) -> None:
    index = weakref.ref(catalog.reader.exact_index())
    catalog.close()
    assert index() is None


def test_unknown_chunks_are_left_out(catalog: Catalog) -> None:
    put(catalog, "a", ["one"])
    with catalog.snapshot():
        found = catalog.reader.exact_index()
        assert found.candidates([99, *found.columns.ids[found.live].tolist()]) == found.candidates(
            found.columns.ids[found.live].tolist()
        )
        assert found.similarities(unit("one"), [99]) == {}


def test_a_vector_that_is_not_of_unit_length_is_damage(catalog: Catalog) -> None:
    put(catalog, "a", ["one"])
    with catalog.write() as connection:
        connection.execute("UPDATE vectors SET embedding = ?", (bytes(4 * DIMENSION),))
    with pytest.raises(CatalogCorruptError, match="unit length"):
        nearest(catalog, unit("one"), 5)


@pytest.mark.parametrize("few", [0, 10_000])
def test_words_are_found_in_a_filter_however_many_pass_it(catalog: Catalog, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.filters._PUSHED_DOWN", few)
    for number in range(60):
        put(catalog, f"page-{number:02}", [f"apple number {number}"], tags=("late",) if number >= 50 else ())
    with catalog.snapshot():
        allowed = catalog.reader.mask(catalog.reader.exact_index(), filter_of(Filters(tags=("late",)), parse_query("apple")))
        assert allowed is not None
        assert allowed.size == 10
        scores = catalog.keywords.scores('"appl"', 5, allowed)
        assert len(scores) == 5
        assert allowed.select(list(scores)) == list(scores)
        assert len(catalog.keywords.scores('"appl"', 100, allowed)) == 10
        assert catalog.reader.mask(catalog.reader.exact_index(), Filter()) is None


def test_means_of_pages(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_rows, "BLOCK", 4)
    texts = {"one": ["a"], "many": [*"bcdefghijk"], "two": ["l", "m"], "gone": ["n"], "bare": ["o"]}
    for path, words in texts.items():
        put(catalog, path, words, embed=path != "bare")
    catalog.remove_pages(["gone"])
    texts["two"] = ["p", "q", "r"]
    put(catalog, "two", texts["two"])
    paths, means = catalog.reader.exact_index().page_means()
    assert sorted(paths) == ["many", "one", "two"]
    for path, mean in zip(paths, means, strict=True):
        expected = sum(unit(text) for text in texts[path])
        assert mean == pytest.approx(expected / np.linalg.norm(expected), abs=0.01)


def test_an_empty_index_has_no_means(catalog: Catalog) -> None:
    paths, means = catalog.reader.exact_index().page_means()
    assert (paths, len(means)) == ([], 0)


def columns(*ids: int) -> Columns:
    """Return the columns of chunks, of which those with even ids have a vector."""
    chunks = [(id_, id_ // 10, id_ % 10, 0 if id_ % 2 else id_, vector_id(f"{id_}"), bytes([id_] * 32)) for id_ in ids]
    return Columns.of(chunks)


def test_an_exact_index_does_not_change_when_it_is_extended() -> None:
    no_vectors = VectorRows(np.float32).append(np.empty((0, 0), dtype=np.float32), np.zeros(2, dtype=np.bool_))
    first = ExactIndex(1, columns(11, 13), no_vectors, {1: "one", 2: "two"}, lambda _: {})
    second = first.extended(2, [columns(21)], no_vectors, np.array([2], dtype=np.int32))
    assert (len(first), first.size, first.last_id, first.revision) == (2, 2, 13, 1)
    assert (len(second), second.size, second.last_id, second.revision) == (3, 1, 21, 2)
    assert second.candidates([11, 13, 21]) == [ChunkRef(21, vector_id("21"), "two", 1)]
    assert second.compacted() is second, "a few deleted rows are kept"


def test_vectors_that_arrive_later_are_filled_in_while_older_states_are_read(catalog: Catalog) -> None:
    put(catalog, "a", ["one"])
    put(catalog, "b", ["two", "three"], embed=False)
    with catalog.snapshot():
        before = catalog.reader.exact_index()
        catalog.vectors.add([StoredVector(vector_id("three"), unit("three"))])
        assert catalog.reader.exact_index() is before, "a search sees one state throughout"
        assert [chunk.path for chunk, _ in before.nearest(unit("three"), 5)] == ["a"]
    with catalog.snapshot():
        after = catalog.reader.exact_index()
    assert (after.revision, after.filled) == (before.revision, before.filled + 1)
    assert [(chunk.path, chunk.ordinal) for chunk, _ in after.nearest(unit("three"), 1)] == [("b", 1)]
    assert [chunk.path for chunk, _ in before.nearest(unit("three"), 5)] == ["a"], "the older state still masks the row"
    catalog.vectors.add([StoredVector(vector_id("two"), unit("two"))])
    assert nearest(catalog, unit("two"), 1) == [("b", vector_id("two"))]


def test_int8_is_chosen_for_large_wikis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_index_cache, "_FLOAT32_UP_TO", 3)
    catalog = Catalog(tmp_path / "catalog.sqlite3")
    formats = []
    for number in range(5):
        put(catalog, f"page-{number}", [f"text {number}"])
        vectors = catalog.reader.exact_index().in_memory
        formats.append(vectors.dtype.name if vectors is not None else None)
        assert nearest(catalog, unit("text 0"), 1) == [("page-0", vector_id("text 0"))]
    assert formats == ["float32"] * 3 + ["int8"] * 2


def test_int8_finds_and_scores_what_float32_does(tmp_path: Path) -> None:
    catalogs = {name: Catalog(tmp_path / f"{name}.sqlite3", name) for name in ("float32", "int8")}
    for catalog in catalogs.values():
        for page in range(20):
            put(catalog, f"page-{page}", [f"{page} {text}" for text in range(30)])
    exact, quick = (catalog.reader.exact_index() for catalog in catalogs.values())
    ids = quick.columns.ids[quick.live].tolist()
    for question in ("apples", "pears", "plums"):
        expected, found = exact.nearest(unit(question), 10), quick.nearest(unit(question), 10)
        assert [chunk for chunk, _ in found] == [chunk for chunk, _ in expected]
        assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected], abs=1e-6)
        assert quick.similarities(unit(question), ids) == pytest.approx(exact.similarities(unit(question), ids), abs=1e-6)
    assert quick.vectors(ids)[0] == pytest.approx(exact.vectors(ids)[0], abs=0.01)
    assert quick.vectors_or_zeros([0, *ids])[1:] == pytest.approx(exact.vectors(ids)[0], abs=0.01)
    assert quick.page_means()[1] == pytest.approx(exact.page_means()[1], abs=0.01)


def test_equal_texts_have_one_similarity(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "catalog.sqlite3", "int8")
    for page in range(9):
        put(catalog, f"page-{page}", ["the same", f"another {page}"])
    same = {cosine for chunk, cosine in catalog.reader.exact_index().nearest(unit("q"), 99) if chunk.ordinal == 0}
    assert max(same) - min(same) < 1e-6


def test_a_vector_that_the_catalog_no_longer_has_is_compared_as_int8(tmp_path: Path) -> None:
    """A reader outside of a snapshot may hold a state that is older than what it reads."""
    catalog = Catalog(tmp_path / "catalog.sqlite3", "int8")
    put(catalog, "a", ["one", "two"])
    index = catalog.reader.exact_index()
    ids = index.columns.ids[index.live].tolist()
    catalog.remove_pages(["a"])
    catalog.vectors.collect_garbage()
    put(catalog, "b", ["three"])
    found = index.similarities(unit("one"), ids)
    assert found == pytest.approx(
        {chunk: float(unit(text) @ unit("one")) for chunk, text in zip(ids, ("one", "two"), strict=True)}, abs=0.02
    )
    assert index.nearest(unit("one"), 1)[0][0].path == "a"


def test_the_similarity_of_a_page_is_the_mean_of_its_chunks(catalog: Catalog) -> None:
    put(catalog, "a", ["one", "two", "three"])
    put(catalog, "none", ["four"], embed=False)
    put(catalog, "b", ["five"])
    put(catalog, "a", ["one", "two", "six"])  # an edited page comes last
    index = catalog.reader.exact_index()
    ids = index.columns.ids[index.live].tolist()
    pages = index.pages_of(index.find(ids))
    assert [index.paths[int(index.columns.pages[row])] for row in pages.rows] == ["none", "b", "a", "a", "a"]
    assert pages.of_chunk.tolist() == [0, 1, 2, 2, 2]
    means = index.page_similarities(unit("query"), pages)
    if index.in_memory is None:
        assert means is None
        return
    assert means is not None
    expected = [
        np.nan,
        *(np.mean([unit(text) @ unit("query") for text in texts]) for texts in (["five"], ["one", "two", "six"])),
    ]
    assert means == pytest.approx(expected, abs=0.02, nan_ok=True)
