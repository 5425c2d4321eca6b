"""The contract of a vector store, for embedded ChromaDB and a ChromaDB server."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreUnreachableError
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerStore
from otterwiki_semantic.storage.vector_store import CollectionSpec, StoredVector, VectorStore
from tests.support.http_server import Handler, HttpServer
from tests.support.processes import is_running
from tests.support.running_chroma import GuardedChroma, RunningChroma
from tests.support.vectors import MemoryStore, stored, unit_rows

pytestmark = pytest.mark.real_parts

Store = Callable[[str], VectorStore]
DATABASE = "/tenants/default_tenant/databases/default_database"

TOKEN = "a-token/that=nobody+guesses"


def on_server(url: str, name: str, notes: Path, answer_seconds: float = 5.0) -> ChromaServerStore:
    """Return the store of a collection on a server, of the wiki that has its notes there."""
    server = ChromaServer(url, answer_seconds=answer_seconds)
    return ChromaServerStore(server, name, CollectionOwnership(notes / "chroma-server.json", server.place))


@pytest.fixture(scope="module")
def guarded(shared_chroma: RunningChroma, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedChroma]:
    """The same server as one that is let in to over TLS, with a token, and in small portions."""
    with closing(GuardedChroma(shared_chroma, tmp_path_factory.mktemp("guard"), TOKEN)) as guarded:
        yield guarded


@pytest.fixture(params=["embedded", "in memory", "guarded server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Makes a store by the name of its collection: the same one again for the same name."""
    made: list[VectorStore] = []
    test = uuid.uuid4().hex

    def make(name: str) -> VectorStore:
        if request.param == "embedded":
            made.append(EmbeddedChromaStore(tmp_path / name, CollectionSpec(name)))
        elif request.param == "in memory":
            made.append(MemoryStore(tmp_path / name, CollectionSpec(name)))
        else:
            guard = request.getfixturevalue("guarded")
            behind = ChromaServer(guard.url, TOKEN, "acme", "wiki.of-acme", guard.certificate)
            made.append(ChromaServerStore(behind, f"{name}-{test}", CollectionOwnership(tmp_path / "notes.json", behind.place)))
        return made[-1]

    yield make
    for each in made:
        each.destroy()


@pytest.fixture
def vectors(store: Store) -> VectorStore:
    return store("otterwiki-test")


# What every store does


def test_the_nearest_vectors_come_first_with_their_cosine_distance(vectors: VectorStore) -> None:
    rows = unit_rows(300)
    vectors.upsert(stored(rows))
    found = vectors.query(rows[5], 10)
    exact = 1 - rows @ rows[5]
    assert list(found) == [f"v{i}" for i in np.argsort(exact)[:10]]
    assert np.allclose(list(found.values()), np.sort(exact)[:10], atol=1e-5)


def test_fewer_vectors_than_asked_for_are_all_there_is(vectors: VectorStore) -> None:
    assert vectors.query(unit_rows(1)[0], 10) == {}
    vectors.upsert(stored(unit_rows(1)))
    assert list(vectors.query(unit_rows(1)[0], 10)) == ["v0"]


def test_an_upsert_replaces_and_a_delete_removes(vectors: VectorStore) -> None:
    rows = unit_rows(3)
    vectors.upsert(stored(rows))
    vectors.upsert([StoredVector("v0", rows[1])])
    vectors.delete(["v2", "never there"])
    assert vectors.count() == 2
    found = vectors.query(rows[1], 2)
    assert sorted(found) == ["v0", "v1"]
    assert max(found.values()) < 1e-5


def test_any_number_of_vectors_is_stored_and_deleted_at_once(vectors: VectorStore) -> None:
    vectors.upsert([])
    vectors.delete([])
    assert vectors.count() == 0
    vectors.upsert(stored(unit_rows(250)))
    assert vectors.count() == 250
    vectors.delete([f"v{i}" for i in range(3_000)])
    assert vectors.count() == 0


