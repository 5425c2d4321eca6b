"""An index whose model is on a server: it is built, followed and asked, whatever becomes of the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from otterwiki_semantic.cli.common import indexed
from otterwiki_semantic.core.errors import RebuildRunningError
from otterwiki_semantic.core.records import Answer, Mode, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from tests.support.engines import generation_of
from tests.support.fake_time import set_jitter
from tests.support.live_wiki import commit, eventually, make_repository
from tests.support.model_servers import DIMENSION, ModelServer, Reply, serving

KEY = "sk-0123456789-secret"
WINDOW = {"/v1/models/words": {"max_model_len": 8192}}
QUESTION = "the boiler in the cellar warms the radiators"
BEES = {"bees.md": "# Bees\n\nThe hives stand behind the hedge, and honey is taken in July.\n"}


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again soon, so that nobody has to wait for what is tested."""
    set_jitter(monkeypatch, share=0)
    monkeypatch.setattr("otterwiki_semantic.indexing.recipe.MODEL_COOLDOWN_SECONDS", 0.2)
    monkeypatch.setattr("otterwiki_semantic.indexing.embedding_stage.MODEL_COOLDOWN_SECONDS", 0.2)
    monkeypatch.setattr("otterwiki_semantic.indexing.sync_job._RETRY_UNFINISHED_SECONDS", 0.3)
    monkeypatch.setattr("otterwiki_semantic.indexing.rebuild._RETRY_SECONDS", 0.5)


class Wiki:
    """A repository whose index asks a server that may come and go."""

    def __init__(self, place: Path, pages: dict[str, str | bytes]) -> None:
        self.server = ModelServer(told=WINDOW)
        with serving(self.server):
            pass  # it has an address from now on
        self._up = ExitStack()
        self.settings = Settings(
            make_repository(place / "repository", pages),
            place / "index",
            model="openai:words",
            model_url=f"{self.server.url}/v1",
            model_key=KEY,
            sync_interval=1,
            pages=(),
        )
        self.index: IndexEngine | None = None

    def up(self) -> None:
        self._up.enter_context(serving(self.server))

    def down(self) -> None:
        self._up.close()

    def start(self, settings: Settings | None = None) -> IndexEngine:
        self.stop()
        self.index = IndexEngine(settings or self.settings)
        self.index.start()
        return self.index

    def started(self, settings: Settings | None = None) -> IndexEngine:
        """Return an index that has all it needs from the server."""
        self.up()
        index = self.start(settings)
        eventually(lambda: is_well(index))
        return index

    def stop(self) -> None:
        if self.index is not None:
            self.index.close()
            self.index = None

    def close(self) -> None:
        self.stop()
        self.down()


@pytest.fixture
def wiki(tmp_path: Path, handbook: dict[str, str | bytes]) -> Iterator[Wiki]:
    made = Wiki(tmp_path, handbook)
    yield made
    made.close()


def is_well(index: IndexEngine) -> bool:
    status = index.status()
    return status.status == "ready" and not status.problems and status.index.pending_pages == 0 and status.vectors > 0


def ask(index: IndexEngine, query: str = QUESTION, mode: Mode = Mode.HYBRID) -> Answer:
    return index.search([query], SearchOptions(mode=mode))[0]


def answers_by_meaning(index: IndexEngine) -> bool:
    answer = ask(index, mode=Mode.SEMANTIC)
    return answer.degraded is None and answer.results[0].path == "house/heating"


def test_a_model_on_a_server_serves_as_the_bundled_one_does(wiki: Wiki) -> None:
    index = wiki.started()
    assert answers_by_meaning(index)
    assert index.status().model == "openai:words"
    head = commit(wiki.settings.repository, BEES)
    index.notify()
    eventually(lambda: index.status().index.commit == head and is_well(index))
    assert ask(index, "where is honey", Mode.SEMANTIC).results[0].path == "bees"


