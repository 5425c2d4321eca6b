"""The return to the index that another one replaced."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from otterwiki_semantic.core.errors import RollbackError
from otterwiki_semantic.core.records import NO_CONTEXT, Answer, Mode, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings, index_settings, with_index_settings
from otterwiki_semantic.core.telemetry import SearchEvent
from otterwiki_semantic.daemon.reports.quality import DAY
from otterwiki_semantic.daemon.rollback import _DEGRADED, _SECONDS, _why_worse
from otterwiki_semantic.search.evaluation import score
from otterwiki_semantic.storage import Generation
from tests.support.engines import generation_of, opened
from tests.support.live_wiki import commit, eventually, head_of, make_repository
from tests.support.model_servers import ModelServer, serving

BEES: dict[str, str | bytes | None] = {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"}


class Wiki:
    """A repository, the configured settings, and the index that is open."""

    def __init__(self, place: Path, pages: dict[str, str | bytes]) -> None:
        self.settings = Settings(make_repository(place / "repository", pages), place / "index", sync_interval=1, pages=())
        self.index = opened(self.settings)

    def configure(self, settings: Settings) -> None:
        """Open the index with other settings, and wait until the index that they ask for serves."""
        self.settings = settings
        self.reopen()
        eventually(lambda: not self.index.status().is_outdated and self.index.status().previous)
        eventually(lambda: self.index.status().rebuild.state is not RebuildState.RUNNING)

    def reopen(self) -> None:
        self.index.close()
        self.index = opened(self.settings)

    def roll_back(self) -> str:
        """Roll back, and open the index again as the daemon does; returns the name of the generation."""
        wanted = self.index.roll_back().generation
        assert self.index.must_reopen
        self.reopen()
        assert wanted == self.index.status().generation
        return wanted or ""

    def ask(self, query: str) -> Answer:
        return self.index.search([query], SearchOptions(1, 1, Mode.SEMANTIC))[0]

    @property
    def serving(self) -> Generation:
        return generation_of(self.index)


@pytest.fixture
def wiki(tmp_path: Path, handbook: dict[str, str | bytes]) -> Iterator[Wiki]:
    made = Wiki(tmp_path, handbook)
    yield made
    made.index.close()


def test_there_is_nothing_to_return_to_at_first(wiki: Wiki) -> None:
    assert wiki.index.status().previous is None
    with pytest.raises(RollbackError, match="there is no earlier index"):
        wiki.index.roll_back()
    wiki.index.reindex(full=True)
    eventually(lambda: wiki.index.status().rebuild.state is RebuildState.DONE)
    assert wiki.index.status().previous is None, "the same settings make the same index"


def test_a_rollback_embeds_nothing_and_the_index_has_followed_the_wiki(wiki: Wiki) -> None:
    old = wiki.serving.name
    wiki.configure(replace(wiki.settings, chunks="fixed"))
    head = commit(wiki.settings.repository, BEES)
    previous = wiki.index._manager.previous.generation
    assert previous is not None
    eventually(lambda: previous.catalog.commit == head)
    assert wiki.roll_back() == old
    status = wiki.index.status()
    assert (status.indexed_commit, status.embedded_texts) == (head, 0)
    assert status.rollback is not None
    assert (status.rollback.reason, status.is_outdated) == ("an administrator asked for it", False)
    (problem,) = status.problems
    assert "otterwiki-semantic rollback" in problem.hint
    answer = wiki.ask("insects that make honey")
    assert (answer.results[0].path, answer.degraded) == ("bees", None)
    new = status.previous
    assert new is not None
    assert new.chunks == "fixed"
    assert wiki.roll_back() == new.generation
    assert (wiki.index.status().rollback, wiki.index.status().problems) == (None, ())


def test_a_rollback_from_a_models_server_needs_it_no_longer_and_back_costs_nothing(wiki: Wiki) -> None:
    server = ModelServer()
    with serving(server):
        options = {"model": "openai:words", "model_url": f"{server.url}/v1", "model_key": "sk-secret-0123456789"}
        wiki.configure(replace(wiki.settings, **options))  # type: ignore[arg-type]
        assert wiki.ask("the boiler in the cellar").degraded is None
        wiki.roll_back()
    answer = wiki.ask("vegetables")
    assert (answer.results[0].path, answer.degraded) == ("garden", None)
    assert wiki.index.status().model == "all-MiniLM-L6-v2"
    with serving(server):
        wiki.roll_back()
        assert wiki.ask("the boiler in the cellar").degraded is None
        assert wiki.index.status().embedded_texts == 0
    assert "sk-secret" not in (wiki.settings.data_dir / "current").read_text()
    assert not list(wiki.settings.data_dir.glob("rollback.json"))


def test_the_settings_before_return_to_the_index_before_without_embedding(wiki: Wiki) -> None:
    old, first = wiki.serving.name, wiki.settings
    wiki.configure(replace(first, chunks="fixed"))
    new = wiki.serving.name
    head = commit(first.repository, BEES)
    eventually(lambda: wiki.index.status().indexed_commit == head)
    wiki.configure(first)
    status = wiki.index.status()
    assert (status.generation, status.indexed_commit, status.rollback) == (old, head, None)
    assert status.embedded_texts <= 1, "the page that was changed since"
    assert status.previous is not None
    assert status.previous.generation == new
    eventually(lambda: {path.name for path in (first.data_dir / "generations").iterdir()} == {old, new})
    assert wiki.ask("insects that make honey").results[0].path == "bees"


def test_an_index_that_the_disk_has_no_room_for_is_not_offered(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    old = wiki.serving.name
    usage = shutil.disk_usage("/tmp")
    monkeypatch.setattr("otterwiki_semantic.storage.generation.shutil.disk_usage", lambda _place: usage._replace(free=1000))
    monkeypatch.setattr("otterwiki_semantic.indexing.rebuild.check_disk_space", lambda *_: None)
    wiki.settings = replace(wiki.settings, chunks="fixed")
    wiki.reopen()
    eventually(lambda: wiki.serving.name != old)
    eventually(lambda: not (wiki.settings.data_dir / "generations" / old).exists())
    eventually(lambda: wiki.index.status().previous is None)
    with pytest.raises(RollbackError):
        wiki.index.roll_back()


def test_a_rollback_that_cannot_be_written_changes_nothing(wiki: Wiki, monkeypatch: pytest.MonkeyPatch) -> None:
    wiki.configure(replace(wiki.settings, chunks="fixed"))
    new = wiki.serving.name

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("otterwiki_semantic.storage.generation.GenerationStore.set_previous", full)
    with pytest.raises(RollbackError, match="No space left"):
        wiki.index.roll_back()
    monkeypatch.undo()
    assert not wiki.index.must_reopen
    head = commit(wiki.settings.repository, BEES)
    eventually(lambda: wiki.index.status().indexed_commit == head, why="it is still followed")
    wiki.reopen()
    assert (wiki.serving.name, wiki.index.status().rollback) == (new, None)


def test_a_key_does_not_go_to_the_server_of_another_model() -> None:
    configured = Settings(Path("r"), Path("d"), model="openai:large", model_key="sk-0123456789", model_options='{"a": 1}')
    old = index_settings(replace(configured, model="ollama:nomic", model_url="http://10.0.0.5:11434"))
    used = with_index_settings(configured, old)
    assert (used.model, used.model_key, used.model_options) == ("ollama:nomic", None, "{}")
    same = with_index_settings(configured, index_settings(replace(configured, model="openai:small")))
    assert (same.model, same.model_key, same.model_options) == ("openai:small", "sk-0123456789", '{"a": 1}')


def test_other_settings_end_a_rollback(wiki: Wiki) -> None:
    wiki.configure(replace(wiki.settings, chunks="fixed"))
    wiki.roll_back()
    wiki.settings = replace(wiki.settings, chunks="long")
    wiki.reopen()
    eventually(lambda: wiki.serving.settings["chunks"] == "long")
    assert wiki.index.status().rollback is None


def test_a_record_of_a_rollback_that_cannot_be_read_is_ignored(wiki: Wiki, caplog: pytest.LogCaptureFixture) -> None:
    (wiki.settings.data_dir / "rollback.json").write_text("{")
    wiki.reopen()
    assert "cannot be read" in caplog.text
    assert wiki.ask("vegetables").results[0].path == "garden"


def answered(wiki: Wiki, degraded: int, seconds: float = 0.005) -> None:
    """Record 200 answers, some of them degraded; each took this long."""
    good = wiki.ask("vegetables")
    bad = structs.replace(good, degraded="the model failed")
    answers = [bad] * degraded + [good] * (200 - degraded)
    wiki.index._rollbacks.record_search(SearchEvent(answers, SearchOptions(), NO_CONTEXT, 200 * seconds))


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ((0, 0.005), (200, 0.005), "100% of 200 answers were degraded, and 0% before"),
        ((40, 0.03), (62, 0.07), "31% of 200 answers were degraded, and 20% before"),
        ((0, 0.03), (0, 0.07), "the median search took 70 ms, and 30 ms before"),
    ],
)
def test_answers_that_are_degraded_half_as_often_again_or_take_twice_as_long_roll_back(
    wiki: Wiki, before: tuple[int, float], after: tuple[int, float], reason: str
) -> None:
    answered(wiki, *before)
    wiki.configure(replace(wiki.settings, chunks="fixed"))
    answered(wiki, *after)
    eventually(lambda: wiki.index.must_reopen)
    wiki.reopen()
    status = wiki.index.status()
    assert (status.rollback and status.rollback.reason) == reason
    assert status.indexed_commit == head_of(wiki.settings.repository)


def test_only_the_first_answers_are_compared_with_those_before(wiki: Wiki) -> None:
    answered(wiki, 40, 0.04)
    wiki.configure(replace(wiki.settings, chunks="fixed"))
    answered(wiki, 58, 0.07)
    answered(wiki, 200)
    assert wiki.serving.settings["chunks"] == "fixed"
    assert not wiki.index.must_reopen
    for share, seconds in ((0, 0.049), (0.045, 0.0)):  # which is always good enough
        for fact in (_DEGRADED, _SECONDS):
            wiki.serving.catalog.set_meta(fact, "0.001")
        assert _why_worse(wiki.serving, share, seconds) is None


def test_an_index_whose_daily_figures_fell_rolls_back_unless_an_administrator_has_chosen(
    wiki: Wiki, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = tmp_path / "questions.json"
    questions.write_text('[{"query": "vegetables", "relevant": ["garden"]}, {"query": "siren", "relevant": ["house/alarm"]}]')
    wiki.settings = replace(wiki.settings, eval_queries=questions)
    wiki.reopen()
    eventually(lambda: wiki.index.insight().quality)
    old = wiki.serving.name
    wiki.settings = replace(wiki.settings, chunks="fixed")
    wiki.reopen()
    eventually(lambda: wiki.serving.name != old and wiki.index.insight().quality[0].generation == wiki.serving.name)
    assert not wiki.index.must_reopen, "it is as good"
    monkeypatch.setattr("otterwiki_semantic.search.evaluation.score", lambda judged, *_, **__: score(judged, []))
    evaluate_again(wiki, days=2)
    eventually(lambda: wiki.index.must_reopen)
    wiki.reopen()
    rollback = wiki.index.status().rollback
    assert (wiki.serving.name, rollback and rollback.reason) == (old, "recall@10 of judged queries is 0.000, and was 1.000")
    wiki.roll_back()
    evaluate_again(wiki, days=4)
    assert not wiki.index.must_reopen


def evaluate_again(wiki: Wiki, days: int) -> None:
    """Let the index ask its judged queries as some days later."""
    monitor = wiki.index._insights.quality
    assert monitor is not None
    count = len(wiki.index.insight().quality)
    monitor._clock = lambda: time.time() + days * DAY

    def is_asked() -> bool:
        monitor.refresh()  # which does nothing while they are being asked
        return len(wiki.index.insight().quality) > count and "quality" not in wiki.index._manager.scheduler._running

    eventually(is_asked)