def test_vectors_outlive_the_object_that_wrote_them(store: Store) -> None:
    first = store("otterwiki-test")
    first.upsert(stored(unit_rows(1)))
    first.close()
    assert list(store("otterwiki-test").query(unit_rows(1)[0], 1)) == ["v0"]


def test_a_closed_store_is_an_error_of_ours(vectors: VectorStore) -> None:
    vectors.upsert(stored(unit_rows(1)))
    vectors.close()
    vectors.close()
    with pytest.raises(VectorStoreError, match="is closed"):
        vectors.count()


def test_vectors_of_another_length_are_an_error_of_ours(vectors: VectorStore) -> None:
    vectors.upsert(stored(unit_rows(1)))
    with pytest.raises(VectorStoreError, match="could not search") as failure:
        vectors.query(np.ones(3, dtype=np.float32), 1)
    assert not isinstance(failure.value, VectorStoreUnreachableError)


def test_two_collections_do_not_see_each_other(store: Store) -> None:
    rows = unit_rows(2)
    first, second = store("otterwiki-first"), store("otterwiki-second")
    first.upsert([StoredVector("a", rows[0])])
    second.upsert([StoredVector("b", rows[0]), StoredVector("c", rows[1])])
    assert sorted(first.query(rows[0], 10)) == ["a"]
    first.delete(["b"])
    first.destroy()
    assert sorted(second.query(rows[0], 10)) == ["b", "c"]


def test_a_destroyed_store_leaves_nothing(store: Store) -> None:
    gone = store("otterwiki-test")
    gone.upsert(stored(unit_rows(1)))
    gone.destroy()
    gone.destroy()
    assert store("otterwiki-test").count() == 0


# On this machine


def test_a_damaged_database_is_an_error_of_ours(tmp_path: Path) -> None:
    vectors = EmbeddedChromaStore(tmp_path, CollectionSpec("otterwiki-test"))
    (vectors.directory / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    with pytest.raises(VectorStoreError, match="ChromaDB could not"):
        vectors.count()
    vectors.destroy()
    assert not vectors.directory.exists()


def test_a_search_during_a_write_disturbs_nothing(tmp_path: Path) -> None:
    vectors = EmbeddedChromaStore(tmp_path / "vectors", CollectionSpec("otterwiki-test"))
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(vectors.upsert, stored(unit_rows(300)))
        vectors.stay_open()
        assert vectors.query(unit_rows(300)[0], 1).keys() <= {"v0"}
        writing.result()
    assert vectors.count() == 300
    vectors.close()


def test_a_process_that_cannot_be_started_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    vectors = EmbeddedChromaStore(tmp_path / "vectors", CollectionSpec("otterwiki-test"))
    with monkeypatch.context() as patch:
        patch.setattr("otterwiki_semantic.core.worker_process.subprocess.Popen", refuse)
        with pytest.raises(VectorStoreUnreachableError, match="temporarily unavailable"):
            vectors.count()
    assert vectors.count() == 0
    vectors.close()


def test_a_process_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    vectors = EmbeddedChromaStore(tmp_path / "vectors", CollectionSpec("otterwiki-test"))
    vectors.upsert(stored(unit_rows(3)))
    first = vectors._worker._process
    assert first is not None
    first.kill()
    assert vectors.count() == 3
    assert list(vectors.query(unit_rows(3)[1], 1)) == ["v1"]
    last = vectors._worker._process
    assert last is not None
    vectors.close()
    assert not is_running(first.pid)
    assert not is_running(last.pid)


# On a server


def assert_unreachable(vectors: ChromaServerStore, reason: str) -> None:
    """Every call says that the server cannot be reached, where it is thought to be, and why."""
    row = unit_rows(1)[0]
    calls: list[Callable[[], object]] = [
        vectors.count,
        lambda: vectors.query(row, 1),
        lambda: vectors.upsert(stored(unit_rows(1))),
        lambda: vectors.delete(["v0"]),
    ]
    for call in calls:
        with pytest.raises(VectorStoreUnreachableError, match=reason) as failure:
            call()
        assert vectors.place in str(failure.value)
        assert "SEMANTIC_CHROMA_URL" in str(failure.value)


def test_a_server_that_is_down_is_unreachable_until_it_is_back(chroma: RunningChroma, tmp_path: Path) -> None:
    vectors = on_server(chroma.url, "otterwiki-test", tmp_path)
    chroma.stop()
    assert_unreachable(vectors, "refused")
    chroma.start()
    vectors.upsert(stored(unit_rows(2)))
    chroma.stop()
    assert_unreachable(vectors, "refused")
    chroma.start()
    assert list(vectors.query(unit_rows(2)[1], 1)) == ["v1"]
    vectors.close()


def test_a_server_that_never_answers_is_unreachable_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        vectors = on_server(f"http://127.0.0.1:{silent.getsockname()[1]}", "otterwiki-test", tmp_path, answer_seconds=0.2)
        assert_unreachable(vectors, r"no answer within 0\.2 s")
        vectors.destroy()


def test_threads_wait_for_a_silent_server_together(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(8) as threads, ExitStack() as accepted:
        silent.settimeout(30)
        vectors = on_server(f"http://127.0.0.1:{silent.getsockname()[1]}", "otterwiki-test", tmp_path, answer_seconds=60)
        asked = [threads.submit(vectors.count) for _ in range(8)]
        for _ in asked:
            accepted.enter_context(silent.accept()[0])
        assert not any(question.done() for question in asked)
        silent.close()
        accepted.close()
        assert {type(question.exception()) for question in asked} == {VectorStoreUnreachableError}
        vectors.close()


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        (502, "text/html", "answers 502 and text/html"),
        (200, "text/html", "answers 200 and text/html"),
        (404, "application/json", "is not ChromaDB"),
        (200, "application/json", "is not ChromaDB"),
    ],
)
def test_a_server_of_another_kind_is_unreachable(status: int, kind: str, reason: str, tmp_path: Path) -> None:
    class Other(Handler):
        def answer(self, body: bytes) -> None:  # noqa: ARG002 - it is the same to every request
            self.send(status, b'{"detail": "something else"}', {"Content-Type": kind})

    with HttpServer(Other) as other, closing(on_server(other.url, "otterwiki-test", tmp_path)) as vectors:
        assert_unreachable(vectors, reason)


