"""An index whose vectors live in a ChromaDB server that is down, slow, or has lost everything: searches and saves go on."""

from __future__ import annotations

import logging
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
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
from tests.support.live_wiki import commit, eventually, is_settled
from tests.support.processes import frozen
from tests.support.running_chroma import GuardedChroma, RunningChroma


@pytest.fixture(autouse=True)
def asked_for_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask ChromaDB again soon after it failed."""
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.mirror._REST_SECONDS", 0.5)


@pytest.fixture
def served(settings: Settings, chroma: RunningChroma) -> Settings:
    """Settings of a small wiki whose searches ask the server."""
    return replace(settings, chroma_url=chroma.url, vector_search="chroma", vectors="float32", pages=())


@pytest.fixture
def index(served: Settings) -> Iterator[IndexEngine]:
    with running(served) as made:
        eventually(lambda: is_well(made) and (fill := made.status().chroma) is not None and fill.complete_commit)
        yield made


@contextmanager
def running(settings: Settings) -> Iterator[IndexEngine]:
    """Run an index while the block runs."""
    made = IndexEngine(settings)
    made.start()
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
    eventually(lambda: index.status().index.commit == head)
    assert best(index, "insects that make honey") == "bees"


def mirror_of(index: IndexEngine) -> VectorMirror:
    serving = index._manager.serving
    assert serving is not None
    return serving.mirror


def held(index: IndexEngine) -> int:
    return len(mirror_of(index).store.ids())


def check_recovery(index: IndexEngine) -> None:
    eventually(lambda: is_well(index))
    assert held(index) == index.status().vectors == 7
    assert index.status().embedded_texts == 7, "nothing was embedded twice"
    assert best(index, "insects that make honey") == "bees"


def between_attempts(index: IndexEngine) -> IndexStatus | None:
    """Return the status while ChromaDB is left alone; nothing while it is asked again."""
    status = index.status()
    return status if status.chroma is not None and status.chroma.state is ChromaState.RESTING else None


def test_a_server_that_is_down_is_done_without(index: IndexEngine, chroma: RunningChroma, tmp_path: Path) -> None:
    chroma.stop()
    assert best(index, "vegetables") == "garden"
    save_bees(index, tmp_path)
    status = eventually(lambda: between_attempts(index))
    assert status is not None
    (problem,) = status.problems
    assert chroma.url in problem.message
    assert "SEMANTIC_CHROMA_URL" in problem.hint
    assert status.status == "ready", "searches see all of HEAD"
    assert status.chroma is not None
    assert (status.chroma.pending, status.chroma.count) == (1, 6)
    assert status.chroma.complete_commit not in {None, status.index.commit}
    chroma.start()
    check_recovery(index)


def test_a_server_that_is_down_does_not_put_off_the_look_at_head(
    index: IndexEngine, served: Settings, chroma: RunningChroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.chroma.mirror._REST_SECONDS", 3600.0)
    index.close()
    chroma.stop()
    with running(replace(served, sync_interval=1)) as again:
        eventually(lambda: again.status().problems)
        head = commit(tmp_path / "repository", {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
        eventually(lambda: again.status().index.commit == head)


def test_a_server_that_does_not_answer_delays_no_more_than_one_search(
    index: IndexEngine, chroma: RunningChroma, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, query = list[Any](), ChromaServerStore.query

    def counted(*arguments: Any) -> Any:
        asked.append(arguments)
        return query(*arguments)

    monkeypatch.setattr(ChromaServerStore, "query", counted)
    with frozen(chroma.pid):
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
    index.notify()
    check_recovery(index)


def test_a_server_that_was_emptied_is_filled_again(index: IndexEngine, chroma: RunningChroma, tmp_path: Path) -> None:
    chroma.stop()
    shutil.rmtree(chroma.directory)
    chroma.start()
    assert best(index, "vegetables") == "garden"
    save_bees(index, tmp_path)
    check_recovery(index)


def test_a_wiki_that_starts_without_its_server_answers(
    index: IndexEngine, served: Settings, chroma: RunningChroma, tmp_path: Path
) -> None:
    index.close()
    chroma.stop()
    with running(served) as again:
        assert best(again, "vegetables") == "garden"
        save_bees(again, tmp_path)
        chroma.start()
        eventually(lambda: is_well(again))
        assert held(again) == 7


def test_an_index_that_is_copied_begins_a_collection_of_its_own(
    index: IndexEngine, served: Settings, chroma: RunningChroma, tmp_path: Path
) -> None:
    store = mirror_of(index).store
    assert isinstance(store, ChromaServerStore)
    store._trusted = Cooldown(0.0)
    shutil.copytree(tmp_path / "repository", tmp_path / "other repository")
    shutil.copytree(tmp_path / "index", tmp_path / "other index", symlinks=True)
    with running(replace(served, repository=tmp_path / "other repository", data_dir=tmp_path / "other index")) as other:
        eventually(lambda: is_well(other))
        save_bees(index, tmp_path)
        eventually(lambda: (fill := index.status().chroma) is not None and fill.count == 7)
        assert index.status().embedded_texts == 7, "nothing was embedded twice"
        (problem,) = eventually(lambda: index.status().problems)
        assert "SEMANTIC_COLLECTION" in problem.message, "the copy has the public name"
        assert best(other, "vegetables") == "garden"
        assert held(other) == 6
        assert other.status().embedded_texts == 0
        collections = {index.status().collection, other.status().collection}
        eventually(lambda: set(chroma.collections()) == collections)
        assert len(collections) == 2


def test_a_server_whose_disk_is_full_is_done_without(index: IndexEngine, chroma: RunningChroma, tmp_path: Path) -> None:
    mirror_of(index)._rest = Cooldown(5.0)
    mirror_of(index)._replaced_lately = Cooldown(5.0)
    _, most = resource.prlimit(chroma.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    save_bees(index, tmp_path)
    (problem,) = eventually(lambda: index.status().problems)
    assert chroma.url in problem.message
    assert "start it again" in problem.message
    assert best(index, "vegetables") == "garden"
    resource.prlimit(chroma.pid, resource.RLIMIT_FSIZE, (most, most))
    chroma.stop()  # ChromaDB 1.5.9 may keep its database locked after an error of the disk
    chroma.start()
    check_recovery(index)


def test_a_collection_is_removed_once_the_server_is_back(index: IndexEngine, chroma: RunningChroma) -> None:
    before = chroma.collection_id("otterwiki")
    assert before
    chroma.stop()
    index.reindex()
    eventually(lambda: index.status().rebuild.state is not RebuildState.RUNNING)
    chroma.start()
    eventually(lambda: is_well(index))
    eventually(lambda: chroma.collection_id("otterwiki") not in {None, before})
    assert chroma.collections() == [index.status().collection] == ["otterwiki"]


def test_an_index_that_moves_to_a_server_is_not_embedded_again(
    chroma: RunningChroma, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server has everything that settings tell of: TLS, a token, a tenant and a database; the token is in no log."""
    token = "a-token-nobody-guesses"
    guarded = GuardedChroma(chroma, tmp_path, token)
    here = replace(settings, pages=())
    there = replace(
        here, chroma_url=guarded.url, chroma_token=token, chroma_database="acme/wiki", chroma_ca=guarded.certificate
    )
    caplog.set_level(logging.DEBUG)
    for place, embedded in ((here, 6), (there, 0), (here, 0)):
        with running(place) as index:
            eventually(lambda index=index: is_well(index))  # type: ignore[misc]
            assert index.status().embedded_texts == embedded
            assert held(index) == 6
            assert best(index, "vegetables") == "garden"
    assert len(chroma.collections("acme/wiki")) == 1
    assert token not in caplog.text
    guarded.close()
