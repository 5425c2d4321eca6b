"""Several wikis in one process, on one host, and by mistake in one data directory."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.errors import DaemonMismatchError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from tests.support.fork_server import python
from tests.support.live_wiki import eventually, make_repository
from tests.support.paths import ROOT

_WIKIS = """
import json, os, sys
from pathlib import Path
from otterwiki_semantic.plugin import plugin
from tests.support.live_wiki import commit, eventually

def load(settings):
    for name in [name for name in sys.modules if name.partition(".")[0] == "otterwiki"]:
        del sys.modules[name]
    os.environ.update(settings)
    from otterwiki.server import app
    return app

PROXY = {"x-otterwiki-name": "A", "x-otterwiki-email": "a@example.org", "x-otterwiki-permissions": "READ,WRITE"}

def get(app, route, headers=PROXY, **query):
    return app.test_client().get(route, query_string=query, headers=headers)

def status(app):
    return get(app, "/api/v1/semantic-search/status").json

def is_whole(app):
    return status(app)["indexed_commit"] == status(app)["head_commit"]

def save(app, content):
    answer = app.test_client().post("/new/save", data={"content": content, "commit": "edit"}, headers=PROXY)
    assert answer.status_code == 302, answer.text

given = [json.loads(argument) for argument in sys.argv[1:]]
apps = [load(settings) for settings in given]
for app in apps:
    eventually(lambda: is_whole(app))

keys = [{"Authorization": f"Bearer {settings['OTTERWIKI_API_KEY']}"} for settings in given] + [{}]
found = {
    "pages": [[hit["path"] for hit in get(app, "/api/v1/semantic-search", q="page about").json["results"]] for app in apps],
    "owners": [status(app)["owner_pid"] for app in apps],
    "keys": [[get(app, "/api/v1/semantic-search", key, q="x").status_code for key in keys] for app in apps],
    "beside": ["semantic-related" in get(app, "/home").text for app in apps],
    "related": [get(app, "/-/semantic-search/related", path="home").status_code for app in apps],
    "menus": [[name for name in ("First menu", "Second menu") if name in get(app, "/-/semantic-search").text] for app in apps],
}
commit(Path(given[1]["REPOSITORY"]), {"behind.md": "# Behind\\n\\nIts back.\\n"})
save(apps[0], "# New\\n\\nSaved in the first one.\\n")
eventually(lambda: is_whole(apps[0]))
found["after saving in the first"] = [is_whole(app) for app in apps]
save(apps[1], "# New\\n\\nSaved in the second one.\\n")
eventually(lambda: is_whole(apps[1]))
for settings in given:
    commit(Path(settings["REPOSITORY"]), {"pulled.md": "# Pulled\\n\\nBy no request.\\n"})
plugin.repository_changed()
for app in apps:
    eventually(lambda: is_whole(app))
print(json.dumps(found))
"""


def told(place: Path, name: str, **settings: str) -> str:
    pages: dict[str, str | bytes] = {
        "home.md": f"# {name}\n\nThe home page of the {name} wiki.\n",
        f"{name}.md": f"# Of {name}\n\nThe page about {name} things.\n",
    }
    repository = make_repository(place / name, pages)
    return json.dumps(
        {
            "REPOSITORY": str(repository),
            "SQLALCHEMY_DATABASE_URI": f"sqlite:///{place / name}.sqlite",
            "OTTERWIKI_API_KEY": f"key of the {name}",
            "SIDEBAR_CUSTOM_MENU": json.dumps([{"title": f"{name.title()} menu", "link": "/home"}]),
            **settings,
        }
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What two wikis in one process answered, with data directories that nobody named.

    At the end the script waits until both have followed a hook that was called in no request.
    """
    place = tmp_path_factory.mktemp("wikis")
    wikis = (
        told(place, "first", SEMANTIC_PAGES="none", AUTH_METHOD="PROXY_HEADER"),
        told(place, "second", SEMANTIC_PAGES="related", AUTH_METHOD=""),
    )
    common = {
        "SECRET_KEY": "0123456789abcdef0123456789",
        "OTTERWIKI_SETTINGS": "",
        "WTF_CSRF_ENABLED": "false",
        "SEMANTIC_SYNC_INTERVAL": "3600",
        "PYTHONPATH": str(ROOT),
    }
    environment = {name: value for name, value in os.environ.items() if name != "SEMANTIC_DATA_DIR"} | common
    command = [python(), "-c", _WIKIS, *wikis]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, answer.stderr
    answers: dict[str, Any] = json.loads(answer.stdout)
    assert (place / "first-semantic" / "current").is_file()
    assert (place / "second-semantic" / "current").is_file()
    return answers


def test_each_finds_its_own_pages(found: dict[str, Any]) -> None:
    assert [set(pages) for pages in found["pages"]] == [{"home", "first"}, {"home", "second"}]


def test_each_has_an_index_process_of_its_own(found: dict[str, Any]) -> None:
    first, second = found["owners"]
    assert first != second


def test_each_asks_its_own_wiki_who_may_read_and_knows_its_own_key(found: dict[str, Any]) -> None:
    assert found["keys"] == [[200, 401, 401], [401, 200, 200]]  # the first one's key, the second one's, none


def test_pages_are_as_each_was_told(found: dict[str, Any]) -> None:
    assert found["beside"] == [False, True]
    assert found["related"] == [404, 200]
    assert found["menus"] == [["First menu"], ["Second menu"]]


def test_a_save_wakes_the_index_of_its_wiki_only(found: dict[str, Any]) -> None:
    assert found["after saving in the first"] == [True, False]


def test_another_wikis_data_directory_is_refused(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = IndexClient(settings)
    other = replace(settings, repository=make_repository(tmp_path / "other", {"only.md": "# Only\n\nThe only page.\n"}))
    second = IndexClient(other)
    try:
        eventually(lambda: first.status().index.commit == first.status().index.head)
        with pytest.raises(DaemonMismatchError) as refusal:
            second.related("only", 1)
        in_use = f"this data directory is in use for the repository {settings.repository};"
        assert str(refusal.value) == f"{in_use} set another SEMANTIC_DATA_DIR for this wiki"
        assert first.related("garden", 1).path == "garden"
        assert second._foreign_since is not None
        second._foreign_since -= 60  # so long nobody waits that it might end
        exchanges = 0
        exchange = second._exchange

        def counted(request: bytes, deadline: float) -> bytes:
            nonlocal exchanges
            exchanges += 1
            return exchange(request, deadline)

        monkeypatch.setattr(second, "_exchange", counted)
        with pytest.raises(DaemonMismatchError):
            second.status()
        assert exchanges == 1, "it is not asked again and again"
    finally:
        second.close()
        first.close()
    third = IndexClient(other)  # waits for the end of the first one's daemon
    assert eventually(lambda: third.status().pages) == 1
    assert third.related("only", 1).path == "only"
    third.close()
