"""A disk that is full, cannot be written to, or belongs to another user: it goes on, says so, and recovers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from tests.support.live_wiki import eventually, make_repository
from tests.support.paths import ROOT

pytestmark = pytest.mark.real_processes

FULL_DISK = """
import os, sys, time
from pathlib import Path
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon import IndexClient
sys.path.insert(0, os.getcwd())
from tests.support.live_wiki import commit, eventually, is_settled
repository, disk = map(Path, sys.argv[1:])
index = IndexClient(Settings(repository, disk / "index", sync_interval=1, pages=()))
eventually(lambda: is_settled(index.status()))
filler = (disk / "filler").open("wb", buffering=0)
for size in (1 << 20, 1 << 12, 1):
    try:
        while True:
            filler.write(b"x" * size)
    except OSError:
        pass
big = {f"q{i}.md": f"# Unit {i}\\n\\n" + f"The unit of the number {i} is long. " * 400 for i in range(20)}
head = commit(repository, big)
index.notify()
eventually(lambda: index.status().status == "error", 60)
status = index.status()
print(status.problems)
assert "make room on the disk" in status.problems[0].hint, status.problems
assert index.search(["vegetables"], SearchOptions(1, 1))[0].results[0].path == "garden"
filler.close()
(disk / "filler").unlink()
eventually(lambda: index.status().index.commit == head and is_settled(index.status()), 90)
assert index.status().problems == ()
assert index.search(["unit 13"], SearchOptions(1, 1))[0].results[0].path == "q13"
index.close()
"""

READ_ONLY = """
import subprocess, sys
from pathlib import Path
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.errors import DaemonUnavailableError
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon import IndexClient
from tests.support.live_wiki import eventually
repository, disk = map(Path, sys.argv[1:])
subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
index = IndexClient(Settings(repository, disk / "index", pages=()))
index.notify()
try:
    index.status()
except DaemonUnavailableError as error:
    assert "set SEMANTIC_DATA_DIR" in str(error), error
else:
    raise AssertionError("it works on a disk that cannot be written to")
subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
eventually(lambda: index.status().status == "ready")
assert index.search(["vegetables"], SearchOptions(1, 1))[0].results[0].path == "garden"
index.close()
"""


def on_a_disk_of_its_own(script: str, place: Path, repository: Path, size: str = "24m") -> None:
    """Run a script with a small disk, which a user namespace lets anybody mount."""
    disk = place / "disk"
    disk.mkdir()
    inner = f'mount -t tmpfs -o size={size} tmpfs "$1" && exec "$2" -c "$3" "$4" "$1"'
    command = ["unshare", "-rm", "sh", "-c", inner, "sh", str(disk), sys.executable, script, str(repository)]
    try:
        probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if probe.returncode:
        pytest.skip(f"no user namespaces here: {probe.stderr.decode().strip()}")
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_full_disk_stops_nothing_but_new_pages(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    on_a_disk_of_its_own(FULL_DISK, tmp_path, make_repository(tmp_path / "repository", handbook))


def test_a_disk_that_cannot_be_written_to_is_named(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    on_a_disk_of_its_own(READ_ONLY, tmp_path, make_repository(tmp_path / "repository", handbook))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_data_directory_of_another_user_is_named(tmp_path: Path, handbook: dict[str, str | bytes]) -> None:
    data_dir = tmp_path / "index"
    data_dir.mkdir()
    os.chown(data_dir, 65534, 65534)
    index = IndexClient(Settings(make_repository(tmp_path / "repository", handbook), data_dir, pages=()))
    index.notify()
    with pytest.raises(SemanticError, match="belongs to another user; run this as the user that the wiki runs as"):
        index.status()
    os.chown(data_dir, os.geteuid(), os.getegid())
    eventually(lambda: index.status().status == "ready")
    index.close()
