"""The pip command that installs from where this installation came from."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core import installation
from otterwiki_semantic.core.installation import pip_install

GIT = {"url": "https://git.example.org/semantic.git", "vcs_info": {"vcs": "git", "commit_id": "1f2e"}}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that puts an installed distribution with this direct_url.json before the real one."""

    def install(origin: dict[str, Any] | None) -> None:
        directory = tmp_path / "site" / "otterwiki_semantic-9.dist-info"
        directory.mkdir(parents=True, exist_ok=True)
        lines = ["Name: otterwiki-semantic", "Version: 9", "Requires-Dist: flask", 'Requires-Dist: ours<3,>=2; extra == "map"']
        (directory / "METADATA").write_text("\n".join(lines) + "\n")
        if origin is not None:
            (directory / "direct_url.json").write_text(json.dumps(origin))
        monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])

    monkeypatch.setattr(installation, "_origin", installation._origin.__wrapped__)
    return install


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'otterwiki-semantic[map]'"),
        (GIT, "pip install 'otterwiki-semantic[map] @ git+https://git.example.org/semantic.git'"),
        (
            {"url": GIT["url"], "vcs_info": {"vcs": "git", "commit_id": "1f2e", "requested_revision": "v1.0.0"}},
            "pip install 'otterwiki-semantic[map] @ git+https://git.example.org/semantic.git@v1.0.0'",
        ),
        (
            {"url": "https://example.org/semantic.whl", "archive_info": {}},
            "pip install 'otterwiki-semantic[map] @ https://example.org/semantic.whl'",
        ),
        ({"url": "file:///gone/semantic.whl", "archive_info": {}}, "pip install 'ours<3,>=2'"),
        ({"url": "file:///gone/checkout", "dir_info": {}}, "pip install 'ours<3,>=2'"),
    ],
    ids=["index", "git", "tag", "archive", "archive that is gone", "checkout that is gone"],
)
def test_an_extra_is_installed_from_the_origin(installed: Any, origin: dict[str, Any] | None, command: str) -> None:
    installed(origin)
    assert pip_install("map") == command


def test_a_checkout_is_installed_by_its_path_and_as_before(installed: Any, tmp_path: Path) -> None:
    (tmp_path / "a checkout").mkdir()
    url = (tmp_path / "a checkout").as_uri()
    installed({"url": url, "dir_info": {}})
    assert pip_install("map") == f"pip install '{tmp_path}/a checkout[map]'"
    assert pip_install(reinstall=True) == f"pip install --force-reinstall '{tmp_path}/a checkout'"
    installed({"url": url, "dir_info": {"editable": True}})
    assert pip_install() == f"pip install --editable '{tmp_path}/a checkout'"
