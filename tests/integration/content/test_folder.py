"""A folder of Markdown, with or without git, and the private repository that follows it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from otterwiki_semantic.content import Folder, Repository
from otterwiki_semantic.content.attachments import MAX_FILE_BYTES, attachment_rule, kinds
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.records import FileKind
from otterwiki_semantic.core.settings import Settings
from tests.support.fork_server import python
from tests.support.live_wiki import eventually, git, make_repository, write_files

_COMMIT = (
    "import sys; from pathlib import Path; from otterwiki_semantic.content import Folder\n"
    "Folder(Path(sys.argv[1]), Path(sys.argv[2])).commit()"
)


def texts(folder: Folder) -> dict[str, bytes]:
    """Return the committed pages, as everything else reads them."""
    repository = Repository(folder.directory)
    head = repository.head()
    assert head is not None
    blobs = repository.page_blobs(head)
    return dict(zip(blobs, repository.read_blobs(blobs.values()), strict=True))


def snapshot(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return mode, modification time and content of everything in a directory."""
    found = {}
    for path in (place, *sorted(place.rglob("*"))):
        facts = path.lstat()
        is_file = path.is_file() and not path.is_symlink()
        found[str(path)] = (facts.st_mode, facts.st_mtime_ns, path.read_bytes() if is_file else b"")
    return found


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_files(tmp_path / "notes", {"a.md": "# A\n", "sub/b.md": "# B\n"})


@pytest.fixture
def folder(notes: Path, tmp_path: Path) -> Folder:
    return Folder(notes, tmp_path / "index")


def _is_at(process: subprocess.Popen[bytes], sign: Path) -> bool:
    return sign.exists() or process.poll() is not None


def commits(folder: Folder) -> int:
    return len(git(folder.directory, "rev-list", "HEAD").splitlines())


def test_each_commit_equals_what_is_on_the_disk(folder: Folder, notes: Path) -> None:
    folder.commit()
    assert texts(folder) == {"a": b"# A\n", "sub/b": b"# B\n"}
    before = folder.head()
    folder.commit()
    assert folder.head() == before, "nothing changed"
    write_files(notes, {"a.md": "# A, changed\n", "sub/b.md": None, "new/deep/c.md": "# C\n"})
    folder.commit()
    assert texts(folder) == {"a": b"# A, changed\n", "new/deep/c": b"# C\n"}


def test_a_file_becomes_a_directory_and_the_reverse(folder: Folder, notes: Path) -> None:
    folder.commit()
    write_files(notes, {"a.md": None, "sub/b.md": None})
    (notes / "sub").rmdir()
    write_files(notes, {"a.md/x.md": "# X\n", "sub": "no Markdown"})
    folder.commit()
    assert texts(folder) == {"a.md/x": b"# X\n"}


