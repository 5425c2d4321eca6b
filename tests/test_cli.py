from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live_wiki import LiveWiki, commit, make_repository

PROGRAM = Path(sys.executable).with_name("otterwiki-semantic")
Answer = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Path:
    return make_repository(tmp_path_factory.mktemp("cli") / "repository", handbook)


def run(*arguments: str | Path, **environment: str) -> Answer:
    inherited = {name: value for name, value in os.environ.items() if name not in {"REPOSITORY", "SEMANTIC_DATA_DIR"}}
    command = [str(PROGRAM), *map(str, arguments)]
    return subprocess.run(
        command, env={**inherited, "OTTERWIKI_SETTINGS": "", **environment}, capture_output=True, text=True, check=False
    )


def test_any_repository_is_indexed_and_searched(repository: Path) -> None:
    answer = run("index", "--repository", repository)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("ready: 5 pages, 6 chunks, at ")
    answer = run("search", "--repository", repository, "-n", "1", "bleeding", "radiators")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("house/heating:17 ")
    assert "If it gurgles" in answer.stdout
    assert (repository.parent / "repository-semantic").is_dir()


def test_json_is_for_programs(repository: Path) -> None:
    run("index", "--repository", repository)
    answer = json.loads(run("search", "--repository", repository, "--json", "vegetables").stdout)
    assert answer["results"][0]["path"] == "garden"
    assert answer["results"][0]["similarity"] > 0.3
    status = json.loads(run("status", "--repository", repository, "--json").stdout)
    assert status["indexed_commit"] == status["head_commit"]


def test_a_change_is_shown_as_pending_until_it_is_indexed(repository: Path) -> None:
    run("index", "--repository", repository)
    head = commit(repository, {"new.md": "# New\n\nsomething\n"})
    answer = run("index", "--repository", repository)
    assert answer.stdout.startswith(f"ready: 6 pages, 7 chunks, at {head[:12]} (HEAD)")
    commit(repository, {"new.md": None})
    assert run("index", "--repository", repository).returncode == 0


def test_a_rebuild_is_waited_for(repository: Path) -> None:
    run("index", "--repository", repository)
    before = json.loads(run("status", "--repository", repository, "--json").stdout)["generation"]
    answer = run("reindex", "--repository", repository, "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["generation"] != before


def test_the_repository_comes_from_the_wikis_settings(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.cfg").write_text(f"REPOSITORY = {str(repository)!r}\nSEMANTIC_SYNC_INTERVAL = 30\n")
    answer = run("status", OTTERWIKI_SETTINGS=str(tmp_path / "settings.cfg"))
    assert answer.returncode == 0, answer.stderr
    assert run("status", REPOSITORY=str(repository)).returncode == 0


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
    assert "Traceback" not in answer.stderr


def test_a_directory_that_is_no_repository_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    answer = run("index", "--repository", tmp_path / "empty")
    assert answer.returncode == 1
    assert "not a git repository" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "empty-semantic").exists()


def test_a_folder_of_a_repository_stands_for_the_whole(repository: Path) -> None:
    answer = run("status", "--repository", repository / "house")
    assert answer.returncode == 0, answer.stderr
    assert "6 chunks" in answer.stdout
    assert not (repository / "house-semantic").exists()
    answer = run("status", "--repository", repository / ".git")
    assert answer.returncode == 1
    assert "name the directory that holds .git" in answer.stderr


def test_settings_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    answer = run("status", OTTERWIKI_SETTINGS=str(tmp_path / "nowhere.cfg"))
    assert answer.returncode == 1
    assert "OTTERWIKI_SETTINGS names a file that cannot be read" in answer.stderr


def test_help_explains_every_command() -> None:
    text = run("--help").stdout
    for command in ("index", "reindex", "search", "status"):
        assert command in text
        assert len(run(command, "--help").stdout.splitlines()) > 5
