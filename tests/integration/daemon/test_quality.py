"""Judged queries are asked of the serving index in the background: when, and what is kept of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from otterwiki_semantic.cli.evaluate.runs import measure
from otterwiki_semantic.core.errors import ModelUnreachableError
from otterwiki_semantic.core.records import Mode, QualityRecord, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.reports.quality import DAY, MAX_RECORDS, QualityMonitor, StoredQuality, _read_quality
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.search.evaluation import read_judged_queries
from tests.support.engines import opened, wait_until_equal
from tests.support.live_wiki import commit, eventually, head_of

QUERIES: list[dict[str, Any]] = [
    {"query": "bleeding a radiator", "relevant": ["house/heating"]},
    {"query": "vegetables", "relevant": ["garden", "a page that is not there"]},
    {"query": '"a phrase that is not there"', "relevant": ["a page that is not there"]},
]
Open = Callable[..., IndexEngine]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "queries.json"
    path.write_text(json.dumps(QUERIES))
    return path


@pytest.fixture
def start(settings: Settings, questions: Path) -> Iterator[Open]:
    made: list[IndexEngine] = []

    def engine(**changed: Any) -> IndexEngine:
        made.append(opened(replace(replace(settings, eval_queries=questions, sync_interval=3600.0), **changed)))
        return made[-1]

    yield engine
    for index in made:
        index.close()


def records(index: IndexEngine, count: int) -> tuple[QualityRecord, ...]:
    """Wait until the queries were asked so often; return the history."""
    eventually(lambda: len(index.insight().quality) >= count)
    return index.insight().quality


def looked(index: IndexEngine) -> None:
    """Let the index look whether the queries are due, and ask them if so."""
    wait_until_equal(index)
    wait_until_idle(index)
    scheduler, has_looked = index._manager.scheduler, threading.Event()

    def look() -> None:
        monitor(index)._evaluate_if_due()
        has_looked.set()

    def ask() -> bool:
        scheduler.run_in(0, "quality", look)
        return has_looked.wait(0.2)

    eventually(ask)
    wait_until_idle(index)


def wait_until_idle(index: IndexEngine) -> None:
    eventually(lambda: "quality" not in index._manager.scheduler._running)


def monitor(index: IndexEngine) -> QualityMonitor:
    assert index._insights.quality is not None
    return index._insights.quality


def set_clock(index: IndexEngine, seconds: float) -> None:
    monitor(index)._clock = lambda: time.time() + seconds


# What is kept


def test_the_figures_are_those_of_an_evaluation_by_hand(settings: Settings, questions: Path, start: Open) -> None:
    index = start()
    (record,) = records(index, 1)
    options = SearchOptions(20, 1, rerank=False)
    rankings = {"hybrid": options, "semantic": SearchOptions(20, 1, Mode.SEMANTIC, rerank=False)}
    run, semantic = (found["metrics"] for found in measure(index, read_judged_queries(questions), rankings))
    assert 0 < run["zero"] < 1
    assert record.semantic_recall_at_10 == pytest.approx(semantic["recall@10"], abs=1e-4)
    found = (record.recall_at_10, record.precision_at_10, record.mrr, record.zero_result_rate)
    assert found == pytest.approx((run["recall@10"], run["precision@10"], run["mrr"], run["zero"]), abs=1e-4)
    assert (record.queries, record.unanswerable, record.missing) == (3, 1, ("a page that is not there",))
    assert (record.commit, record.generation) == (head_of(settings.repository), index.status().generation)
    assert record.model == index.status().model
    metrics = index.metrics()
    assert f"otterwiki_semantic_quality_recall_at_10_ratio {record.recall_at_10}" in metrics
    assert f"otterwiki_semantic_quality_zero_result_ratio {record.zero_result_rate}" in metrics
    assert "otterwiki_semantic_quality_queries 3.0" in metrics


def test_pages_pinned_to_a_question_are_found_as_in_a_search(settings: Settings, questions: Path, start: Open) -> None:
    pinned = "---\nanswers: colour of the moon\n---\n# Chairs\n\nThey stand in the office.\n"
    commit(settings.repository, {"chairs.md": pinned})
    questions.write_text('[{"query": "the moon\'s colour", "relevant": ["chairs"]}]')
    index = start()
    eventually(lambda: index.search(["the moon's colour"], SearchOptions())[0].results[0].path == "chairs")
    (record,) = records(index, 1)
    assert record.mrr == 1.0


def test_nothing_counts_as_a_search(start: Open) -> None:
    index = start(search_log=True)
    records(index, 1)
    assert index.insight().searches == ()
    assert index._searcher.queries.cache_hits_and_misses == (0, 0)
    metrics = index.metrics()
    for count in ("draft_searches_total", 'searches_total{outcome="answered"}', 'searches_total{outcome="nothing_relevant"}'):
        assert f"otterwiki_semantic_{count} 0.0" in metrics


def test_without_judged_queries_there_is_nothing(start: Open) -> None:
    index = start()
    records(index, 1)
    index.close()
    index = start(eval_queries=None)
    assert (index.insight().has_judged_queries, index.insight().quality) == (False, ())
    assert "quality_" not in index.metrics()


# When they are asked


def test_they_are_asked_once_a_day_however_often_the_daemon_is_started(settings: Settings, start: Open) -> None:
    first = start()
    (record,) = records(first, 1)
    first.close()
    for _ in range(2):
        index = start()
        looked(index)
        assert index.insight().quality == (record,)
        index.close()
    index = start()
    commit(settings.repository, {"bees.md": "# Bees\n\nHives.\n"})
    index.notify()
    looked(index)
    set_clock(index, DAY - 60)
    looked(index)
    assert len(index.insight().quality) == 1
    set_clock(index, DAY + 1)
    looked(index)
    newest, oldest = records(index, 2)
    assert (newest.commit, oldest) == (head_of(settings.repository), record)


def test_a_clock_that_was_set_back_neither_hastens_nor_prevents_the_next_time(start: Open) -> None:
    index = start()
    records(index, 1)
    for seconds, asked in ((-400 * DAY, 1), (-400 * DAY + 3600, 1), (-399 * DAY - 60, 1), (-399 * DAY + 60, 2)):
        index.close()
        index = start()
        set_clock(index, seconds)
        looked(index)
        assert len(index.insight().quality) == asked, seconds


def test_a_clock_that_was_only_wrong_for_a_moment_does_not_matter(start: Open) -> None:
    index = start()
    records(index, 1)
    for seconds in (-400 * DAY, 60, -400 * DAY + 60, 3600):
        set_clock(index, seconds)
        looked(index)
    assert len(index.insight().quality) == 1


def test_another_index_is_asked_at_once(start: Open) -> None:
    index = start()
    (before,) = records(index, 1)
    index.reindex()
    after, _ = records(index, 2)
    assert index.status().rebuild.state is RebuildState.DONE
    assert after.generation == index.status().generation != before.generation
    assert after.recipe == before.recipe
    index.close()
    index = start(chunks="fixed")
    assert records(index, 3)[0].recipe != before.recipe
    assert len(index.insight().quality) == 3


def test_other_queries_are_asked_at_once(questions: Path, start: Open) -> None:
    index = start()
    records(index, 1)
    questions.write_text(json.dumps(QUERIES[:1]))
    index.notify()
    newest, _ = records(index, 2)
    assert (newest.queries, newest.recall_at_10) == (1, 1.0)


def test_queries_that_cannot_be_read_are_a_problem_and_nothing_else(questions: Path, start: Open) -> None:
    index = start()
    before = records(index, 1)
    questions.write_text("{")
    looked(index)
    (problem,) = index.status().problems
    assert str(questions) in problem.message
    assert index.insight().quality == before
    assert index.search(["vegetables"], SearchOptions())[0].confident
    questions.write_text(json.dumps(QUERIES[:1]))
    looked(index)
    assert index.status().problems == ()
    assert len(index.insight().quality) == 2


def test_without_the_model_they_are_asked_later(start: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    index = start()
    records(index, 1)

    asked: list[object] = []

    def unreachable(_model: BundledModel, texts: list[str]) -> None:
        asked.append(texts)
        raise ModelUnreachableError("no server")

    with monkeypatch.context() as patched:
        patched.setattr(BundledModel, "embed_queries", unreachable)
        set_clock(index, DAY + 1)
        for _ in range(3):
            looked(index)
    assert len(asked) == 1, "it is left alone for a while"
    assert len(index.insight().quality) == 1
    looked(index)
    assert len(index.insight().quality) == 1
    monitor(index)._backoff._cooldown.stop()
    looked(index)
    assert len(index.insight().quality) == 2


# The file


def test_the_history_is_bounded_and_newest_first(start: Open, settings: Settings) -> None:
    index = start()
    records(index, 1)
    index.close()
    path = settings.data_dir / "quality.json"
    stored = json.loads(path.read_text())
    stored["records"][0]["finished"] = old = "2026-01-01T00:00:00+00:00"
    stored["records"] *= MAX_RECORDS
    path.write_text(json.dumps(stored))
    index = start()
    set_clock(index, DAY + 1)
    looked(index)
    history = index.insight().quality
    assert len(history) == MAX_RECORDS
    assert history[0].finished != old
    assert history[1].finished == old
    assert len(json.loads(path.read_text())["records"]) == MAX_RECORDS


def test_a_damaged_history_begins_anew(start: Open, settings: Settings) -> None:
    settings.data_dir.mkdir(parents=True)
    path = settings.data_dir / "quality.json"
    for content in ("[]", '{"records": [{"finished": "yesterday"}]}', "[" * 100_000, '{"asked": 1e999}', "\0", ""):
        path.write_text(content)
        assert _read_quality(path) == StoredQuality()
    assert len(records(start(), 1)) == 1
    assert len(json.loads(path.read_text())["records"]) == 1


def test_a_history_that_cannot_be_stored_is_a_problem(start: Open, settings: Settings) -> None:
    (settings.data_dir / "quality.json").mkdir(parents=True)
    index = start()
    assert len(records(index, 1)) == 1
    (problem,) = eventually(lambda: index.status().problems)
    assert "the figures of judged queries cannot be stored" in problem.message
    looked(index)
    assert len(index.insight().quality) == 1, "it is kept in memory"


# Others come first


def test_a_stop_does_not_wait_for_the_rest(questions: Path, start: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    questions.write_text(json.dumps(QUERIES * 200))
    embed, asked = BundledModel.embed_queries, SimpleQueue[None]()

    def slow(self: BundledModel, texts: list[str]) -> Any:
        asked.put(None)
        time.sleep(0.1)
        return embed(self, texts)

    monkeypatch.setattr(BundledModel, "embed_queries", slow)
    index = start()
    for _ in range(3):
        asked.get(timeout=60)
    index.close()
    wait_until_idle(index)
    assert asked.qsize() < 200
    assert monitor(index).newest_first() == ()


def test_searches_are_answered_while_they_are_asked(questions: Path, start: Open) -> None:
    questions.write_text(json.dumps(QUERIES * 200))
    index = start()
    eventually(lambda: "quality" in index._manager.scheduler._running)
    for number in range(50):
        assert index.search([f"vegetables {number}"], SearchOptions())[0].results
    assert "quality" in index._manager.scheduler._running, "they are still being asked"