@pytest.mark.parametrize("kind", ["plain", "repository", "inside a repository", "nested repositories", "read-only"])
def test_nothing_is_written_into_the_folder(kind: str, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    notes = whole / "notes" if kind == "inside a repository" else whole
    if kind in {"repository", "inside a repository", "nested repositories"}:
        make_repository(whole, {"committed.md": "# Committed\n", "notes/kept.md": "# Kept\n"})
    write_files(notes, {"committed.md": "# Changed since\n", "sub/b.md": "# B\n", "picture.png": b"\x89PNG", "empty.md": ""})
    if kind == "nested repositories":
        make_repository(notes / "nested", {"n.md": "# N\n", "deep/d.md": "# D\n"})
        git(notes, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(notes / "nested"), "module")
        make_repository(notes / "nested" / "again", {"e.md": "# E\n"})
        write_files(make_repository(notes / "unborn", {}), {"u.md": "# U\n"})
    elif kind == "read-only":
        for place in (notes / "sub", notes):
            place.chmod(0o555)
    before = snapshot(whole)
    folder = Folder(notes, tmp_path / "index")
    for _ in range(2):
        folder.commit()
    assert snapshot(whole) == before
    assert texts(folder) == {str(path.relative_to(notes))[:-3]: path.read_bytes() for path in notes.rglob("*.md")}
    if kind == "nested repositories":
        assert {"nested/deep/d", "nested/again/e", "unborn/u", "module/n"} <= texts(folder).keys()


def test_changes_in_a_nested_repository_are_followed(folder: Folder, notes: Path) -> None:
    make_repository(notes / "nested", {"n.md": "# N\n"})
    folder.commit()
    write_files(notes, {"nested/n.md": None, "nested/m.md": "# M\n"})
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b", "nested/m"}


def test_ignored_hidden_and_other_files_are_left_out(folder: Folder, notes: Path) -> None:
    write_files(
        notes,
        {
            ".gitignore": "drafts/\n*.tmp.md\n",
            "drafts/d.md": "# D\n",
            "x.tmp.md": "# X\n",
            ".obsidian/plugin/README.md": "# Plugin\n",
            ".hidden.md": "# Hidden\n",
            "logseq/bak/pages/a/old.md": "# Old\n",
            "picture.png": b"\x89PNG\r\n",
            "sub/.gitignore": "private.md\n!.forced.md\n",
            "sub/private.md": "# Private\n",
            "sub/.forced.md": "# Forced\n",
        },
    )
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b"}


def test_documents_are_tracked_as_the_setting_says(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "missing_kinds", lambda: frozenset({FileKind.PDF}))
    files = ("Lease.PDF", "sub/offer.eml", "sub/run.py", "sub/.hidden.pdf", "private/x.pdf")
    write_files(notes, {".gitignore": "/private/\n", "a.md": None, **dict.fromkeys(files, "x")})
    with (notes / "huge.pdf").open("wb") as huge:
        huge.truncate(MAX_FILE_BYTES + 1)

    def tracked(*globs: str, wanted: bool = True) -> list[str]:
        settings = Settings(notes, tmp_path, attachments=globs or wanted)
        folder = Folder(notes, tmp_path / "index", attachment_rule(settings, is_folder=True))
        folder.commit()
        return folder.file_names(folder.head() or "")

    assert tracked() == ["Lease.PDF", "sub/b.md", "sub/offer.eml"]
    settings = Settings(tmp_path / "index" / "folder.git", tmp_path / "index")
    assert Repository.of(settings).unread_attachments("HEAD") == {"pdf": 1}
    for directory in ("sub/**", "sub", "sub/"):
        assert tracked(directory, "*.PDF") == ["Lease.PDF", "sub/b.md", "sub/offer.eml", "sub/run.py"]
    with (notes / "Lease.PDF").open("wb") as grown:
        grown.truncate(MAX_FILE_BYTES + 1)
    assert tracked() == ["sub/b.md", "sub/offer.eml"]
    assert tracked(wanted=False) == ["sub/b.md"]


def test_a_file_that_becomes_ignored_is_removed(folder: Folder, notes: Path) -> None:
    folder.commit()
    write_files(notes, {".gitignore": "/sub/\n"})
    folder.commit()
    assert texts(folder).keys() == {"a"}
    write_files(notes, {".gitignore": None})
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b"}


ODD_NAMES = ("line\nbreak", 'quo"te', "tab\t", "back\\slash", "-dash", ":(top)magic", "*", "ünï ☃", " space ", "a\\n", "#x")


def test_names_with_odd_characters_are_followed(folder: Folder, notes: Path) -> None:
    write_files(notes, {f"odd/{name}.md": name for name in ODD_NAMES})
    os.close(os.open(os.fsencode(notes) + b"/latin-\xe9.md", os.O_CREAT))
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b", "latin-\\xe9", *(f"odd/{name}" for name in ODD_NAMES)}
    write_files(notes, {f"odd/{name}.md": None for name in ODD_NAMES})
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b", "latin-\\xe9"}


def test_symbolic_links_are_not_followed(folder: Folder, notes: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "outside", {"secret.md": "# Secret\n"})
    (notes / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (notes / "directory").symlink_to(tmp_path / "outside")
    (notes / "dangling.md").symlink_to("nowhere")
    write_files(notes, {"moved/c.md": "# C\n"})
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b", "moved/c"}
    (notes / "a.md").unlink()
    (notes / "a.md").symlink_to(tmp_path / "outside" / "secret.md")
    (notes / "moved").rename(tmp_path / "outside" / "moved")
    (notes / "moved").symlink_to(tmp_path / "outside" / "moved")
    write_files(tmp_path / "outside", {"moved/c.md": "# Changed\n"})
    folder.commit()
    assert texts(folder).keys() == {"sub/b"}


def test_bytes_are_stored_as_they_are(folder: Folder, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = tmp_path / "gitconfig"
    configuration.write_text(
        '[safe]\nbareRepository = explicit\n[core]\nautocrlf = true\n[filter "rot"]\nclean = tr a-z b-za\nrequired = true\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(configuration))
    source = b"# A\r\nline\n\xff\xfe $Id$\r\n"
    write_files(notes, {"a.md": source, ".gitattributes": "*.md filter=rot ident working-tree-encoding=UTF-16\n"})
    folder.commit()
    assert texts(folder)["a"] == source


def test_a_file_is_dated_by_its_modification_time(folder: Folder, notes: Path) -> None:
    day = 1_500_000_000 // 86_400 * 86_400
    many = {f"many/{number}.md": f"{number}\n" for number in range(600)}
    write_files(notes, many)
    for number, name in enumerate(many):
        os.utime(notes / name, (0, day + 86_400 * (number % 3) + number))
    folder.commit()
    dated = Repository(folder.directory).last_changes(folder.head() or "")
    assert all(0 <= dated[name[:-3]].time - (notes / name).stat().st_mtime < 86_400 for name in many)
    assert commits(folder) <= 5, "one of each day"
    write_files(notes, {"a.md": "changed", "sub/b.md": "changed"})
    os.utime(notes / "a.md", (0, 1_600_000_000))
    os.utime(notes / "sub/b.md", (0, 1_700_000_000))
    folder.commit()
    dated = Repository(folder.directory).last_changes(folder.head() or "")
    assert (dated["a"].time, dated["sub/b"].time) == (1_600_000_000, 1_700_000_000)


def test_locks_that_a_killed_git_left_are_removed(folder: Folder, notes: Path) -> None:
    folder.commit()
    for name in ("index.lock", "HEAD.lock", "refs/heads/main.lock"):
        (folder.directory / name).touch()
    write_files(notes, {"c.md": "# C\n"})
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b", "c"}


def test_a_commit_after_a_kill_completes_the_work(folder: Folder, notes: Path) -> None:
    write_files(notes, {f"many/{number}.md": f"# {number}\n" for number in range(1_500)})
    for sign in ("objects", "index.lock", "objects/pack"):
        process = subprocess.Popen([sys.executable, "-c", _COMMIT, str(notes), str(folder.data_dir)])
        eventually(partial(_is_at, process, folder.directory / sign))
        process.send_signal(signal.SIGKILL)
        process.wait()
    folder.commit()
    assert len(texts(folder)) == 1_502


def test_processes_commit_at_the_same_time(folder: Folder, notes: Path) -> None:
    write_files(notes, {f"many/{number}.md": f"# {number}\n" for number in range(200)})
    command = [python(), "-c", _COMMIT, str(notes), str(folder.data_dir)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(4)]
    folder.commit()
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0)] * 4
    assert len(texts(folder)) == 202


def test_a_folder_that_is_gone_keeps_its_pages(folder: Folder, notes: Path) -> None:
    folder.commit()
    moved = notes.rename(notes.with_name("elsewhere"))
    with pytest.raises(RepositoryError, match="does not exist, or cannot be read"):
        folder.commit()
    notes.mkdir()
    for _ in range(2):
        with pytest.raises(RepositoryError, match=r"has no Markdown files .* is its drive mounted"):
            folder.commit()
    assert len(texts(folder)) == 2
    notes.rmdir()
    moved.rename(notes)
    folder.commit()
    assert len(texts(folder)) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_files_that_cannot_be_read_are_named(folder: Folder, notes: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_files(notes, {"secret.md": "# Secret\n", "closed/c.md": "# C\n"})
    (notes / "secret.md").chmod(0)
    (notes / "closed").chmod(0)
    folder.commit()
    folder.commit()
    assert texts(folder).keys() == {"a", "sub/b"}
    assert [record.getMessage() for record in caplog.records] == [f"1 file of {notes} cannot be read: secret.md"]
    (notes / "sub").chmod(0)
    folder.commit()
    assert caplog.records[-1].getMessage() == f"2 files of {notes} cannot be read: secret.md, sub/b.md"
    assert texts(folder).keys() == {"a", "sub/b"}, "the last version that could be read"
    for name in ("closed", "sub"):
        (notes / name).chmod(0o700)


def test_an_index_belongs_to_one_folder(folder: Folder, notes: Path, tmp_path: Path) -> None:
    folder.commit()
    other = write_files(tmp_path / "other", {"o.md": "# O\n"})
    with pytest.raises(RepositoryError, match="holds the index of the folder"):
        Folder(other, folder.data_dir).commit()
    moved = notes.rename(tmp_path / "moved")
    Folder(moved, folder.data_dir).commit()
    assert len(texts(folder)) == 2, "the folder was moved"
    (tmp_path / "wiki").mkdir()
    (tmp_path / "wiki" / "repository.json").write_text("{}")
    with pytest.raises(RepositoryError, match="holds the index of a repository"):
        Folder(moved, tmp_path / "wiki").commit()


def test_the_index_of_a_folder_is_never_in_it(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RepositoryError, match="is inside the folder"):
        Folder(notes, notes / "index")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    (tmp_path / "b").mkdir()
    same_name = tmp_path / "b" / "notes"
    places = {Folder(each).data_dir for each in (notes, same_name)}
    assert len(places) == 2
    assert {place.parent for place in places} == {tmp_path / "home" / "otterwiki-semantic"}