def test_a_start_sends_no_query(wiki: Wiki) -> None:
    wiki.started()
    wiki.server.asked.clear()
    index = wiki.start()
    serving = generation_of(index)
    index._searcher.warm_up(serving)
    assert not any("find a page" in text for texts in wiki.server.texts for text in texts)


def test_queries_of_one_request_are_embedded_in_one_and_fail_apart(wiki: Wiki) -> None:
    index = wiki.started()
    queries = [f"{QUESTION} {number}" for number in range(32)]
    wiki.server.asked.clear()
    answers = index.search(queries, SearchOptions(mode=Mode.SEMANTIC))
    (texts,) = wiki.server.texts
    assert set(queries) <= set(texts)
    assert [answer.query for answer in answers] == queries
    assert all(answer.results[0].path == "house/heating" for answer in answers)
    (alone,) = index.search(queries[3:4], SearchOptions(mode=Mode.SEMANTIC))
    assert alone.results == answers[3].results

    answer = wiki.server.answer
    wiki.server.answer = lambda path, body: Reply(500, "{}") if "poison" in str(body) else answer(path, body)  # type: ignore[method-assign]
    well, ill = index.search(["garden", "poison"], SearchOptions())
    assert well.degraded is None
    assert ill.degraded is not None
    assert "HTTP 500" in ill.degraded


def test_its_window_chooses_how_pages_are_divided(wiki: Wiki) -> None:
    index = wiki.started()
    assert index.inspect_page("house/heating").window == 8192
    assert index.status().chunks == index.status().pages, "pages under 600 words are whole"


def test_an_index_that_begins_while_the_server_is_down_answers_by_words_and_is_built_when_it_comes(wiki: Wiki) -> None:
    index = wiki.start()
    eventually(lambda: index.status().index.commit is not None and index.status().problems)
    answer = ask(index)
    assert answer.results[0].path == "house/heating"
    assert answer.degraded is not None
    assert "words alone" in answer.degraded
    (first, *_) = index.status().problems
    assert wiki.server.url in first.message
    wiki.up()
    eventually(lambda: is_well(index) and answers_by_meaning(index), 60)


def test_pages_saved_while_the_server_is_down_are_pending_and_found_by_words(wiki: Wiki) -> None:
    index = wiki.started()
    wiki.down()
    head = commit(wiki.settings.repository, BEES)
    index.notify()
    eventually(lambda: index.status().index.commit == head)
    answer = ask(index, "honey")
    assert answer.results[0].path == "bees"
    assert answer.degraded is not None
    assert index.status().index.pending_pages == 1
    assert index.status().problems
    wiki.up()
    eventually(lambda: ask(index, "where is honey", Mode.SEMANTIC).degraded is None and is_well(index), 60)
    assert ask(index, "where is honey", Mode.SEMANTIC).results[0].path == "bees"


