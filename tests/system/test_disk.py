"""A real disk that is full or cannot be written to: the index goes on, says so, and recovers.

The disk is mounted for the test's processes only, so that nothing is forked here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.live_wiki import make_repository
from tests.support.paths import ROOT

pytestmark = pytest.mark.real_processes

DISK = """
import subprocess, sys
from pathlib import Path
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.errors import DaemonUnavailableError
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.daemon import IndexClient
from tests.support.live_wiki import commit, eventually, is_settled
repository, disk = map(Path, sys.argv[1:])

def best(query):
    return index.search([query], SearchOptions(1, 1))[0].results[0].path

subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
index = IndexClient(Settings(repository, disk / "index", sync_interval=1, pages=()))
index.notify()
try:
    index.status()
except DaemonUnavailableError as error:
    assert "set SEMANTIC_DATA_DIR" in str(error), error
else:
    raise AssertionError("it works on a disk that cannot be written to")
subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
eventually(lambda: is_settled(index.status()))
assert best("vegetables") == "garden"

filler = (disk / "filler").open("wb", buffering=0)
for size in (1 << 20, 1 << 12, 1):
    try:
        while True:
            filler.write(b"x" * size)
    except OSError:
        pass
# Words only: a model would take seconds for so much text.
page = "---\\nsearch: words\\n---\\n# Unit {0}\\n\\n" + "The unit of the number {0} is long. " * 400
head = commit(repository, {f"q{number}.md": page.format(number) for number in range(20)})
index.notify()
eventually(lambda: index.status().status == "error", 60)
status = index.status()
assert "make room on the disk" in status.problems[0].hint, status.problems
assert best("vegetables") == "garden"
filler.close()
(disk / "filler").unlink()
eventually(lambda: index.status().index.commit == head and is_settled(index.status()), 90)
assert index.status().problems == ()
assert best("unit 13") == "q13"
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


def test_a_disk_that_cannot_be_written_to_is_named_and_a_full_one_stops_nothing_but_new_pages(
    tmp_path: Path, handbook: dict[str, str | bytes]
) -> None:
    on_a_disk_of_its_own(DISK, tmp_path, make_repository(tmp_path / "repository", handbook))
