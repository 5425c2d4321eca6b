"""The earlier plugin and this one, installed at once: nothing else loads a second plugin by its entry point."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.fork_server import started
from tests.support.live_wiki import make_repository
from tests.support.packages import fake_package

SCRIPT = """
import sys
sys.path.append(sys.argv[1])
import otterwiki.server
for method, path in (("GET", "semantic-search"), ("POST", "reindex"), ("GET", "chroma-status"), ("GET", "earlier-only")):
    adapter = otterwiki.server.app.url_map.bind("wiki")
    print(adapter.match(f"/api/v1/{path}", method)[0].partition(".")[0])
"""
EARLIER = """
from flask import Blueprint
from otterwiki.plugins import hookimpl, plugin_manager

blueprint = Blueprint("otterwiki_semantic_search", __name__, url_prefix="/api/v1")


@blueprint.route("/semantic-search")
@blueprint.route("/chroma-status")
@blueprint.route("/reindex", methods=["POST"])
@blueprint.route("/earlier-only")
def answer():
    return {}


class Plugin:
    @hookimpl
    def setup(self, app, db, storage):
        app.register_blueprint(blueprint)


plugin_manager.register(Plugin())
"""


def test_the_earlier_plugin_beside_this_one_changes_nothing_but_the_log(tmp_path: Path) -> None:
    """It comes last on the path, so that of two hooks the wiki would ask its own first."""
    entry_point = "semantic_search = otterwiki_semantic_search"
    fake_package(tmp_path / "plugins", "otterwiki-semantic-search", "0.1.0", entry_point, EARLIER)
    environment = os.environ | {
        "REPOSITORY": str(make_repository(tmp_path / "repository", {"home.md": "# Home\n"})),
        "SECRET_KEY": "0123456789abcdef0123456789",
        "SQLALCHEMY_DATABASE_URI": f"sqlite:///{tmp_path / 'wiki.sqlite'}",
        "OTTERWIKI_SETTINGS": "",
        "SEMANTIC_DATA_DIR": str(tmp_path / "index"),
        "CHROMADB_MODE": "local",
    }
    command = [started("web"), "-c", SCRIPT, str(tmp_path / "plugins")]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["semantic_search"] * 3 + ["otterwiki_semantic_search"]
    assert answer.stderr.count("pip uninstall otterwiki-semantic-search") == 1
    assert answer.stderr.count("CHROMADB_MODE (of otterwiki-semantic-search): not needed") == 1
