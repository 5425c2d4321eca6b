"""The command `health`, as CI runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.cli.test_main import run
from tests.support.live_wiki import commit, make_repository


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    pages = {"README.md": "# Read me\n\nSee [[Guide]].\n", "guide.md": "# Guide\n\nSee [more](missing).\n"}
    return make_repository(tmp_path / "repository", pages)


def test_findings_fail_the_command_until_they_are_gone(repository: Path) -> None:
    found = run("health", "--repository", repository)
    assert (found.returncode, found.stderr) == (1, "broken_link: 1\n")
    assert found.stdout.splitlines()[0].endswith("no page 'missing'")
    assert found.stdout.splitlines()[1] == "    guide#guide"
    assert run("health", "--repository", repository, "--kind", "orphan").returncode == 0
    commit(repository, {"guide.md": "# Guide\n\nThat is all.\n", "new.md": "# New\n\nUnlinked.\n"})
    found = run("health", "--repository", repository, "--json")
    report = json.loads(found.stdout)
    assert (found.returncode, report["open"], report["commit"]) == (1, 1, report["index"]["head"])
    assert [finding["pages"][0]["path"] for finding in report["findings"]] == ["new"]
    found = run("health", "--repository", repository, "--linked", "new")
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "No findings.\n")
    found = run("health", "--repository", repository, "--kind", "nothing")
    assert (found.returncode, "duplicate" in found.stderr) == (2, True)


def test_a_repository_without_a_commit_has_no_findings(tmp_path: Path) -> None:
    found = run("health", "--repository", make_repository(tmp_path / "empty", {}))
    assert (found.returncode, found.stdout) == (0, "")
    assert "HEAD has no commit yet" in found.stderr
