"""The command line end to end: what commands print, and their exit codes; first as programs, then in this process."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from otterwiki_semantic.cli import main
from otterwiki_semantic.cli.evaluate.runs import read_run
from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.records import RebuildState
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexClient
from tests.support.fork_server import python
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import LiveWiki, commit, eventually, git, is_settled, make_repository
from tests.support.processes import is_running, noting_python
from tests.support.tiny_models import write_onnx

PROGRAM = Path(sys.executable).with_name("otterwiki-semantic")
Answer = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Path:
    place = make_repository(tmp_path_factory.mktemp("cli") / "repository", handbook)
    assert run("index", "--repository", place).returncode == 0
    return place


_OUTSIDE: dict[str, str | None] = {"OTTERWIKI_SETTINGS": "", "REPOSITORY": None, "SEMANTIC_DATA_DIR": None}


def run_program(*arguments: str | Path, **environment: str) -> Answer:
    """Run a command as a shell does."""
    command = [python(), str(PROGRAM), *map(str, arguments)]
    kept = {name: value for name, value in os.environ.items() if name not in _OUTSIDE}
    environment = {**kept, "OTTERWIKI_SETTINGS": "", "SEMANTIC_PAGES": "none", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def run(*arguments: str | Path, **environment: str) -> Answer:
    """Run a command in this process, which takes a third of the time."""
    environment = {"SEMANTIC_PAGES": "none", **environment}
    result = CliRunner().invoke(main, [*map(str, arguments)], env={**_OUTSIDE, **environment}, prog_name=PROGRAM.name)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Answer(arguments, result.exit_code, result.stdout, result.stderr)


def status_of(repository: Path) -> dict[str, Any]:
    return dict(json.loads(run("status", "--repository", repository, "--json").stdout))


def test_any_repository_is_indexed_and_searched(repository: Path) -> None:
    answer = run_program("index", "--repository", repository)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("ready: 5 pages, 6 chunks, at ")
    answer = run_program("search", "--repository", repository, "-n", "1", "bleeding", "radiators")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("house/heating:17 ")
    assert "Hold a cup" in answer.stdout
    assert (repository.parent / "repository-semantic").is_dir()
    found = json.loads(run_program("search", "--repository", repository, "--json", "vegetables").stdout)
    assert found["results"][0]["path"] == "garden"
    assert found["results"][0]["similarity"] > 0.3
    status = status_of(repository)
    assert status["indexed_commit"] == status["head_commit"]


def test_a_change_is_waited_for(repository: Path) -> None:
    head = commit(repository, {"bees.md": "# Bees\n\nThe hives stand behind the hedge.\n"})
    answer = run("search", "--repository", repository, "--wait", "-n", "1", "hives", "behind", "a", "hedge")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("bees:")
    assert "The index is behind" not in answer.stderr
    assert run("index", "--repository", repository).stdout.startswith(f"ready: 6 pages, 7 chunks, at {head[:12]} (HEAD)")
    commit(repository, {"bees.md": None})
    assert run("index", "--repository", repository).returncode == 0


def test_what_was_indexed_is_ready_for_every_command_that_follows(repository: Path) -> None:
    index = json.loads(run("index", "--repository", repository, "--json").stdout)
    assert (index["status"], index["chroma"]["state"]) == ("ready", "ready")
    os.kill(index["owner_pid"], signal.SIGTERM)
    status = status_of(repository)
    assert status["owner_pid"] != index["owner_pid"], "it has just been started, and not looked at ChromaDB yet"
    assert (status["status"], status["indexed_commit"]) == ("ready", index["head_commit"])


@pytest.mark.parametrize("full", [(), ("--full",)])
def test_a_rebuild_is_waited_for(repository: Path, full: tuple[str, ...]) -> None:
    before = status_of(repository)["generation"]
    answer = run("reindex", *full, "--repository", repository, "--json")
    assert answer.returncode == 0, answer.stderr
    status = json.loads(answer.stdout)
    assert status["generation"] != before
    assert answer.stderr.startswith("embedding ")
    chroma = status["chroma"]
    assert (chroma["state"], chroma["pending"], chroma["count"]) == ("ready", 0, status["vectors"])


def test_a_rollback_serves_the_index_of_the_settings_before(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = status_of(repository)["generation"]
    refused = run("rollback", "--repository", repository)
    assert (refused.returncode, "there is no earlier index" in refused.stderr) == (1, True)
    log = repository.with_name("repository-semantic") / "owner.log"
    eventually(lambda: log.read_text().endswith("ended\n"))  # it has the settings that it was started with
    monkeypatch.setenv("SEMANTIC_CHUNKS", "fixed")
    run("index", "--repository", repository)
    answer = run("rollback", "--repository", repository, "--json")
    assert answer.returncode == 0, answer.stderr
    status = json.loads(answer.stdout)
    assert (status["generation"], status["embedded_texts"], status["rollback"]["model"]) == (before, 0, "minilm")
    shown = run("status", "--repository", repository)
    assert "does not use the configured SEMANTIC_CHUNKS after a rollback: an administrator asked for it" in shown.stdout


def is_built(index: IndexClient) -> bool:
    status = index.status()
    return is_settled(status) and status.rebuild.state is not RebuildState.RUNNING


def test_a_rollback_without_the_wikis_settings_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, data_dir = make_repository(tmp_path / "repository", HANDBOOK), tmp_path / "repository-semantic"
    settings = Settings(repository, data_dir, chunks="fixed", pages=())
    with closing(IndexClient(replace(settings, chunks="minilm"))) as index:
        eventually(partial(is_built, index))
    with closing(IndexClient(settings)) as index:
        eventually(partial(is_built, index))
        monkeypatch.setenv("SEMANTIC_CHUNKS", "minilm:target=60")
        answer = run("rollback", "--repository", repository)
    assert answer.returncode == 1, answer.stdout
    assert "this command has other settings than the wiki, so the index was rebuilt with them" in answer.stderr


def test_the_repository_comes_from_the_wikis_settings(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.cfg").write_text(f"REPOSITORY = {str(repository)!r}\nSEMANTIC_SYNC_INTERVAL = 30\n")
    answer = run("status", OTTERWIKI_SETTINGS=str(tmp_path / "settings.cfg"))
    assert answer.returncode == 0, answer.stderr
    assert run("status", REPOSITORY=str(repository)).returncode == 0
    answer = run("status", OTTERWIKI_SETTINGS=str(tmp_path / "nowhere.cfg"))
    assert (answer.returncode, "OTTERWIKI_SETTINGS names a file that cannot be read" in answer.stderr) == (1, True)


def test_a_running_wikis_index_is_shared(wiki: LiveWiki) -> None:
    answer = run("status", "--json", "--repository", wiki.repository, "--data-dir", wiki.data_dir)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["owner_pid"] == wiki.status()["owner_pid"]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (("status",), 1, "no repository: set REPOSITORY"),
        (("status", "--repository", "/nonexistent"), 1, "git cannot read the repository /nonexistent"),
        (("search", "--repository", "."), 2, "Missing argument"),
        (("search", "--repository", ".", "-n", "0", "x"), 2, "1<=x<=50"),
        (("search", "--repository", ".", " "), 2, "QUERY is empty"),
        (("find",), 2, "No such command"),
    ],
)
def test_a_mistake_is_explained_in_a_line(arguments: tuple[str, ...], code: int, part: str) -> None:
    answer = run(*arguments)
    assert answer.returncode == code
    assert part in answer.stderr


def test_a_directory_that_is_no_repository_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = run("index", "--repository", tmp_path / "empty")
    assert answer.returncode == 1
    assert "not a git repository" in answer.stderr
    assert "to make it one, there: git init && git add -A && git commit -m pages" in answer.stderr
    assert not (tmp_path / "empty-semantic").exists()


def test_a_folder_of_a_repository_stands_for_the_whole(repository: Path) -> None:
    answer = run("index", "--repository", repository / "house")
    assert answer.returncode == 0, answer.stderr
    assert "6 chunks" in answer.stdout
    assert not (repository / "house-semantic").exists()
    answer = run("status", "--repository", repository / ".git")
    assert answer.returncode == 1
    assert "name the directory that holds .git" in answer.stderr


def test_a_search_takes_the_options_of_the_api(repository: Path) -> None:
    answer = run("search", "--repository", repository, "--mode", "keyword", "--tag", "winter", "--explain", "radiator")
    assert answer.stdout.startswith("house/heating:")
    assert "words " in answer.stdout
    assert run("search", "--repository", repository, "--path", "nowhere/", "radiator").stderr == "Nothing was found.\n"
    answer = run("search", "--repository", repository, "pension contributions of employees")
    assert "Nothing relevant was found" in answer.stderr
    assert answer.stdout
    answer = run("search", "--repository", repository, "--semantic-ratio", "3", "x")
    assert (answer.returncode, answer.stderr.splitlines()[-1]) == (
        2,
        "Error: semantic_ratio is 3.0; allowed are the numbers 0 to 1",
    )
    assert "lettuce" not in run("search", "--repository", repository, "--", "-lettuce", "vegetables").stdout


def test_a_result_has_its_address_and_the_part_that_answers(repository: Path) -> None:
    arguments = ("search", "--repository", repository, "-n", "1", "--crop", "8", "hissing radiator key")
    answer = run(*arguments, "--url", "http://wiki.lan/")
    place, address, *excerpt = [line for line in answer.stdout.splitlines() if line]
    assert place.startswith("house/heating:")
    assert address.strip().startswith("http://wiki.lan/house/heating#")
    assert len(" ".join(excerpt).split()) <= 16, "at least 60 characters of short words, and where it is cut"
    assert "\x1b" not in answer.stdout, "no colours in a pipe"
    assert run(*arguments, OTTERWIKI_URL="http://wiki.lan").stdout == answer.stdout


def in_terminal(*arguments: str | Path, **environment: str) -> str:
    """Return what a command prints to a terminal."""
    place, terminal = pty.openpty()
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"REPOSITORY", "NO_COLOR"} and not name.startswith("SEMANTIC_")  # of a wiki that another test serves
    }
    command = [python(), str(PROGRAM), *map(str, arguments)]
    subprocess.run(command, env={**inherited, "SEMANTIC_PAGES": "none", **environment}, stdout=terminal, check=True)
    os.close(terminal)
    printed = b""
    with suppress(OSError):  # the other end is closed
        while piece := os.read(place, 65_536):
            printed += piece
    os.close(place)
    return printed.decode()


def test_a_terminal_shows_matches_in_bold_and_in_its_width(repository: Path) -> None:
    arguments = ("search", "--repository", repository, "-n", "1", "gurgles")
    printed = in_terminal(*arguments, COLUMNS="50")
    assert re.search(r"\x1b\[1m\x1b\[4mgurgles\x1b\[0m", printed)
    plain = re.sub(r"\x1b\[\d+m", "", printed)
    assert max(map(len, plain.splitlines()[1:])) <= 50
    assert "\x1b" not in in_terminal(*arguments, NO_COLOR="1")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_learns_to_complete(shell: str) -> None:
    assert "_OTTERWIKI_SEMANTIC_COMPLETE" in run_program("completion", shell).stdout
    place = "se" if shell == "fish" else "1"
    asked = {"_OTTERWIKI_SEMANTIC_COMPLETE": f"{shell}_complete", "COMP_WORDS": "otterwiki-semantic se", "COMP_CWORD": place}
    assert "search" in run_program(**asked).stdout


@pytest.fixture
def answering(tmp_path: Path, handbook: dict[str, str | bytes], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository whose index answers questions."""
    monkeypatch.setenv("SEMANTIC_ANSWERS", "extractive")
    place = make_repository(tmp_path / "answering", handbook)
    run("index", "--repository", place)
    return place


