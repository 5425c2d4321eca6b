"""An index whose vectors live in a ChromaDB server that is down, slow, or has lost everything: searches and saves go on."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.records import ChromaState, IndexStatus, Mode, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.storage.chroma.mirror import VectorMirror
from otterwiki_semantic.storage.chroma.server import ChromaServerStore
from tests.support.live_wiki import commit, eventually, is_settled, make_repository
from tests.support.running_chroma import GuardedChroma, RunningChroma


@pytest.fixture(autouse=True)
def asked_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask ChromaDB again soon after it failed."""
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.mirror._REST_SECONDS", 0.5)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningChroma]:
    made = RunningChroma(tmp_path / "server")
    made.start()
    yield made
    made.stop()


@pytest.fixture
def index(tmp_path: Path, server: RunningChroma, handbook: dict[str, str | bytes]) -> Iterator[IndexEngine]:
    repository = make_repository(tmp_path / "repository", handbook)
    made = IndexEngine(
        Settings(
            repository,
            tmp_path / "index",
            sync_interval=3600,
            chroma_url=server.url,
            vector_search="chroma",
            vectors="float32",
            pages=(),
        )
    )
    made.start()
    eventually(lambda: is_well(made) and (fill := made.status().chroma) is not None and fill.complete_commit)
    yield made
    made.close()


def is_well(index: IndexEngine) -> bool:
    status = index.status()
    return is_settled(status) and status.problems == () and status.index.commit == status.index.head


def best(index: IndexEngine, query: str) -> str:
    return index.search([query], SearchOptions(1, 1, Mode.SEMANTIC))[0].results[0].path


