"""What the plugin costs the wiki when it starts: what it imports and mentions, and that a bad setting turns only search off."""

from __future__ import annotations

import html
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fork_server import started
from tests.support.live_wiki import LiveWiki, make_repository

HEAVY = ("chromadb", "onnxruntime", "tokenizers", "numpy", "sqlite3.dbapi2")
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
    command = [started("web"), "-c", SCRIPT % (HEAVY[:3],)]
    return subprocess.run(command, env={**environment, **settings}, capture_output=True, text=True, check=False)


def test_a_worker_loads_no_heavy_library() -> None:
    heavy = "{'chromadb', 'numpy', 'onnxruntime', 'sqlite3', 'tokenizers'}"
    program = f"import sys, otterwiki_semantic.plugin; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_starting_loads_nothing_heavy_no_setting_is_needed_and_a_missing_key_is_mentioned_once(tmp_path: Path) -> None:
    answer = start(tmp_path)
    assert answer.returncode == 0, answer.stderr
    (line,) = [line for line in answer.stderr.splitlines() if "OTTERWIKI_API_KEY is not set" in line]
    assert "INFO" in line
    heavy, threads, rules = answer.stdout.splitlines()
    assert heavy == ""
    assert threads == "1"
    assert "/api/v1/semantic-search" in rules.split(",")
    assert "/api/v1/reindex" in rules.split(",")
    assert (tmp_path / "repository-semantic").is_dir()


@pytest.mark.parametrize(
    ("name", "value", "logged", "reason"),
    [
        ("SEMANTIC_MODLE", "a-value", *2 * ("unknown setting SEMANTIC_MODLE (did you mean SEMANTIC_MODEL?)",)),
        (
            "SEMANTIC_MODEL",
            "sk-a-key",
            "SEMANTIC_MODEL is 'sk-a-key'; ",
            "SEMANTIC_MODEL is not valid; allowed: minilm, multilingual",
        ),
    ],
)
def test_a_bad_setting_turns_off_search_alone(tmp_path: Path, name: str, value: str, logged: str, reason: str) -> None:
    repository = make_repository(tmp_path / "repository", {"home.md": "# Home\n\nWelcome.\n"})
    with LiveWiki(repository, tmp_path / "index", plugin=True, command=None, **{name: value}) as wiki:
        (line,) = [line for line in wiki.log.splitlines() if "semantic search" in line]
        assert "ERROR" in line
        assert logged in line
        wiki.save("garden", "# Garden\n\nVegetables.\n")
        assert "Vegetables" in wiki.get("/garden").text
        assert wiki.api("GET", "/pages/garden").json["content"] == "# Garden\n\nVegetables.\n"
        status = wiki.api("GET", "/semantic-search/status")
        assert (status.status, status.json["status"]) == (503, "unavailable")
        assert reason in status.json["problems"][0]["message"]
        assert "restart the wiki" in status.json["problems"][0]["hint"]
        for path in ("/semantic-search?q=x", "/related?path=home", "/pages", "/semantic-search/map", "/reindex"):
            answer = wiki.api("POST" if path == "/reindex" else "GET", path)
            assert (answer.status, answer.json["error"]["code"]) == (503, "index_unavailable")
            assert reason in answer.json["error"]["message"]
        assert wiki.api("GET", "/semantic-search?q=x", key="wrong").status == 401
        assert "otterwiki_semantic_up 0" in wiki.api("GET", "/semantic-search/metrics").text
        wiki.log_in()
        for page in ("/-/semantic-search?q=x", "/-/admin/semantic-search"):
            assert reason in html.unescape(wiki.get(page).text)
            assert value not in wiki.get(page).text
        assert not wiki.data_dir.exists()


def test_a_data_directory_that_cannot_be_made_does_not_stop_the_wiki(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    answer = start(tmp_path, SEMANTIC_DATA_DIR=str(tmp_path / "file" / "index"), OTTERWIKI_API_KEY="k")
    assert answer.returncode == 0, answer.stderr
    assert "set SEMANTIC_DATA_DIR" in answer.stderr
    assert "OTTERWIKI_API_KEY" not in answer.stderr, "it is set"