@pytest.mark.parametrize("call", ["count", "upsert", "delete"])
def test_whichever_call_is_first_tells_of_a_lost_collection(shared_chroma: RunningChroma, call: str, tmp_path: Path) -> None:
    name = f"otterwiki-{uuid.uuid4().hex}"
    vectors = on_server(shared_chroma.url, name, tmp_path)
    vectors.upsert(stored(unit_rows(1)))
    shared_chroma.ask("DELETE", f"{DATABASE}/collections/{name}")
    calls: dict[str, Callable[[], object]] = {
        "count": vectors.count,
        "upsert": lambda: vectors.upsert(stored(unit_rows(1))),
        "delete": lambda: vectors.delete(["v0"]),
    }
    with pytest.raises(VectorStoreError, match="has lost"):
        calls[call]()
    vectors.destroy()


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    shared_chroma: RunningChroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for host in ("127.0.0.1", "localhost"):
        vectors = on_server(f"http://{host}:{shared_chroma.port}", f"otterwiki-{uuid.uuid4().hex}", tmp_path)
        assert vectors.count() == 0
        vectors.destroy()


def test_a_collection_that_cannot_be_removed_is_removed_later(
    chroma: RunningChroma, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = on_server(chroma.url, "otterwiki-gone", tmp_path)
    gone.upsert(stored(unit_rows(1)))
    chroma.stop()
    gone.destroy()
    assert "the collection otterwiki-gone stays behind for now" in caplog.text
    chroma.start()
    again = on_server(chroma.url, "otterwiki-again", tmp_path)
    assert again.count() == 0
    assert again.remove_strays() == ["otterwiki-gone"]
    assert chroma.collections() == ["otterwiki-again"]
    again.close()
