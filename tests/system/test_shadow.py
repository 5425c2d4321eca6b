"""A wiki compares another model on its users' searches; administrators see how, on the page and the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import LiveWiki, eventually, make_repository
from tests.support.tiny_models import write_onnx

PROGRAM = Path(sys.executable).with_name("otterwiki-semantic")
QUERIES = [{"query": "bleeding a radiator", "relevant": ["house/heating"]}, {"query": "siren", "relevant": ["house/alarm"]}]


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("queries") / "queries.json"
    path.write_text(json.dumps(QUERIES))
    return path


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory, queries: Path) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("wiki")
    told: dict[str, Any] = {"SEMANTIC_SHADOW_MODEL": f"onnx:{write_onnx(place / 'tiny')}", "SEMANTIC_SHADOW_SHARE": "1"}
    repository = make_repository(place / "repository", HANDBOOK)
    with LiveWiki(repository, place / "index", SEMANTIC_EVAL_QUERIES=str(queries), **told) as live:
        live.wait_until_indexed()
        eventually(lambda: comparison(live)["judged_queries"], why="the judged queries are asked")
        for query in ("boiler", "tomatoes", "disks"):
            live.search(query)
        eventually(lambda: comparison(live)["searches"] == 3, why="the searches are compared")
        yield live


def comparison(wiki: LiveWiki) -> dict[str, Any]:
    found: dict[str, Any] = wiki.api("GET", "/semantic-search/insight").json["comparison"]
    return found


def compare(wiki: LiveWiki, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    index = ("--repository", str(wiki.repository), "--data-dir", str(wiki.data_dir))
    command = [str(PROGRAM), "eval", *map(str, arguments), *index]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_api_has_both_models_side_by_side(wiki: LiveWiki) -> None:
    found = comparison(wiki)
    assert (found["serving"]["model"], found["shadow"]["model"]) == ("all-MiniLM-L6-v2", "onnx:tiny")
    assert (found["is_ready"], found["searches"], found["judged_queries"], found["share"]) == (True, 3, 2, 1.0)
    assert found["serving"]["recall_at_10"] == 1.0
    assert 0 <= found["overlap_at_10"] <= 1
    assert wiki.status()["problems"] == []


def test_administrators_see_both_on_the_page_of_the_index(wiki: LiveWiki) -> None:
    wiki.log_in()
    page = wiki.get("/-/admin/semantic-search").text
    assert "<code>onnx:tiny</code> (shadow)" in page
    assert "3 searches since" in page
    assert "Judged queries asked of both: 2." in page


def test_the_command_line_prints_the_same(wiki: LiveWiki) -> None:
    answer = compare(wiki, "--compare")
    assert answer.returncode == 0, answer.stderr
    title, head, serving, shadow = answer.stdout.splitlines()
    assert title.startswith("3 searches since 20")
    assert "of the first 10 pages both have" in title
    assert head.split() == ["p50", "ms", "p95", "ms", "recall@10", "precision@10", "mrr"]
    assert serving.startswith("serving: all-MiniLM-L6-v2 ")
    assert serving.split()[-3:] == ["1.000", "0.100", "1.000"]
    assert shadow.startswith("shadow: onnx:tiny ")
    assert json.loads(compare(wiki, "--compare", "--json").stdout) == comparison(wiki)


@pytest.mark.parametrize("is_first", [True, False])
def test_other_judged_queries_can_be_asked_of_both(wiki: LiveWiki, queries: Path, is_first: bool) -> None:
    answer = compare(wiki, *(("--compare", queries) if is_first else (queries, "--compare")))
    assert answer.returncode == 0, answer.stderr
    assert "\nhybrid shadow " in answer.stdout
    assert "hybrid shadow against hybrid before" in answer.stdout
    runs = json.loads(compare(wiki, queries, "--compare", "--json").stdout)["runs"]
    assert [run["name"] for run in runs] == ["hybrid", "hybrid shadow"]
    assert comparison(wiki)["searches"] == 3, "evaluations are not compared"


def test_what_cannot_be_combined_is_refused(wiki: LiveWiki, queries: Path) -> None:
    assert "cannot be combined" in compare(wiki, queries, "--rerank", "--compare").stderr
    assert "Missing argument 'QUERIES'" in compare(wiki).stderr
