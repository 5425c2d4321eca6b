"""Figures for Prometheus, and what is made of them: the dashboard, the alerts and their documentation name what there is."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from flask import Flask
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from otterwiki_semantic.core.errors import IndexUnavailableError, RebuildRefusedError, VectorStoreUnreachableError
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.records import Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.search.reranking.stage import RerankStage, open_reranker
from otterwiki_semantic.web.api.routes import api
from otterwiki_semantic.web.extension import EXTENSION, Extension
from tests.support.live_wiki import KEY, commit, eventually, git, is_settled, make_repository
from tests.support.paths import ROOT
from tests.support.rerank_server import RerankServer, saying
from tests.support.wiki_servers import Served, Server

DOCS = ROOT / "docs"
PREFIX = "otterwiki_semantic_"
ROUTE = "/api/v1/semantic-search/metrics"
_COMMAND = (sys.executable, "-m", "gunicorn", "--no-control-socket", "--preload", "--workers=2", "--bind=127.0.0.1:{port}")
WORKERS = Server("gunicorn", 2, (*_COMMAND, "tests.support.served_app:app"))
_NAME = re.compile(rf"{PREFIX}\w+")
_MATCHERS = re.compile(rf"({PREFIX}\w+)(?:\{{([^}}]*)\}})?")
_GROUPED = re.compile(r"\b(?:by|without) *\(([^)]*)\)")
_IN_LEGEND = re.compile(r"\{\{ *(?:\$labels\.)?(\w+) *\}\}")
_GENERAL = {"job", "instance", "le", "cluster"}
"""Labels that Prometheus adds, and those of every histogram."""

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Series:
    return {
        (sample.name.removeprefix(PREFIX), frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(series: Series, name: str, **labels: str) -> float:
    return series[name, frozenset(labels.items())]


def labels_of(series: Series) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, labels in series:
        found.setdefault(name, set()).update(label for label, _ in labels)
    return found


# Every worker of a served wiki


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Iterator[Served]:
    place = tmp_path_factory.mktemp("monitored")
    judged = place / "queries.json"
    judged.write_text('[{"query": "bleeding a radiator", "relevant": ["house/heating"]}]')
    repository = make_repository(place / "repository", handbook)
    with WORKERS.wiki(repository, place / "index", SEMANTIC_EVAL_QUERIES=str(judged)) as live:
        live.wait_until_indexed()
        yield Served(WORKERS, live)


@pytest.fixture(scope="module")
def scraped(served: Served) -> Series:
    """What is there after each worker was asked three questions, a page was saved, and it was found; and the judged query."""
    eventually(lambda: ("quality_queries", frozenset()) in parsed(served.live.request("GET", ROUTE).text))
    for question, mode in (("frost", "hybrid"), ("zyxwvut qwrtp", "keyword"), ("siren", "semantic")):
        served.ask_each(f"/api/v1/semantic-search?q={question.replace(' ', '+')}&mode={mode}")
    served.ask_each("/api/v1/semantic-search?q=sire&draft=true")
    served.live.save("bees", "# Bees\n\nThe hives stand behind the hedge.\n")
    served.live.wait_until_indexed()
    eventually(lambda: value(parsed(served.live.request("GET", ROUTE).text), "syncs_total", outcome="changed") == 2)
    texts = {worker: reply.text for worker, reply in served.ask_each(ROUTE).items()}
    assert len(texts) == WORKERS.workers
    one, other = (parsed(text) for text in texts.values())
    assert {name for name, _ in one} == {name for name, _ in other}
    assert value(one, "search_duration_seconds_count", mode="hybrid") == value(
        other, "search_duration_seconds_count", mode="hybrid"
    )
    return one


def test_the_work_of_all_workers_is_counted(scraped: Series) -> None:
    # A worker may have been asked more than once before each of them had been: the sums have to agree.
    by_mode = {mode: value(scraped, "search_duration_seconds_count", mode=mode) for mode in Mode}
    assert min(by_mode.values()) >= WORKERS.workers
    outcomes = {each: value(scraped, "searches_total", outcome=each) for each in ("answered", "nothing_relevant", "degraded")}
    assert sum(outcomes.values()) == sum(by_mode.values())
    assert outcomes["nothing_relevant"] == by_mode[Mode.KEYWORD], "only those words are on no page"
    assert outcomes["degraded"] == 0
    assert value(scraped, "draft_searches_total") >= WORKERS.workers


def test_what_the_index_holds_and_did_is_told(scraped: Series) -> None:
    assert value(scraped, "up") == 1
    assert value(scraped, "pages") == 6
    assert value(scraped, "chunks") == value(scraped, "vectors") == value(scraped, "embedded_texts_total", kind="passage") == 7
    assert value(scraped, "pending_pages") == value(scraped, "unfinished_pages") == 0
    assert value(scraped, "behind_commits") == value(scraped, "behind_seconds") == 0
    assert value(scraped, "syncs_total", outcome="changed") == value(scraped, "sync_duration_seconds_count") == 2
    assert sum(count for (name, _), count in scraped.items() if name == "errors_total") == 0
    misses = value(scraped, "query_cache_misses_total")
    assert misses == value(scraped, "embedding_duration_seconds_count", kind="query") >= 4
    asked = sum(count for (name, _), count in scraped.items() if name in {"searches_total", "draft_searches_total"})
    assert misses + value(scraped, "query_cache_hits_total") == asked
    assert value(scraped, "rebuild_state", state="idle") == 1
    assert value(scraped, "quality_queries") == value(scraped, "quality_recall_at_10_ratio") == 1
    assert value(scraped, "quality_precision_at_10_ratio") == 0.1
    assert 0 <= time.time() - value(scraped, "quality_last_evaluation_timestamp_seconds") < 600
    assert value(scraped, "process_resident_memory_bytes") > 1 << 26, "the model is in that process"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8080"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Authorization": f"Bearer {KEY}", "X-Forwarded-For": "192.0.2.1"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Host": "wiki.example.org"}, 401),
        ({"Host": "[::1"}, 401),
        *(
            ({name: "127.0.0.1"}, 401)
            for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto", "Via")
        ),
    ],
)
def test_only_programs_on_this_machine_need_no_key(served: Served, headers: dict[str, str], status: int) -> None:
    reply = served.live.request("GET", ROUTE, headers=headers)
    assert reply.status == status
    kind = "text/plain; version=0.0.4; charset=utf-8" if status == 200 else "application/json"
    assert reply.headers["Content-Type"] == kind


# What is made of the figures


def queries(node: Any) -> Iterator[str]:
    """Every query of a dashboard or of rules: the values named `expr` or `query`."""
    if isinstance(node, list):
        for part in node:
            yield from queries(part)
    elif isinstance(node, Mapping):
        for name, part in node.items():
            if name in {"expr", "query"} and isinstance(part, str) and PREFIX in part:
                yield part
            else:
                yield from queries(part)


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    return found


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((DOCS / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.parametrize("source", [dashboard, alerts])
def test_queries_name_series_and_labels_that_there_are(scraped: Series, source: Any) -> None:
    known = labels_of(scraped)
    asked = list(queries(source()))
    assert asked
    for query in asked:
        named = [(name.removeprefix(PREFIX), matchers) for name, matchers in _MATCHERS.findall(query)]
        assert {name for name, _ in named} <= set(known), query
        for name, matchers in named:
            for label, operator, wanted in re.findall(r"(\w+)\s*(=~|!~|!=|=)\s*\"([^\"]*)\"", matchers):
                assert label in known[name] | _GENERAL, query
                of_it = {dict(labels).get(label) for other, labels in scraped if other == name}
                assert operator != "=" or label in _GENERAL or wanted in of_it, query
        grouped = {label.strip() for labels in _GROUPED.findall(query) for label in labels.split(",")}
        assert grouped <= set().union(*(known[name] for name, _ in named)) | _GENERAL, query


def test_the_dashboard_shows_every_series_but_those_of_open_files(scraped: Series) -> None:
    families = {re.sub("_(bucket|count|sum)$", "", name) for name, _ in scraped}
    shown = {re.sub("_(bucket|count|sum)$", "", name.removeprefix(PREFIX)) for name in _NAME.findall(json.dumps(dashboard()))}
    assert families - shown == {"process_open_fds", "process_max_fds", "process_virtual_memory_bytes"}


def test_the_dashboard_can_be_imported_anywhere() -> None:
    found = dashboard()
    assert found["id"] is None
    panels = [panel for panel in found["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    first, *_ = found["templating"]["list"]
    assert (first["type"], first["name"]) == ("datasource", "datasource")
    legends = {label for panel in panels for target in panel["targets"] for label in _IN_LEGEND.findall(target["legendFormat"])}
    assert legends <= {"mode", "outcome", "kind", "state", "version", "model", "instance", "le"}


def test_alerts_say_what_is_wrong_and_where_to_read_on() -> None:
    rules = alerts()
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 6
    documentation = (DOCS / "monitoring.md").read_text(encoding="utf-8")
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description"}
        assert f"`{rule['alert']}`" in documentation


def test_the_documentation_lists_exactly_the_metrics_there_are(served: Served, scraped: Series) -> None:
    text = served.live.request("GET", ROUTE).text
    there = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    rows = [row for row in (DOCS / "monitoring.md").read_text(encoding="utf-8").splitlines() if row.startswith(f"| `{PREFIX}")]
    assert {name for row in rows for name in _NAME.findall(row.split("|")[1])} == there
    for row in rows:
        _, names, labels, *_ = row.split("|")
        known = labels_of(scraped)
        for name in _NAME.findall(names):
            short = name.removeprefix(PREFIX)
            there_of_it = known.get(short) or known.get(f"{short}_bucket") or set()
            assert set(re.findall(r"`(\w+)`", labels)) == there_of_it - {"le"}, name


# One index, without a wiki


@pytest.fixture
def index(settings: Settings) -> Iterator[IndexEngine]:
    made = IndexEngine(settings)
    made.start()
    eventually(lambda: is_settled(made.status()))
    yield made
    made.close()


def asked_through(service: IndexService, settings: Settings) -> FlaskClient:
    app = Flask(__name__)
    app.extensions[EXTENSION] = Extension.of(cast("IndexClient", service), settings)
    app.register_blueprint(api)
    return app.test_client()


def test_an_index_behind_head_tells_how_far(settings: Settings, index: IndexEngine) -> None:
    at_first = git(settings.repository, "rev-parse", "HEAD")
    commit(settings.repository, {"bees.md": "# Bees\n"})
    commit(settings.repository, {"bees.md": "# Bees\n\nMore.\n"})
    behind = parsed(index.metrics())
    assert value(behind, "behind_commits") == 2
    assert value(behind, "pending_pages") == 1
    assert 0 < value(behind, "behind_seconds") < value(parsed(index.metrics()), "behind_seconds")
    index.notify()
    eventually(lambda: value(parsed(index.metrics()), "behind_seconds") == 0)
    assert value(parsed(index.metrics()), "behind_commits") == 0
    git(settings.repository, "reset", "-q", "--hard", at_first)
    assert value(parsed(index.metrics()), "behind_commits") == 1, "it differs, though HEAD has no commit that it lacks"


def test_failures_are_counted_by_kind(settings: Settings, index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index.embedder, "_directory", settings.data_dir / "nowhere")
    monkeypatch.setattr(index.embedder, "_opened", None)
    assert index.search(["bees"], SearchOptions())[0].degraded
    git_directory = (settings.repository / ".git").rename(settings.repository / "gone")
    index.notify()
    eventually(lambda: index.status().last_error)
    git_directory.rename(settings.repository / ".git")
    serving = index._manager.serving
    assert serving is not None
    serving.mirror.handle_failure(serving.mirror.store, VectorStoreUnreachableError("nobody there"))
    index._manager.rebuilds.tracker.put_off(serving, RebuildRefusedError("no room"))
    found = parsed(index.metrics())
    assert value(found, "errors_total", kind="model") == 1
    assert value(found, "errors_total", kind="vector_store") == 1
    assert value(found, "errors_total", kind="rebuild") == value(found, "rebuild_state", state="failed") == 1
    assert value(found, "errors_total", kind="sync") == value(found, "syncs_total", outcome="failed") >= 1
    assert value(found, "searches_total", outcome="degraded") == 1
    assert value(found, "errors_total", kind="catalog") == 0


def test_a_reranker_that_fails_is_counted_and_one_that_is_missing_is_not(settings: Settings, index: IndexEngine) -> None:
    wanted = SearchOptions(rerank=True)
    assert index.search(["bees", "frost"], wanted)[0].degraded
    without = parsed(index.metrics())
    assert value(without, "errors_total", kind="reranker") == value(without, "searches_total", outcome="degraded") == 0
    assert sum(count for (name, _), count in without.items() if name == "searches_total") == 2
    with RerankServer() as server:
        server.reply = saying(500, "oops")
        reranker = open_reranker(replace(settings, reranker="cohere:m", reranker_url=server.url, reranker_key=KEY))
        assert reranker is not None
        vars(index._reranking).update(vars(RerankStage(reranker, index._searcher.queries._telemetry)))
        index._reranking.start()
        eventually(lambda: not index._reranking.is_loading)
        for _ in range(2):
            assert "not reranked" in str(index.search(["the garden in winter"], wanted)[0].degraded)
        assert len(server.requests) == 1, "it is left alone after a failure"
    failed = parsed(index.metrics())
    assert value(failed, "errors_total", kind="reranker") == 1
    assert value(failed, "searches_total", outcome="degraded") == 2


def test_a_search_that_fails_is_counted(index: IndexEngine) -> None:
    serving = index._manager.serving
    assert serving is not None
    serving.catalog.close()
    with pytest.raises(IndexUnavailableError):
        index.search(["bees"], SearchOptions())
    found = parsed(index.metrics())
    assert value(found, "errors_total", kind="search") == 1
    assert value(found, "errors_total", kind="catalog") >= 1


def test_no_figures_without_their_package(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("prometheus_client")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "otterwiki_semantic.daemon.reports.prometheus")
    index = IndexEngine(settings)
    index.start()
    try:
        answer = asked_through(index, settings).get(ROUTE)
        assert (answer.status_code, answer.get_json()["error"]["code"]) == (503, "package_missing")
        assert pip_install("metrics") in answer.get_json()["error"]["message"]
        assert eventually(lambda: index.search(["frost"], SearchOptions())[0].results)
    finally:
        index.close()


def test_an_index_that_does_not_answer_is_a_figure(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    nowhere = replace(settings, data_dir=tmp_path / "file" / "index")
    answer = asked_through(IndexClient(nowhere), nowhere).get(ROUTE)
    assert answer.status_code == 200
    assert parsed(answer.text) == {("up", frozenset()): 0}


def test_figures_can_be_switched_off(settings: Settings) -> None:
    off = replace(settings, pages=())
    answer = asked_through(IndexClient(off), off).get(ROUTE)
    assert answer.status_code == 404
    assert "SEMANTIC_PAGES" in answer.get_json()["error"]["message"]