def test_the_command_index_asks_an_unreached_model_at_once_and_waits(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.recipe.MODEL_COOLDOWN_SECONDS", 3600.0)
    wiki.down()
    index = wiki.start()
    eventually(lambda: index.status().status == "ready_by_words")
    assert index.status().vectors == 0
    wiki.up()
    status = indexed(index)
    assert (status.status, status.problems) == ("ready", ())
    assert status.vectors > 0


def test_after_a_start_without_the_server_the_index_is_what_it_was(wiki: Wiki) -> None:
    index = wiki.started()
    generation = index.status().generation
    wiki.stop()
    wiki.down()
    index = wiki.start()
    eventually(lambda: index.status().generation is not None)
    assert index.status().generation == generation
    assert ask(index).results[0].path == "house/heating"
    wiki.up()
    eventually(lambda: answers_by_meaning(index), 60)
    assert index.status().generation == generation
    assert index.status().embedded_texts == 0


@pytest.mark.parametrize("change", ["dimension", "weights"])
def test_another_model_of_the_same_name_is_noticed_and_the_index_built_anew(wiki: Wiki, change: str) -> None:
    index = wiki.started()
    generation = index.status().generation
    wiki.stop()
    if change == "dimension":
        wiki.server.dimension = DIMENSION - 8
    else:
        wiki.server.seed = "other weights"
    index = wiki.start()
    eventually(lambda: index.status().generation != generation and is_well(index), 60)
    assert answers_by_meaning(index)


def test_a_model_exchanged_while_it_is_used_spoils_nothing(wiki: Wiki) -> None:
    index = wiki.started()
    generation = index.status().generation
    wiki.server.dimension = DIMENSION - 8
    head = commit(wiki.settings.repository, BEES)
    index.notify()
    eventually(lambda: index.status().generation != generation and is_well(index), 60)
    assert index.status().index.commit == head
    assert ask(index, "where is honey", Mode.SEMANTIC).results[0].path == "bees"


def test_another_chunk_profile_is_built_beside_and_takes_over_the_same_texts(wiki: Wiki) -> None:
    index = wiki.started()
    whole = index.status().chunks
    index = wiki.start(replace(wiki.settings, chunks="minilm"))
    eventually(lambda: index.status().rebuild.state is RebuildState.DONE and is_well(index), 60)
    assert index.status().chunks > whole
    assert index.status().embedded_texts < index.status().chunks, "what is the same was taken over"


def test_the_key_is_told_to_nobody_but_the_server(wiki: Wiki, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    index = wiki.started()
    wiki.down()
    commit(wiki.settings.repository, BEES)
    index.notify()
    eventually(lambda: index.status().problems)
    told = f"{index.status()}{ask(index, 'honey')}{caplog.text}{wiki.settings}"
    assert KEY not in told
    kept = b"".join(path.read_bytes() for path in (tmp_path / "index").rglob("*") if path.is_file())
    assert KEY.encode() not in kept
    headers = [headers for path, headers, _body in wiki.server.asked if path.endswith("/embeddings")]
    assert headers
    assert all(each["Authorization"] == f"Bearer {KEY}" for each in headers)


def test_nobody_is_asked_in_vain(wiki: Wiki) -> None:
    index = wiki.started()
    before = len(wiki.server.texts)
    assert ask(index, "honey and hives", Mode.KEYWORD).degraded is None
    assert len(wiki.server.texts) == before, "a search by words needs no vector"
    wiki.stop()
    index = wiki.start(replace(wiki.settings, model="openai:other"))
    eventually(lambda: index.status().generation is not None)
    wiki.down()
    assert ask(index).results[0].path == "house/heating"


def test_the_status_is_told_while_the_model_is_timed(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    index = wiki.started(replace(wiki.settings, chunks="minilm", sync_interval=3600))
    asked, may_answer = Event(), Event()
    embed = index.embedder.embed

    def slow(texts: Sequence[str]) -> Matrix:
        asked.set()
        may_answer.wait(30)
        return embed(texts)

    def begin() -> None:
        with suppress(RebuildRunningError):  # a sync that just ended may have begun it first
            index.reindex()

    monkeypatch.setattr(index.embedder, "embed", slow)
    builder = index._manager.rebuilds
    builder._recipe = replace(builder._recipe, chunks="fixed")
    beginning = Thread(target=begin)
    beginning.start()
    assert asked.wait(30)
    assert index.status().rebuild.state is RebuildState.IDLE
    may_answer.set()
    beginning.join()


def test_a_model_exchanged_for_one_of_the_same_size_is_noticed_when_the_server_is_back(wiki: Wiki) -> None:
    index = wiki.started()
    generation = index.status().generation
    wiki.down()
    commit(wiki.settings.repository, BEES)
    index.notify()
    eventually(lambda: index.status().index.pending_pages == 1 and index.status().problems)
    wiki.server.seed = "other weights"
    wiki.up()
    eventually(lambda: index.status().generation != generation and ask(index).degraded is None and is_well(index), 60)
    assert ask(index, "the hives stand behind the hedge", Mode.SEMANTIC).results[0].path == "bees"