def save_bees(index: IndexEngine, tmp_path: Path) -> None:
    """Save a page, and see that it is found by meaning however ChromaDB is."""
    head = commit(tmp_path / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    index.notify()
    eventually(lambda: index.status().index.commit == head, 60)
    assert best(index, "insects that make honey") == "bees"


def mirror_of(index: IndexEngine) -> VectorMirror:
    serving = index._manager.serving
    assert serving is not None
    return serving.mirror


def held(index: IndexEngine) -> int:
    return len(mirror_of(index).store.ids())


def check_recovery(index: IndexEngine) -> None:
    eventually(lambda: is_well(index), 60)
    assert held(index) == index.status().vectors == 7
    assert index.status().embedded_texts == 7, "nothing was embedded twice"
    assert best(index, "insects that make honey") == "bees"


def between_attempts(index: IndexEngine) -> IndexStatus | None:
    """Return the status while ChromaDB is left alone; nothing while it is asked again."""
    status = index.status()
    return status if status.chroma is not None and status.chroma.state is ChromaState.RESTING else None


def test_a_server_that_is_down_is_done_without(index: IndexEngine, server: RunningChroma, tmp_path: Path) -> None:
    server.stop()
    assert best(index, "vegetables") == "garden"
    save_bees(index, tmp_path)
    status = eventually(lambda: between_attempts(index))
    assert status is not None
    (problem,) = status.problems
    assert server.url in problem.message
    assert "SEMANTIC_CHROMA_URL" in problem.hint
    assert status.status == "ready", "searches see all of HEAD"
    assert status.chroma is not None
    assert (status.chroma.pending, status.chroma.count) == (1, 6)
    assert status.chroma.complete_commit not in {None, status.index.commit}
    server.start()
    check_recovery(index)


def test_a_server_that_is_down_does_not_put_off_the_look_at_head(
    index: IndexEngine, server: RunningChroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.mirror._REST_SECONDS", 3600.0)
    index.close()
    server.stop()
    again = IndexEngine(
        Settings(
            tmp_path / "repository",
            tmp_path / "index",
            sync_interval=1,
            chroma_url=server.url,
            vector_search="chroma",
            vectors="float32",
            pages=(),
        )
    )
    again.start()
    eventually(lambda: again.status().problems)
    head = commit(tmp_path / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    eventually(lambda: again.status().index.commit == head, 20)
    again.close()


def test_a_server_that_does_not_answer_delays_no_more_than_one_search(
    index: IndexEngine, server: RunningChroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.kill(server.pid, signal.SIGSTOP)
    asked, query = list[Any](), ChromaServerStore.query

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return query(*arguments)

    monkeypatch.setattr(ChromaServerStore, "query", counted)
    try:
        assert best(index, "vegetables") == "garden"
        eventually(lambda: index.status().problems, why="the server that does not answer is a problem")
        rest = mirror_of(index)._rest = Cooldown(3600)
        rest.start()
        before = len(asked)
        assert before
        assert best(index, "a broken hard drive") == "machines/nas"
        assert len(asked) == before
        save_bees(index, tmp_path)
        rest.stop()
    finally:
        os.kill(server.pid, signal.SIGCONT)
    index.notify()
    check_recovery(index)


def test_a_server_that_was_emptied_is_filled_again(index: IndexEngine, server: RunningChroma, tmp_path: Path) -> None:
    server.stop()
    shutil.rmtree(server.directory)
    server.start()
    assert best(index, "vegetables") == "garden"
    save_bees(index, tmp_path)
    check_recovery(index)


def test_a_server_that_was_emptied_while_the_wiki_was_stopped_is_filled_again(
    index: IndexEngine, server: RunningChroma, tmp_path: Path
) -> None:
    index.close()
    server.stop()
    shutil.rmtree(server.directory)
    server.start()
    again = IndexEngine(
        Settings(
            tmp_path / "repository",
            tmp_path / "index",
            sync_interval=3600,
            chroma_url=server.url,
            vector_search="chroma",
            vectors="float32",
            pages=(),
        )
    )
    again.start()
    assert best(again, "vegetables") == "garden"
    eventually(lambda: is_well(again))
    assert held(again) == 6
    assert again.status().embedded_texts == 0
    again.close()


def test_a_wiki_that_starts_without_its_server_answers(index: IndexEngine, server: RunningChroma, tmp_path: Path) -> None:
    index.close()
    server.stop()
    again = IndexEngine(
        Settings(
            tmp_path / "repository",
            tmp_path / "index",
            sync_interval=3600,
            chroma_url=server.url,
            vector_search="chroma",
            vectors="float32",
            pages=(),
        )
    )
    again.start()
    assert best(again, "vegetables") == "garden"
    save_bees(again, tmp_path)
    server.start()
    eventually(lambda: is_well(again), 60)
    assert held(again) == 7
    again.close()


def test_a_rebuild_leaves_one_collection_on_the_server(index: IndexEngine, server: RunningChroma) -> None:
    index.reindex()
    eventually(lambda: index.status().rebuild.state is not RebuildState.RUNNING)
    assert index.status().rebuild.error is None
    eventually(lambda: server.collections() == [mirror_of(index).store.name])


def test_an_index_that_is_copied_begins_a_collection_of_its_own(
    index: IndexEngine, server: RunningChroma, tmp_path: Path
) -> None:
    store = mirror_of(index).store
    assert isinstance(store, ChromaServerStore)
    store._trusted = Cooldown(0.0)
    shutil.copytree(tmp_path / "repository", tmp_path / "other repository")
    shutil.copytree(tmp_path / "index", tmp_path / "other index", symlinks=True)
    settings = Settings(
        tmp_path / "other repository",
        tmp_path / "other index",
        sync_interval=3600,
        chroma_url=server.url,
        vector_search="chroma",
        vectors="float32",
        pages=(),
    )
    other = IndexEngine(settings)
    other.start()
    eventually(lambda: is_well(other))
    save_bees(index, tmp_path)
    eventually(lambda: (fill := index.status().chroma) is not None and fill.count == 7, 60)
    assert index.status().embedded_texts == 7, "nothing was embedded twice"
    (problem,) = eventually(lambda: index.status().problems)
    assert "SEMANTIC_COLLECTION" in problem.message, "the copy has the public name"
    assert best(other, "vegetables") == "garden"
    assert held(other) == 6
    assert other.status().embedded_texts == 0
    collections = {index.status().collection, other.status().collection}
    eventually(lambda: set(server.collections()) == collections)
    assert len(collections) == 2
    other.close()


def test_a_server_whose_disk_is_full_is_done_without(index: IndexEngine, server: RunningChroma, tmp_path: Path) -> None:
    mirror_of(index)._rest = Cooldown(5.0)
    mirror_of(index)._replaced_lately = Cooldown(5.0)
    _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    save_bees(index, tmp_path)
    eventually(lambda: index.status().problems)
    (problem,) = index.status().problems
    assert server.url in problem.message
    assert "start it again" in problem.message
    assert best(index, "vegetables") == "garden"
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))
    server.stop()  # ChromaDB 1.5.9 may keep its database locked after an error of the disk
    server.start()
    check_recovery(index)


def test_a_collection_that_could_not_be_removed_is_removed_once_the_server_is_back(
    index: IndexEngine, server: RunningChroma
) -> None:
    before = server.collection_id("otterwiki")
    assert before
    server.stop()
    index.reindex()
    eventually(lambda: index.status().rebuild.state is not RebuildState.RUNNING)
    server.start()
    eventually(lambda: is_well(index), 60)
    eventually(lambda: server.collection_id("otterwiki") not in {None, before})
    assert server.collections() == [index.status().collection] == ["otterwiki"]


def test_an_index_that_moves_to_a_server_is_not_embedded_again(
    server: RunningChroma, tmp_path: Path, handbook: dict[str, str | bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """The server has everything that settings tell of: TLS, a token, a tenant and a database; the token is in no log."""
    repository, token = make_repository(tmp_path / "repository", handbook), "a-token-nobody-guesses"
    guarded = GuardedChroma(server, tmp_path, token)
    here = Settings(repository, tmp_path / "index", sync_interval=3600, pages=())
    there = replace(
        here,
        chroma_url=guarded.url,
        chroma_token=token,
        chroma_database="acme/wiki",
        chroma_ca=guarded.certificate,
    )
    caplog.set_level(logging.DEBUG)
    for settings, embedded in ((here, 6), (there, 0), (here, 0)):
        index = IndexEngine(settings)
        (tmp_path / "index").mkdir(exist_ok=True)
        index.start()
        eventually(lambda index=index: is_well(index))  # type: ignore[misc]
        assert index.status().embedded_texts == embedded
        assert held(index) == 6
        assert best(index, "vegetables") == "garden"
        index.close()
    assert len(server.collections("acme/wiki")) == 1
    assert token not in caplog.text
    guarded.close()