def test_a_question_is_answered_with_its_sources(answering: Path, repository: Path) -> None:
    question = ("ask", "--repository", answering, "How", "is", "a", "radiator", "bled?")
    answer = run(*question, "--url", "http://wiki.lan")
    assert answer.returncode == 0, answer.stderr
    assert "Hold a cup under the screw" in answer.stdout
    assert re.search(r"\[1\] house/heating:\d+", answer.stdout)
    assert "http://wiki.lan/house/heating#" in answer.stdout
    assert json.loads(run(*question, "--json").stdout)["answer"][0]["supported"]
    refused = run("ask", "--repository", answering, "exchange rate of the yen")
    assert (refused.returncode, "Nothing here answers" in refused.stderr) == (1, True)
    disabled = run("ask", "--repository", repository, "Why?", SEMANTIC_ANSWERS="")
    assert (disabled.returncode, "SEMANTIC_ANSWERS" in disabled.stderr) == (1, True)


def test_answers_are_measured(answering: Path, judged: Path, questions: Path, tmp_path: Path) -> None:
    def measured(queries: Path, *arguments: str | Path) -> str:
        answer = run("eval", "answers", queries, "--repository", answering, *arguments)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    others = tmp_path / "others.txt"
    others.write_text("exchange rate of the yen\npension contributions\n")
    assert "of the judged questions have an answer" in measured(judged, "--unanswerable", others)
    found = json.loads(measured(judged, "--unanswerable", others, "--json"))
    assert (found["metrics"]["refused"], found["metrics"]["supported"]) == (1, 1)
    assert 0 < found["metrics"]["sourced"] <= 1
    assert len(found["queries"]) == 5
    found = json.loads(measured(questions, "--json"))
    assert found["metrics"]["refused"] == 1, "of the query file's own unanswerable question"
    assert (len(found["queries"]), found["queries"][-1]["answered"]) == (5, False)


