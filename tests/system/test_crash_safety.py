"""Nothing else kills the index at its work and compares it with one built afresh: `python -m tests.chaos` in short.

Also that it fails when an index is wrong.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.chaos import chunk_fuzz, query_fuzz
from tests.chaos.contents import Contents, differences, read_contents
from tests.chaos.crashes import line, run_rounds, table
from tests.chaos.fuzzing import Batch, Finding, attempt, fuzz
from tests.chaos.laboratory import Laboratory, end_of_victim
from tests.chaos.leftovers import remains
from tests.chaos.points import Point
from tests.chaos.rounds import Round, run_round
from tests.chaos.scenarios import SCENARIOS
from tests.support.chunks import read_page

pytestmark = pytest.mark.real_parts

SEED = 3
KILLS = 2
SHARED_PAGE = "archive/liability"

FIRST_BUILD = SCENARIOS[0]
"""Also for what is about an index that is there already: it then equals HEAD."""


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    return Laboratory(tmp_path_factory.mktemp("laboratory"), SEED, scenarios=[FIRST_BUILD], size=4)


def test_an_index_that_is_killed_becomes_what_one_built_afresh_is(laboratory: Laboratory) -> None:
    results = list(run_rounds(laboratory, KILLS))
    assert sum(len(result.kills) for result in results) >= KILLS
    assert [line(result, SEED) for result in results if result.faults] == []
    assert {result.kind for result in results} == {"inside", "outside"}
    assert "failures" in table(results)


def test_a_process_dies_where_it_is_told_to(laboratory: Laboratory, tmp_path: Path) -> None:
    locations = laboratory.locations(FIRST_BUILD)
    (exchange,) = (location for location in locations if ":c_call:replace < storage/generation.py" in location)
    orders = laboratory.begin(FIRST_BUILD, tmp_path, persists=False)
    status, _ = end_of_victim(replace(orders, point=Point(exchange, 1, 0.0)))
    assert status == -signal.SIGKILL
    assert remains(Path(orders.data_dir)) == "nothing serves"
    assert (Path(orders.data_dir) / "current.new").exists()


# An index that is wrong


def change_catalog(data_dir: Path, statement: str) -> None:
    (catalog,) = data_dir.glob("generations/*/catalog.sqlite3")
    with closing(sqlite3.connect(catalog)) as connection, connection:
        assert connection.execute(statement).rowcount > 0


@contextmanager
def chroma(data_dir: Path) -> Iterator[Any]:
    import chromadb
    from chromadb.config import Settings

    import otterwiki_semantic.chroma  # noqa: F401 - ChromaDB warns of an embedding function that it does not know

    (directory,) = data_dir.glob("generations/*/chroma-*")
    client: Any = chromadb.PersistentClient(str(directory), settings=Settings(anonymized_telemetry=False))
    yield client.get_collection(client.list_collections()[0].name, embedding_function=None)
    client.close()


def lose_a_chunk(data_dir: Path) -> None:
    change_catalog(data_dir, f"DELETE FROM chunks WHERE path = '{SHARED_PAGE}'")


IN_THE_CATALOG = {
    f"DELETE FROM chunks WHERE path = '{SHARED_PAGE}'": "chunks lacks",
    f"UPDATE chunks SET text = text || '!' WHERE path = '{SHARED_PAGE}' AND ordinal = 0": "chunks has in vain",
    "UPDATE vectors SET embedding = zeroblob(1536) WHERE id = (SELECT MIN(id) FROM vectors)": "the catalog has another",
    "DELETE FROM vectors WHERE id = (SELECT MIN(id) FROM vectors)": "the catalog's vectors lacks",
    "DELETE FROM links WHERE path = (SELECT MIN(path) FROM links)": "links lacks",
    "DELETE FROM names WHERE path = (SELECT MIN(path) FROM names)": "names lacks",
    f"UPDATE pages SET updated = NULL WHERE path = '{SHARED_PAGE}'": "pages lacks",
    "UPDATE keywords SET body = '' WHERE rowid = (SELECT MIN(id) FROM chunks)": "keywords lacks",
    "INSERT INTO suspects SELECT MIN(id) FROM vectors": "suspects has 1 rows",
    "INSERT INTO dropped VALUES ('gone')": "dropped has 1 rows",
    "INSERT INTO unstored SELECT MIN(id) FROM vectors": "1 vectors are not said to be in ChromaDB",
    "INSERT INTO meta VALUES ('changing', 'somewhere')": "the catalog is said to be changing",
}
ONES = np.ones((1, 384), dtype=np.float32)
IN_CHROMA: dict[str, Callable[[Any, list[str]], object]] = {
    "ChromaDB has in vain more": lambda collection, _: collection.upsert(ids=["more"], embeddings=ONES),
    "ChromaDB lacks": lambda collection, ids: collection.delete(ids=ids),
    "ChromaDB has another text or other metadata for": lambda collection, ids: collection.update(
        ids=ids, metadatas=[{"page_path": "elsewhere"}]
    ),
    "ChromaDB has another vector for": lambda collection, ids: collection.update(ids=ids, embeddings=ONES),
}
IN_FILES: dict[str, Callable[[Path], object]] = {
    "ChromaDB's directory": lambda place: shutil.rmtree(next(place.glob("generations/*/chroma-*"))),
    "a generation that nobody needs: left-over": lambda place: (place / "generations/left-over").mkdir(),
    "stray in the generation: chroma-00000000": lambda place: (
        next(place.glob("generations/*/")).joinpath("chroma-00000000").mkdir()
    ),
    "stray in the data directory: current.new": lambda place: (place / "current.new").touch(),
    "no generation serves": lambda place: (place / "current").unlink(),
}


@pytest.fixture
def untouched(laboratory: Laboratory, tmp_path: Path) -> tuple[Path, Contents]:
    """The files of an index, and what they have to contain."""
    orders = laboratory.begin(replace(FIRST_BUILD, built=True), tmp_path, persists=False)
    return Path(orders.data_dir), laboratory.expectation(FIRST_BUILD).contents


def test_a_catalog_that_is_wrong_is_noticed(untouched: tuple[Path, Contents]) -> None:
    data_dir, expected = untouched
    assert differences(read_contents(data_dir), expected) == []
    (catalog,) = data_dir.glob("generations/*/catalog.sqlite3")
    sound = catalog.read_bytes()
    for statement, fault in IN_THE_CATALOG.items():
        change_catalog(data_dir, statement)
        said = differences(read_contents(data_dir), expected)
        assert any(fault in sentence for sentence in said), (statement, said)
        catalog.write_bytes(sound)


@pytest.mark.parametrize("fault", [*IN_CHROMA, *IN_FILES])
def test_files_that_are_wrong_are_noticed(untouched: tuple[Path, Contents], fault: str) -> None:
    data_dir, expected = untouched
    if fault in IN_FILES:
        IN_FILES[fault](data_dir)
    else:
        with chroma(data_dir) as collection:
            IN_CHROMA[fault](collection, collection.get()["ids"][:1])
    said = differences(read_contents(data_dir), expected)
    assert any(fault in sentence for sentence in said), said


def test_a_round_that_ends_with_a_wrong_index_fails_and_is_kept(laboratory: Laboratory) -> None:
    result: Round = run_round(laboratory, 1_000, replace(FIRST_BUILD, built=True, spoil=lose_a_chunk))
    assert any(fault.startswith("chunks lacks") for fault in result.faults)
    assert (result.place / "killed").is_dir()
    assert f"--seed {SEED} --round 1000" in line(result, SEED)


# Absurd texts


def test_absurd_pages_are_chunked_as_promised(tmp_path: Path) -> None:
    assert chunk_fuzz.try_pages(tmp_path, "chunks", 12).findings == ()


def test_a_fault_of_one_input_fails_the_whole_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.chaos.fuzzing.ProcessPoolExecutor", lambda *_, **__: ThreadPoolExecutor(1))
    found = Batch(1, 0.0, (Finding("'the input'", "what is wrong"),))
    assert not fuzz("findings", lambda *_: found, 1, SEED, tmp_path)
    assert (tmp_path / "findings-1.txt").read_text() == "what is wrong\n\n'the input'\n"
    assert attempt(lambda: str(1 / 0))[0] == "ZeroDivisionError: division by zero"


def test_chunks_that_break_a_promise_are_noticed(model: BundledModel) -> None:
    source = f"# Title\n\n{'Some words that stand there. ' * 60}\n\n## End\n\n{'The last words. ' * 60}".encode()
    page = read_page("page", "blob", source, model, Profile())
    first, *others = page.chunks
    wrong = {
        "": page.chunks,
        "not every word stands in a chunk in order": (first, *reversed(others)),
        "a chunk is empty": (*page.chunks, replace(first, text="[Title] ", prefix_length=8, overlap_length=0)),
        "a chunk has": (replace(first, text=first.text + " more" * 300), *others),
        "a chunk stands on lines that are not there": (replace(first, end_line=99), *others),
        "SQLite cannot store": (replace(first, section="\ud800"), *others),
    }
    for fault, chunks in wrong.items():
        said = chunk_fuzz.fault_of_page(replace(page, chunks=chunks), source, Profile())
        assert said.startswith(fault), said
        assert bool(said) == bool(fault), said


def test_absurd_queries_are_answered_as_promised_and_a_broken_promise_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_fuzz, "_DEMO", query_fuzz._DEMO / "machines")
    demo = query_fuzz.demo_in(tmp_path)
    assert query_fuzz.try_queries(tmp_path, "queries", 25).findings == ()
    demo.passages = dict.fromkeys(demo.passages, "Something else.")
    assert query_fuzz.try_queries(tmp_path, "some", 5).findings
    demo.index.close()
