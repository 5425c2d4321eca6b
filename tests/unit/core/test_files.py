"""Private files, locks with deadlines, and files that are replaced whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.files import directory_size, locked, make_private, try_lock, write_atomically
from tests.support.processes import another_process_holds


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_directories_locks_and_data_are_private_whatever_the_umask(tmp_path: Path) -> None:
    place = tmp_path / "data"
    make_private(place)
    with locked(place / "new.lock", 1):
        write_atomically(place / "record.json", "{}")
    assert mode(place) == 0o700
    assert {path.name: mode(path) for path in place.iterdir()} == {"new.lock": 0o600, "record.json": 0o600}


def test_what_an_earlier_version_left_open_is_closed_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "data"
    place.mkdir()
    for path, permissions in ((place, 0o755), (place / "old.lock", 0o644), (place / "record.new", 0o644)):
        path.touch()
        path.chmod(permissions)
    make_private(place)
    with locked(place / "old.lock", 1):
        write_atomically(place / "record.json", "{}")
    assert (mode(place), mode(place / "old.lock"), mode(place / "record.json")) == (0o700, 0o600, 0o600)
    assert f"{place} was open to other users (mode 755), and is closed now" in caplog.text
    caplog.clear()
    make_private(place)
    assert not caplog.text


def test_a_directory_that_cannot_be_closed_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system without permissions."""
    tmp_path.chmod(0o755)
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    make_private(tmp_path)
    assert "cannot be closed; set SEMANTIC_DATA_DIR" in caplog.text


def test_a_lock_that_another_process_holds_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with another_process_holds(path) as holder:
        with (
            pytest.raises(TimeoutError, match=r"another process holds .*a\.lock, and did not release it within 0\.2 s"),
            locked(path, 0.2),
        ):
            pass
        holder.kill()
        with locked(path, 20) as opened:
            assert try_lock(opened)


def test_a_file_is_replaced_or_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "pointer.json"
    write_atomically(path, "old")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
    path.with_suffix(".new").mkdir()
    with pytest.raises(OSError, match=r"pointer\.new"):
        write_atomically(path, "newer")
    assert path.read_text() == "new"


def test_the_size_of_a_directory_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "one").write_bytes(b"x" * 100)
    (tmp_path / "inner" / "two").write_bytes(b"x" * 5_000)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    files = [tmp_path / "one", tmp_path / "inner" / "two", tmp_path / "dangling"]
    assert directory_size(tmp_path) == sum(path.lstat().st_size for path in files)
    assert directory_size(tmp_path, allocated=True) == sum(path.lstat().st_blocks * 512 for path in files)
    assert directory_size(tmp_path / "nowhere") == 0