@pytest.fixture(scope="module")
def judged(repository: Path) -> Path:
    path = repository.parent / "queries.json"
    questions = [
        {"query": "gurgling radiator", "relevant": ["house/heating"]},
        {"query": "broken disk", "relevant": ["machines/nas"], "exclude": ["home"]},
        {"query": "siren", "relevant": ["garden"]},
    ]
    path.write_text(json.dumps(questions), encoding="utf-8")
    return path


def evaluate(repository: Path, *arguments: str | Path) -> Answer:
    return run("eval", *arguments, "--repository", repository)


def test_a_ranking_is_measured(repository: Path, judged: Path) -> None:
    written, picture = repository.parent / "run.json", repository.parent / "run.svg"
    answer = evaluate(repository, judged, "--mode", "hybrid", "--mode", "keyword", "--output", written, "--plot", picture)
    assert answer.returncode == 0, answer.stderr
    title, head, hybrid, keyword = answer.stdout.splitlines()
    assert title == "3 questions, pages ranked"
    assert head.split()[:3] == ["ndcg", "mrr", "recall@1"]
    assert hybrid.startswith("hybrid")
    assert keyword.startswith("keyword")
    runs = json.loads(written.read_text())["runs"]
    assert [run["name"] for run in runs] == ["hybrid", "keyword"]
    assert runs[0]["metrics"]["recall@1"] == pytest.approx(2 / 3)
    assert [row["recall@1"] for row in runs[0]["queries"]] == [1.0, 1.0, 0.0]
    assert set(runs[0]["latency_ms"]) == {"p50", "p95", "p99"}
    assert picture.read_text().startswith("<?xml")
    assert "hybrid" in picture.read_text() or "path" in picture.read_text()


