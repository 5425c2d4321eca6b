"""What the plugin costs the wiki when it starts, and what it finds there."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.support.live_wiki import make_repository

HEAVY = ("chromadb", "onnxruntime", "tokenizers", "numpy", "apscheduler", "sqlite3.dbapi2")
SCRIPT = """
import sys, threading
import otterwiki.server
print(",".join(name for name in %r if name in sys.modules))
print(threading.active_count())
print(",".join(sorted(str(rule) for rule in otterwiki.server.app.url_map.iter_rules() if "/api/v1/" in str(rule))))
"""


def start(place: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "REPOSITORY": str(make_repository(place / "repository", {"home.md": "# Home\n\ntext\n"})),
        "SECRET_KEY": "0123456789abcdef0123456789",
        "OTTERWIKI_SETTINGS": "",
        "SQLALCHEMY_DATABASE_URI": f"sqlite:///{place / 'wiki.sqlite'}",
    }
    for name in ("OTTERWIKI_API_KEY", "SEMANTIC_DATA_DIR"):
        environment.pop(name, None)
    command = [sys.executable, "-c", SCRIPT % (HEAVY[:3],)]
    return subprocess.run(command, env={**environment, **settings}, capture_output=True, text=True, check=False)


def test_the_wiki_finds_the_plugin_by_its_entry_point() -> None:
    (entry,) = [entry for entry in entry_points(group="otterwiki") if entry.value.startswith("otterwiki_semantic")]
    assert hasattr(entry.load(), "setup")


def test_a_worker_loads_no_heavy_library() -> None:
    heavy = "{'apscheduler', 'chromadb', 'numpy', 'onnxruntime', 'sqlite3', 'tokenizers'}"
    program = f"import sys, otterwiki_semantic.plugin; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_starting_loads_nothing_heavy_and_no_setting_is_needed(tmp_path: Path) -> None:
    answer = start(tmp_path)
    assert answer.returncode == 0, answer.stderr
    heavy, threads, rules = answer.stdout.splitlines()
    assert heavy == ""
    assert threads == "1"
    assert "/api/v1/semantic-search" in rules.split(",")
    assert "/api/v1/reindex" in rules.split(",")
    assert (tmp_path / "repository-semantic").is_dir()


def test_a_missing_key_is_mentioned_once(tmp_path: Path) -> None:
    assert start(tmp_path / "without").stderr.count("OTTERWIKI_API_KEY is not set") == 1
    assert "OTTERWIKI_API_KEY" not in start(tmp_path / "with", OTTERWIKI_API_KEY="k").stderr


@pytest.mark.parametrize(("name", "value"), [("SEMANTIC_SYNC_INTERVAL", "never"), ("SEMANTIC_SINC_INTERVAL", "60")])
def test_a_bad_setting_stops_the_start_with_its_name(tmp_path: Path, name: str, value: str) -> None:
    answer = start(tmp_path, **{name: value})
    assert answer.returncode != 0
    assert "Traceback" not in answer.stderr
    assert answer.stderr.strip().splitlines()[-1].startswith("Error: ")
    assert name in answer.stderr.strip().splitlines()[-1]


def test_a_data_directory_that_cannot_be_made_does_not_stop_the_wiki(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answer = start(tmp_path, SEMANTIC_DATA_DIR=str(tmp_path / "file" / "index"))
    assert answer.returncode == 0, answer.stderr
    assert "set SEMANTIC_DATA_DIR" in answer.stderr
