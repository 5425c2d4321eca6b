from __future__ import annotations

from pathlib import Path

import pytest

from otterwiki_semantic.core.files import directory_size, write_atomically


def test_a_file_is_replaced_and_leaves_no_scratch_file(tmp_path: Path) -> None:
    path = tmp_path / "pointer.json"
    write_atomically(path, "old")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "pointer"
    write_atomically(path, "old")
    (tmp_path / "pointer.new").mkdir()
    with pytest.raises(OSError, match=r"pointer\.new"):
        write_atomically(path, "new")
    assert path.read_text() == "old"


def test_the_size_of_a_directory_is_that_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "one").write_bytes(b"x" * 100)
    (tmp_path / "inner" / "two").write_bytes(b"x" * 5_000)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    files = [tmp_path / "one", tmp_path / "inner" / "two", tmp_path / "dangling"]
    assert directory_size(tmp_path) == sum(path.lstat().st_size for path in files)
    assert directory_size(tmp_path, allocated=True) == sum(path.lstat().st_blocks * 512 for path in files)
    assert directory_size(tmp_path / "nowhere") == 0
