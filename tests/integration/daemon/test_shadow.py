"""Another model is compared with the serving one on live searches: what is measured, and that nobody notices."""

from __future__ import annotations

import json
import logging
import random
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.cli.evaluate.runs import live_comparison, measure
from otterwiki_semantic.core.errors import ConfigError, IndexUnavailableError
from otterwiki_semantic.core.records import Mode, ModelComparison, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import shadow
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.search.evaluation import read_judged_queries
from tests.support.engines import opened
from tests.support.live_wiki import commit, eventually, make_repository
from tests.support.model_servers import ModelServer, ollama_told, serving
from tests.support.tiny_models import write_onnx

Start = Callable[..., IndexEngine]
QUESTIONS = ["bleeding a radiator", "when to plant tomatoes", "a disk that failed", "siren"]


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = {"_POLL_SECONDS": 0.05, "_ANSWERED_SECONDS": 0.0, "_FOLLOW_SECONDS": 0.2, "_RETRY_SECONDS": 0.2}
    for name, seconds in pauses.items():
        monkeypatch.setattr(shadow, name, seconds)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer(told=ollama_told("tiny"))) as started:
        yield started


@pytest.fixture
def start(settings: Settings, server: ModelServer) -> Iterator[Start]:
    made: list[IndexEngine] = []

    def engine(**changed: Any) -> IndexEngine:
        for index in made:
            index.close()
        compared = replace(settings, shadow_model="ollama:tiny", shadow_url=server.url, shadow_share=1.0)
        made.append(opened(replace(compared, **changed)))
        return made[-1]

    yield engine
    for index in made:
        index.close()


def report(index: IndexEngine) -> ModelComparison:
    found = index.insight().comparison
    assert found is not None
    return found


def ready(index: IndexEngine) -> IndexEngine:
    eventually(lambda: report(index).is_ready)
    return index


def compared(index: IndexEngine, count: int) -> ModelComparison:
    eventually(lambda: report(index).searches >= count)
    return report(index)


def ask(index: IndexEngine, questions: list[str] = QUESTIONS, **options: Any) -> None:
    """Ask one question after another, each when the one before was compared."""
    for question in questions:
        before = report(index).searches
        index.search([question], SearchOptions(**options))
        compared(index, before + 1)


def pages(index: IndexEngine, question: str, *, asks_shadow: bool) -> set[str]:
    options = SearchOptions(10, 1, rerank=False, is_logged=False, asks_shadow=asks_shadow)
    return {hit.path for hit in index.search([question], options)[0].results}


def problems(index: IndexEngine) -> list[str]:
    return [problem.message for problem in index.status().problems]


# What is measured


def test_users_questions_are_asked_of_both_models(settings: Settings, start: Start) -> None:
    texts = (f"# Page {n}\n\nWord{n} and thing{n % 7} {'lorem ' * n}.\n" for n in range(40))
    commit(settings.repository, {f"pages/{n}.md": text for n, text in enumerate(texts)})
    index = ready(start())
    ask(index, n=1)
    found = report(index)
    assert (found.serving.model, found.shadow.model) == ("all-MiniLM-L6-v2", "ollama:tiny")
    assert found.searches == len(QUESTIONS)
    pairs = [(pages(index, each, asks_shadow=False), pages(index, each, asks_shadow=True)) for each in QUESTIONS]
    expected = [len(ours & theirs) / max(len(ours), len(theirs)) for ours, theirs in pairs]
    assert found.overlap_at_10 == pytest.approx(sum(expected) / len(expected), abs=1e-3)
    assert 0 < (found.overlap_at_10 or 0) < 1
    for model in (found.serving, found.shadow):
        assert 0 < (model.p50_ms or 0) <= (model.p95_ms or 0) < 5_000
    assert "4 searches since" in live_comparison(found)


def test_equal_models_give_equal_answers(start: Start) -> None:
    index = ready(start(shadow_model="minilm", shadow_url=None))
    ask(index)
    assert report(index).overlap_at_10 == 1.0