def test_fusions_are_runs_of_their_own(repository: Path, judged: Path) -> None:
    both = ("--fusion", "sum", "--fusion", "rrf")
    answer = evaluate(repository, judged, "--mode", "hybrid", "--mode", "keyword", *both, "--json")
    assert answer.returncode == 0, answer.stderr
    assert [run["name"] for run in json.loads(answer.stdout)["runs"]] == ["hybrid sum", "hybrid rrf", "keyword"]


def test_chunk_profiles_are_compared(repository: Path, judged: Path, tmp_path: Path) -> None:
    written = repository.parent / "profiles.json"
    chosen = ("--chunks", "minilm", "--chunks", "fixed", "--mode", "semantic", "--mode", "keyword")
    answer = run("eval", judged, *chosen, "--output", written, "--repository", repository, TMPDIR=str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    _, head, *lines = answer.stdout.splitlines()
    assert head.split()[-4:] == ["chunks", "words/chunk", "build", "s"]
    names = ["minilm semantic", "minilm keyword", "fixed semantic", "fixed keyword"]
    assert [line[:15].strip() for line in lines] == names
    runs = {entry["name"]: entry for entry in json.loads(written.read_text())["runs"]}
    assert list(runs) == names
    minilm, fixed = (runs[f"{name} semantic"]["index"] for name in ("minilm", "fixed"))
    assert minilm["chunks"] > fixed["chunks"] >= 5, "a page of less than 1,000 characters is one chunk"
    assert minilm["words_per_chunk"] < fixed["words_per_chunk"]
    assert fixed["build_seconds"] > 0
    assert runs["fixed semantic"]["queries"][0]["recall@1"] == 1.0
    assert list(tmp_path.glob("otterwiki-semantic-*")) == []


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"onnx:{write_onnx(tmp_path_factory.mktemp('models') / 'tiny')}"


def test_models_are_compared_in_indexes_of_their_own(repository: Path, judged: Path, tiny: str, tmp_path: Path) -> None:
    both, written = ("--model", "minilm", "--model", tiny), tmp_path / "models.json"
    answer = run("eval", judged, *both, "--output", written, "--repository", repository, TMPDIR=str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    assert f"{tiny} against minilm before" in answer.stdout
    assert re.search(r"first ten pages that both have: \d+\.\d%  \[\d+\.\d%, \d+\.\d%\]", answer.stdout)
    assert re.search(r"milliseconds of a query: [+-]\d+\.\d  \[", answer.stdout)
    assert re.search(r"recall@10 +[+-]\d\.\d{3}  \[", answer.stdout)
    first, second = json.loads(written.read_text())["runs"]
    assert (first["name"], second["name"]) == ("minilm", tiny)
    assert [row["query"] for row in second["asked"]] == [row["query"] for row in first["queries"]]
    assert first["index"]["chunks"] > 0
    assert list(tmp_path.glob("otterwiki-semantic-*")) == []
    again = run("eval", judged, "--model", "minilm", "--compare", written, "--repository", repository)
    assert "first ten pages that both have: 100.0%" in again.stdout, again.stderr


def test_models_are_compared_on_the_queries_of_the_search_log(repository: Path, tiny: str, tmp_path: Path) -> None:
    logged = {"SEMANTIC_SEARCH_LOG": "true"}
    where = ("--repository", repository, "--data-dir", tmp_path / "index")
    assert run("index", *where, **logged).returncode == 0
    assert "has no query" in run("eval", "--model", tiny, *where, **logged).stderr
    assert run("search", "exchange rate of the yen", *where, **logged).returncode == 0
    answer = run("eval", "--model", "minilm", "--model", tiny, *where, **logged)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("1 queries of the search log\n")
    assert f"{tiny} against minilm before" in answer.stdout
    assert "queries with a relevant result: " in answer.stdout
    assert "recall@10" not in answer.stdout
    assert "searches are not logged" in run("eval", "--model", tiny, "--repository", repository).stderr


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_comparison_leaves_nothing_behind(repository: Path, tmp_path: Path, ended_by: signal.Signals) -> None:
    many = tmp_path / "many.json"
    many.write_text(json.dumps([{"query": f"question {number}", "relevant": ["home"]} for number in range(5_000)]))
    command = [python(), str(PROGRAM), "eval", str(many), "--chunks", "minilm", "--repository", str(repository)]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE) as process:
        eventually(lambda: any(tmp_path.glob("otterwiki-semantic-*/generations/*/catalog.sqlite3")))
        process.send_signal(ended_by)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said.strip() == b"Aborted!"
    assert list(tmp_path.glob("otterwiki-semantic-*")) == []


@pytest.fixture(scope="module")
def questions(repository: Path) -> Path:
    """Return a query file with a plain query, three questions and one that no page answers."""
    path = repository.parent / "questions.json"
    bleeding = "Hold a cup under the screw at the top, turn the key to the left until water comes instead of hissing"
    entries = [
        {"query": "gurgling radiator", "relevant": ["house/heating"]},
        {
            "query": "how do I bleed a radiator that gurgles",
            "kind": "question",
            "page": "house/heating",
            "section": "Bleeding a radiator",
            "answer": bleeding,
        },
        {"query": "disk failed what now", "kind": "situation", "relevant": ["machines/nas"]},
        {"query": "tomatoes after frost", "kind": "keywords", "page": "garden", "answer": "Plant them after the middle of May"},
        {"query": "exchange rate of the yen", "kind": "unanswerable"},
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def test_questions_are_compared_with_their_answers(repository: Path, questions: Path) -> None:
    written = repository.parent / "questions-run.json"
    both = ("--mode", "hybrid", "--mode", "keyword")
    answer = evaluate(repository, questions, *both, "--output", written)
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0] == "4 questions, pages ranked"
    assert "4 questions as readers type them, passages compared with the answers" in lines
    assert re.search(r"^page first +1\.000 +\d\.\d{3}$", answer.stdout, re.MULTILINE)
    assert re.search(r"^silent: unanswerable +1\.000 ", answer.stdout, re.MULTILINE)
    assert re.search(r"^keywords: answer in 5 passages +1\.000 ", answer.stdout, re.MULTILINE)
    hybrid, keyword = (run["questions"] for run in json.loads(written.read_text())["runs"])
    right = {"r1": 1, "r5": 1, "ndcg": 1, "s1": 1, "s5": 1, "a3": 1, "a5": 1, "labelled": 1, "silent": 1, "wrongly_silent": 0}
    assert hybrid["metrics"].items() >= right.items()
    assert hybrid["by_kind"]["situation"] == {"r1": 1.0, "r5": 1.0, "a5": None}, "its answer is not known"
    assert [(row["kind"], row["labelled"]) for row in hybrid["rows"]] == [
        ("question", 1.0),
        ("situation", None),
        ("keywords", None),
        ("unanswerable", None),
    ]
    assert keyword["rows"][0]["query"] == "how do I bleed a radiator that gurgles"
    compared = evaluate(repository, questions, "--compare", written, "--fail-under", "questions.a5=0.9")
    assert compared.returncode == 0, compared.stderr
    assert re.search(r"page in 5 +\+0\.000  \[\+0\.000, \+0\.000\]  no difference", compared.stdout)


def test_means_that_are_too_low_fail(repository: Path, judged: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([{"query": "gurgling radiator", "kind": "keywords", "page": "garden"}]))
    assert evaluate(repository, judged, "--fail-under", "recall@1=0.6").returncode == 0
    for queries, least, said in (
        (judged, "recall@1=0.7", "hybrid: recall@1 is 0.667, which is below 0.7"),
        (judged, "questions.r1=0.5", "hybrid: questions.r1 was not measured"),
        (wrong, "questions.r1=0.5", "hybrid: questions.r1 is 0.000, which is below 0.5"),
    ):
        answer = evaluate(repository, queries, "--fail-under", least)
        assert (answer.returncode, said in answer.stderr) == (1, True)


def test_two_runs_are_compared(repository: Path, judged: Path) -> None:
    written = repository.parent / "before.json"
    assert evaluate(repository, judged, "--output", written).returncode == 0
    answer = evaluate(repository, judged, "--fusion", "sum", "--compare", written)
    assert "hybrid against hybrid before" in answer.stdout, answer.stderr
    assert "ndcg        +0.000  [+0.000, +0.000]  no difference that is more than noise" in answer.stdout
    other = repository.parent / "other.json"
    other.write_text(json.dumps([{"query": "x", "relevant": ["home"]}]))
    answer = evaluate(repository, other, "--compare", written)
    assert (answer.returncode, "has other queries" in answer.stderr) == (2, True)


def test_a_file_that_is_no_earlier_run_is_refused(repository: Path, judged: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("[]")
    answer = evaluate(repository, judged, "--compare", path)
    assert answer.returncode == 2
    assert "was not written by --output" in answer.stderr
    for runs in (
        "5",
        '[{"name": 1, "queries": []}]',
        '[{"name": "hybrid", "queries": 5}]',
        '[{"name": "hybrid", "queries": [{"query": "x"}]}]',
        '[{"name": "hybrid", "queries": [{"query": "x", "relevant": [], "exclude": [], "ndcg": NaN}]}]',
        '[{"name": "hybrid", "queries": [], "questions": []}]',
        '[{"name": "hybrid", "queries": [], "questions": {"rows": [{"query": "x"}]}}]',
    ):
        path.write_text(f'{{"runs": {runs}}}')
        with pytest.raises(ParameterError, match="was not written by --output"):
            read_run(path, "hybrid")


_HOME = '[{"query": "x", "relevant": ["home"]}]'


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ('[{"query": "x", "query": "y", "relevant": ["home"]}]', (), "is ambiguous: 'query' is given more than once"),
        ("{", (), "is not JSON"),
        ('[{"query": "x"}]', (), "names no relevant page"),
        ('[{"query": "a\\ud800", "relevant": ["home"]}]', (), "half characters"),
        *(
            (_HOME, ("--fail-under", wrong), f"'{wrong}' is not METRIC=VALUE")
            for wrong in ("beauty=1", "ndcg=nan", "questions.wrongly_silent=0.1", "zero=0.1")
        ),
        (_HOME, ("--output", "/nowhere/run.json"), "/nowhere/run.json cannot be written"),
        (_HOME, ("--compare", "setup.cfg"), "setup.cfg is not JSON"),
        (_HOME, ("--plot", "picture.txt"), "must end in .png or .svg"),
        (_HOME, ("--chunks", "long", "--data-dir", "x"), "cannot be combined"),
        (_HOME, ("--model", "gpt"), "the model is 'gpt'; allowed"),
        (_HOME, ("--chunks", "long:target=1"), "target is '1'; allowed: a whole number of"),
    ],
)
def test_what_cannot_be_measured_is_told(
    repository: Path, tmp_path: Path, content: str, arguments: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "queries.json"
    path.write_text(content)
    answer = run("eval", path, *arguments, "--repository", repository)
    assert answer.returncode == 2
    assert message in answer.stderr


def test_questions_are_drafted_from_the_links(tmp_path: Path) -> None:
    place = make_repository(
        tmp_path / "repository",
        {"home.md": "[how to bleed a radiator](/heating), [here](/heating)\n", "heating.md": "# Heating\n"},
    )
    answer = run("eval", "make", "--repository", place)
    assert json.loads(answer.stdout) == [{"query": "how to bleed a radiator", "relevant": ["heating"], "exclude": ["home"]}]
    assert answer.stderr == "1 queries from the links of 2 pages\n"
    path = tmp_path / "queries.json"
    assert run("eval", "make", "--output", path, REPOSITORY=str(place)).stdout == ""
    assert "exists already" in run("eval", "make", "--repository", place, "--output", path).stderr
    assert evaluate(place, path).returncode == 0


def test_a_repository_without_a_commit_says_what_to_do(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    repository = make_repository(tmp_path / "repository", handbook)
    git(repository, "checkout", "-q", "--orphan", "other")
    answer = run("index", "--repository", repository)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "HEAD has no commit yet" in answer.stdout
    assert "commit the pages, or check out a branch that has them" in answer.stdout
    found = run("search", "--repository", repository, "radiators")
    assert (found.returncode, found.stdout) == (0, "")
    assert "commit the pages" in found.stderr


def test_index_waits_for_the_index_of_the_settings_and_fails_if_the_model_does(repository: Path, tmp_path: Path) -> None:
    at = ("--repository", repository, "--data-dir", tmp_path / "index")

    def indexed(**settings: str) -> Answer:
        found = run("index", *at, **settings, **noting_python(tmp_path))
        pid = json.loads(run("status", *at, "--json").stdout)["owner_pid"]
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: not is_running(pid))
        return found

    secret = "sk-in-the-options"
    assert "6 chunks" in indexed().stdout
    answer = indexed(SEMANTIC_CHUNKS="fixed")
    assert answer.returncode == 0, answer.stderr
    assert "5 chunks" in answer.stdout, "a page of the handbook is one chunk with that profile"
    failed = indexed(SEMANTIC_MODEL=f"onnx:{tmp_path}", SEMANTIC_MODEL_OPTIONS=json.dumps({"key": secret}))
    assert failed.returncode == 1
    assert "5 pages" in failed.stdout
    assert "problem: " in failed.stdout
    log = (tmp_path / "index" / "owner.log").read_text()
    assert (log.count("Traceback"), secret in log) == (0, False)
    options = [line for line in (tmp_path / "told").read_text().splitlines() if secret in line]
    assert options
    assert all(line.startswith("OTTERWIKI_SEMANTIC_SETTINGS=") for line in options), "others see arguments, not the environment"