def test_a_share_of_the_searches_is_compared(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    index = ready(start(shadow_share=0.3))
    draws = iter([0.9, 0.1, 0.5, 0.29])
    monkeypatch.setattr(random, "random", lambda: next(draws))
    index.search(QUESTIONS, SearchOptions())
    compared(index, 2)
    assert next(draws, None) is None
    time.sleep(0.3)
    assert report(index).searches == 2


def test_drafts_evaluations_and_searches_by_words_are_not_compared(start: Start) -> None:
    index = ready(start())
    for options in (SearchOptions(draft=True), SearchOptions(is_logged=False), SearchOptions(mode=Mode.KEYWORD)):
        index.search(["radiator"], options)
    ask(index, ["tomatoes"])
    assert report(index).searches == 1


def test_judged_queries_are_asked_of_both_models(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "queries.json"
    queries = [
        {"query": "bleeding a radiator", "relevant": ["house/heating"]},
        {"query": "vegetables", "relevant": ["garden", "x"]},
    ]
    path.write_text(json.dumps(queries))
    index = ready(start(eval_queries=path))
    eventually(lambda: report(index).judged_queries == 2)
    found = report(index)
    for model, asks_shadow in ((found.serving, False), (found.shadow, True)):
        options = SearchOptions(20, 1, rerank=False, asks_shadow=asks_shadow)
        run = measure(index, "test", read_judged_queries(path), options)["metrics"]
        figures = (model.recall_at_10, model.precision_at_10, model.mrr)
        assert figures == pytest.approx((run["recall@10"], run["precision@10"], run["mrr"]), abs=1e-4)
    assert found.searches == 0
    path.write_text(json.dumps(queries[:1]))
    eventually(lambda: report(index).judged_queries == 1)


def test_what_is_pinned_to_a_question_is_found_by_both(settings: Settings, start: Start) -> None:
    commit(settings.repository, {"chairs.md": "---\nanswers: colour of the moon\n---\n# Chairs\n\nIn the office.\n"})
    index = ready(start())
    for asks_shadow in (False, True):
        options = SearchOptions(asks_shadow=asks_shadow)
        assert index.search(["colour of the moon"], options)[0].results[0].path == "chairs"


# What it costs others


def test_it_counts_as_no_search_and_keeps_no_question(settings: Settings, start: Start) -> None:
    index = ready(start(search_log=True))
    ask(index)
    assert 'otterwiki_semantic_search_duration_seconds_count{mode="hybrid"} 4.0' in index.metrics()
    assert sum(hour.count for hour in index.insight().searches) == 4
    index.close()
    files = [path for path in (settings.data_dir / "shadow").rglob("*") if path.is_file()]
    assert any(path.name == "comparison.json" for path in files)
    for path in files:
        assert b"when to plant tomatoes" not in path.read_bytes(), path


def test_users_do_not_wait_for_a_slow_model_and_questions_beyond_the_queue_are_dropped(
    server: ModelServer, start: Start
) -> None:
    index = ready(start())
    server.seconds = 0.3
    begin = time.perf_counter()
    for number in range(30):
        assert index.search([f"radiator {number}"], SearchOptions())[0].degraded is None
    assert time.perf_counter() - begin < 5
    assert report(index).searches < 10
    begin = time.perf_counter()
    index.close()
    assert time.perf_counter() - begin < 3


def test_the_daemon_stops_promptly_while_the_index_is_built(settings: Settings, server: ModelServer, start: Start) -> None:
    commit(settings.repository, {f"pages/{n}.md": f"# Page {n}\n\n{'word ' * 300}{n}\n" for n in range(60)})
    server.seconds = 0.05
    index = start()
    eventually(lambda: len(server.texts) > 1)
    assert not report(index).is_ready
    begin = time.perf_counter()
    index.close()
    assert time.perf_counter() - begin < 4
    server.seconds = 0.0
    ready(start())


def test_nothing_is_put_into_chroma(settings: Settings, start: Start) -> None:
    ready(start()).close()
    assert not list((settings.data_dir / "shadow").rglob("chroma*"))


def test_the_model_gets_no_text_of_excluded_pages(settings: Settings, server: ModelServer, start: Start) -> None:
    hidden = {
        "drafts/a.md": "# Draft\n\nThe quokka.\n",
        "b.md": "---\nsearch: false\n---\n# B\n\nThe quokka.\n",
        "c.md": "---\nsearch: words\n---\n# C\n\nThe quokka.\n",
    }
    commit(settings.repository, dict(hidden))
    index = ready(start(exclude=("drafts/**",)))
    assert "quokka" not in json.dumps(server.texts)
    assert "radiator" in json.dumps(server.texts)
    assert pages(index, "quokka", asks_shadow=True) >= {"c"}
    assert not pages(index, "quokka", asks_shadow=True) & {"drafts/a", "b"}


# Failures


def test_a_server_that_is_down_is_one_problem_and_degrades_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    with serving(ModelServer(told=ollama_told("tiny"))) as other:
        away = other.url
    with caplog.at_level(logging.WARNING):
        index = start(shadow_url=away)
        eventually(lambda: problems(index))
        time.sleep(1)
    (problem,) = problems(index)
    assert problem.startswith("the model of SEMANTIC_SHADOW_MODEL is not compared: ")
    assert "SEMANTIC_MODEL" not in problem
    assert len([record for record in caplog.records if "SEMANTIC_SHADOW_MODEL" in record.getMessage()]) == 1
    (answer,) = index.search(["radiator"], SearchOptions())
    assert answer.degraded is None
    assert answer.results
    assert not report(index).is_ready
    with pytest.raises(IndexUnavailableError, match="SEMANTIC_SHADOW_MODEL is not compared"):
        index.search(["radiator"], SearchOptions(asks_shadow=True))
    with serving(ModelServer(url=away, told=ollama_told("tiny"))):
        ready(index)
        eventually(lambda: not problems(index))


def test_a_model_that_is_not_there_is_a_problem_with_the_name_of_its_setting(start: Start, tmp_path: Path) -> None:
    index = start(shadow_model=f"onnx:{tmp_path / 'nothing'}", shadow_url=None)
    eventually(lambda: problems(index))
    assert "SEMANTIC_SHADOW_MODEL" in problems(index)[0]
    assert index.search(["radiator"], SearchOptions())[0].degraded is None


def test_wrong_options_are_a_problem_and_not_the_end_of_search(start: Start) -> None:
    index = start(shadow_options='{"input": "x"}')
    eventually(lambda: problems(index))
    assert "SEMANTIC_SHADOW_OPTIONS" in problems(index)[0]
    assert index.search(["radiator"], SearchOptions())[0].results


def test_without_room_on_the_disk_nothing_is_built(start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/tmp")
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _place: usage._replace(free=1000))
        index = start()
        eventually(lambda: problems(index))
        assert any("MB are free" in problem for problem in problems(index))
        assert not list((settings.data_dir / "shadow" / "generations").iterdir())
    ready(index)
    eventually(lambda: not problems(index))


def test_a_damaged_index_is_built_again(settings: Settings, start: Start) -> None:
    ready(start()).close()
    (catalog,) = (settings.data_dir / "shadow").rglob("catalog.sqlite3")
    catalog.write_bytes(b"no catalog" * 1000)
    index = ready(start())
    ask(index, ["radiator"])


# Over time


def test_it_follows_git(settings: Settings, start: Start) -> None:
    index = ready(start())
    commit(settings.repository, {"bees.md": "# Bees\n\nHives and honey.\n", "garden.md": None})
    index.notify()
    eventually(lambda: "bees" in pages(index, "honey", asks_shadow=True))
    assert "garden" not in pages(index, "tomatoes", asks_shadow=True)


def test_figures_survive_a_restart_and_begin_anew_with_another_model(start: Start, tmp_path: Path) -> None:
    index = ready(start())
    ask(index)
    before = report(index)
    index = ready(start())
    after = report(index)
    assert (after.serving, after.shadow, after.searches) == (before.serving, before.shadow, before.searches)
    assert after.since == before.since
    ask(index, ["radiator"])
    assert report(index).searches == 5
    index = ready(start(shadow_model=f"onnx:{write_onnx(tmp_path / 'tiny')}", shadow_url=None))
    assert report(index).searches == 0
    ask(index, ["radiator"])
    (generation,) = (tmp_path / "index" / "shadow" / "generations").iterdir()
    assert generation.is_dir()


def test_figures_that_cannot_be_read_begin_anew(settings: Settings, start: Start) -> None:
    index = ready(start())
    ask(index)
    index.close()
    (settings.data_dir / "shadow" / "comparison.json").write_text('{"searches": [["x"]]}')
    assert report(ready(start())).searches == 0


def test_only_the_last_thousand_searches_are_kept(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow, "_MAX_SEARCHES", 2)
    index = ready(start())
    for question in QUESTIONS[:3]:
        index.search([question], SearchOptions())
    compared(index, 2)
    eventually(lambda: index._shadow is not None and index._shadow._waiting.empty())
    assert report(index).searches == 2


def test_without_the_setting_its_files_are_removed(settings: Settings, start: Start) -> None:
    index = ready(start())
    assert (settings.data_dir / "shadow").exists()
    index = start(shadow_model=None)
    assert not (settings.data_dir / "shadow").exists()
    assert index.insight().comparison is None
    with pytest.raises(ConfigError, match="SEMANTIC_SHADOW_MODEL is not set"):
        index.search(["radiator"], SearchOptions(asks_shadow=True))


def test_the_index_of_another_repository_is_removed(settings: Settings, start: Start, tmp_path: Path) -> None:
    commit(settings.repository, {"secret.md": "# Secret\n\nThe quokka.\n"})
    ready(start()).close()
    other = make_repository(tmp_path / "other", {"home.md": "# Home\n\nNothing.\n"})
    index = ready(start(repository=other))
    assert pages(index, "quokka", asks_shadow=True) <= {"home"}
