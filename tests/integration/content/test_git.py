"""Reading repositories: every way in which git stores HEAD, pages and history, compared with git itself."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.settings import Settings
from tests.support.live_wiki import commit, git, head_of, make_repository


def test_pages_of_a_commit_and_what_they_say(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "A", "d/b c.md": "ß", "d/picture.png": "x", "notes.txt": "x"})
    repository = Repository(tmp_path)
    head = repository.head()
    assert head == head_of(tmp_path)
    assert head is not None
    pages = repository.pages(head)
    assert sorted(pages) == ["a", "d/b c"]
    assert pages["d/b c"].size == 2
    assert list(repository.read_blobs(page.blob for page in pages.values())) == [b"A", "ß".encode()]


def test_head_is_found_in_every_place_git_keeps_it(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "A"})
    repository = Repository(tmp_path)
    assert repository.head() == head_of(tmp_path)
    git(tmp_path, "pack-refs", "--all")
    assert not (tmp_path / ".git" / "refs" / "heads" / "main").exists()
    assert repository.head() == head_of(tmp_path)
    git(tmp_path, "checkout", "-q", "--detach")
    assert repository.head() == head_of(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "other/branch")
    head = commit(tmp_path, {"b.md": "B"})
    assert repository.head() == head


def test_worktrees_and_bare_clones_are_repositories(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {"a.md": "A"})
    git(origin, "worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))
    commit(tmp_path / "tree", {"b.md": "B"})
    assert Repository(tmp_path / "tree").head() == head_of(tmp_path / "tree") != head_of(origin)
    git(origin, "clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    assert Repository(tmp_path / "bare.git").head() == head_of(origin)


def test_a_branch_that_git_packed_is_read_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a clone or `git gc` every search would otherwise start a process."""
    repository = Repository(make_repository(tmp_path, {"a.md": "one\n"}))
    git(tmp_path, "branch", "feature/main")
    first = commit(tmp_path, {"a.md": "two\n"})
    git(tmp_path, "pack-refs", "--all")
    assert repository.head() == first
    monkeypatch.setattr(Repository, "_run", lambda *_: pytest.fail("git was asked"))
    assert repository.head() == first
    second = commit(tmp_path, {"a.md": "three\n"})
    assert repository.head() == second, "a file of its own counts before the packed line"


def test_a_repository_without_a_commit_has_no_head(tmp_path: Path) -> None:
    make_repository(tmp_path, {})
    assert Repository(tmp_path).head() is None


@pytest.mark.parametrize("lose", [("checkout", "-q", "--orphan", "other"), ("symbolic-ref", "HEAD", "refs/heads/other")])
def test_a_branch_without_a_commit_has_no_head(tmp_path: Path, lose: tuple[str, ...]) -> None:
    git(make_repository(tmp_path, {"a.md": "one"}), *lose)
    assert Repository(tmp_path).head() is None


def test_a_name_that_is_not_utf8_is_shown_with_its_bytes(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "A"})
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md")).write_text("coffee")
    head = commit(tmp_path, {})
    assert sorted(Repository(tmp_path).pages(head)) == ["a", "caf\\xe9"]


def test_the_error_names_a_directory_that_is_not_a_repository(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match=str(tmp_path)):
        Repository(tmp_path).head()


def test_a_repository_that_is_created_later_is_found(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    with pytest.raises(RepositoryError):
        repository.head()
    make_repository(tmp_path, {"a.md": "A"})
    assert list(repository.pages(repository.head() or "")) == ["a"]


def test_the_error_names_a_missing_object(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "A"})
    with pytest.raises(RepositoryError, match="0000000000000000000000000000000000000000"):
        list(Repository(tmp_path).read_blobs(["0" * 40]))


def test_the_error_says_that_git_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_repository(tmp_path, {})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RepositoryError, match="git is not installed"):
        Repository(tmp_path).head()


def updated(place: Path, since: str | None = None) -> dict[str, int]:
    repository = Repository(place)
    head = repository.head()
    assert head is not None
    recent = repository.changes_since(since, head) if since else None
    return {path: change.time for path, change in (repository.last_changes(head) if recent is None else recent).items()}


def test_a_page_was_last_changed_by_the_last_commit_that_touched_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def commit_at(second: int, files: dict[str, str | bytes | None]) -> str:
        monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{1_600_000_000 + second} +0200")
        return commit(tmp_path, files)

    make_repository(tmp_path, {})
    git(tmp_path, "config", "log.showRoot", "false")
    git(tmp_path, "config", "diff.renames", "copies")
    commit_at(1, {"a.md": "A", "dir/ü b.md": "B", "picture.png": "x"})
    first = commit_at(2, {"a.md": "A2"})
    assert updated(tmp_path) == {"a": 1_600_000_002, "dir/ü b": 1_600_000_001}
    commit_at(3, {"c.md": "C"})
    commit_at(4, {"c.md": None, "d.md": "C"})
    assert updated(tmp_path)["d"] == 1_600_000_004
    assert updated(tmp_path, since=first) == {"c": 1_600_000_004, "d": 1_600_000_004}


def test_a_page_merged_from_both_sides_was_changed_by_the_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000001 +0000")
    make_repository(tmp_path, {"a.md": "".join(lines), "b.md": "B"})
    git(tmp_path, "checkout", "-q", "-b", "side")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000002 +0000")
    commit(tmp_path, {"a.md": "".join(["side\n", *lines[1:]]), "b.md": "from the side"})
    git(tmp_path, "checkout", "-q", "main")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000003 +0000")
    here = commit(tmp_path, {"a.md": "".join([*lines[:-1], "main\n"])})
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000004 +0000")
    git(tmp_path, "merge", "-q", "--no-edit", "side")
    assert updated(tmp_path) == {"a": 1_600_000_004, "b": 1_600_000_002}
    assert updated(tmp_path, since=here) == {"a": 1_600_000_004, "b": 1_600_000_002}


def test_after_a_forced_push_the_whole_history_is_read(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "A"})
    gone = commit(tmp_path, {"b.md": "B"})
    git(tmp_path, "reset", "-q", "--hard", "HEAD~1")
    commit(tmp_path, {"c.md": "C"})
    assert set(updated(tmp_path, since=gone)) == {"a", "c"}
    assert set(updated(tmp_path, since="0" * 40)) == {"a", "c"}


def test_pages_with_odd_names_have_their_times(tmp_path: Path) -> None:
    names = ["a\x01b", "line\nend", "\nfirst", "//x", "ü ü"]
    make_repository(tmp_path, {f"{name.strip('/')}.md": "x" for name in names})
    git(tmp_path, "config", "i18n.logOutputEncoding", "UTF-16")
    repository = Repository(tmp_path)
    head = repository.head()
    assert head is not None
    assert set(repository.last_changes(head)) == set(repository.pages(head)) == {name.strip("/") for name in names}


def test_a_merge_that_keeps_our_side_leaves_the_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000001 +0000")
    make_repository(tmp_path, {"a.md": "A"})
    git(tmp_path, "checkout", "-q", "-b", "side")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000005 +0000")
    commit(tmp_path, {"a.md": "side"})
    git(tmp_path, "checkout", "-q", "main")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000010 +0000")
    here = commit(tmp_path, {"a.md": "main"})
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@1600000011 +0000")
    git(tmp_path, "merge", "-q", "--no-edit", "-s", "ours", "side")
    assert updated(tmp_path, since=here) == updated(tmp_path) == {"a": 1_600_000_010}


def test_changes_equal_a_comparison_of_every_page(tmp_path: Path) -> None:
    first_files = {"a.md": "A", "d/b.md": "B", "gone.md": "G", "d/moves.md": "M", "stays.md": "S", "script.md": "x"}
    make_repository(tmp_path, first_files)
    (tmp_path / "was-a-link.md").symlink_to("a.md")
    git(tmp_path, "add", "-A")
    git(tmp_path, "config", "diff.renames", "copies")
    first = commit(tmp_path, {"notes.txt": "n"})
    (tmp_path / "was-a-link.md").unlink()
    (tmp_path / "script.md").chmod(0o755)
    (tmp_path / "stays.md").unlink()
    (tmp_path / "stays.md").symlink_to("a.md")
    written = {"a.md": "A2", "moved ü.md": "M", "was-a-link.md": "W", "d/.md": "no page", "notes.txt": "m", "x\ny.md": "new"}
    last = commit(tmp_path, {**written, "gone.md": None, "d/moves.md": None})
    repository = Repository(tmp_path)
    for since, until in ((first, last), (last, first), (last, last)):
        before, after = repository.page_blobs(since), repository.page_blobs(until)
        changed = {path: blob for path, blob in after.items() if before.get(path) != blob}
        assert repository.changes(since, until) == (changed, sorted(before.keys() - after.keys()))
    forward = repository.changes(first, last)
    assert forward is not None
    assert set(forward[0]) == {"a", "moved ü", "was-a-link", "x\ny"}
    assert forward[1] == ["d/moves", "gone", "stays"]


_NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "ü"])
_TREES = st.lists(st.dictionaries(_NAMES, st.sampled_from(["one", "two", "three"]), max_size=5), min_size=2, max_size=4)


@settings(max_examples=8)
@given(trees=_TREES, exclude=st.sampled_from([(), ("d/*.md",), ("d", "ü.md"), ("**/a.md",)]))
def test_changes_between_any_two_commits_equal_a_comparison_of_every_page(
    tmp_path_factory: pytest.TempPathFactory, trees: list[dict[str, str]], exclude: tuple[str, ...]
) -> None:
    place = make_repository(tmp_path_factory.mktemp("trees"), {})
    known: dict[str, str] = {}
    commits = []
    for tree in trees:
        files: dict[str, str | bytes | None] = {f"{name}.md": None for name in known.keys() - tree.keys()}
        commits.append(commit(place, files | {f"{name}.md": text for name, text in tree.items()}))
        known = tree
    repository = Repository(place, exclude)
    for since, until in permutations(commits, 2):
        before, after = repository.page_blobs(since), repository.page_blobs(until)
        changed = {path: blob for path, blob in after.items() if before.get(path) != blob}
        assert repository.changes(since, until) == (changed, sorted(before.keys() - after.keys()))


EXCLUDABLE = ("drafts.md", "drafts/a.md", "drafts/deep/b.md", "Drafts/c.md", "my notes/d.md", "[x].md", "ü.md", "drafts/a.png")

EXCLUDED: dict[tuple[str, ...], set[str]] = {
    ("drafts/**",): {"drafts/a", "drafts/deep/b"},
    ("drafts/*.md",): {"drafts/a"},
    ("drafts",): {"drafts/a", "drafts/deep/b"},
    ("drafts/",): {"drafts/a", "drafts/deep/b"},
    ("drafts.md",): {"drafts"},
    ("*.md",): {"drafts", "[x]", "ü"},
    ("**/*.md",): {name.removesuffix(".md") for name in EXCLUDABLE if name.endswith(".md")},
    ("**/deep/**", "my notes/?.md"): {"drafts/deep/b", "my notes/d"},
    ("[dD]rafts/[a-c].md",): {"drafts/a", "Drafts/c"},
    ("[x].md", "ü.md"): {"[x]", "ü"},
    ("nothing/**",): set(),
}


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_pages_are_excluded_as_git_matches_paths(tmp_path: Path, kind: str) -> None:
    git(tmp_path, "init", "-q", f"--object-format={kind}")
    head = commit(tmp_path, dict.fromkeys(EXCLUDABLE, "text"))
    (tmp_path / "drafts" / "link.md").symlink_to("a.md")
    head = commit(tmp_path, {})
    everything = Repository(tmp_path).page_blobs(head)
    for patterns, excluded in EXCLUDED.items():
        repository = Repository(tmp_path, patterns)
        assert repository.head() == head
        assert repository.excluded_pages(head) == excluded
        assert repository.page_blobs(head).keys() == everything.keys() - excluded
        for path in everything:
            assert (repository.page_blob(head, path) is None) == (path in excluded)


def test_patterns_are_those_of_the_whole_repository_wherever_git_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = commit(make_repository(tmp_path, {}), {"drafts/a.md": "A", "b.md": "B"})
    monkeypatch.setenv("GIT_LITERAL_PATHSPECS", "1")
    assert Repository(tmp_path / "drafts", ("drafts",)).page_blobs(head).keys() == {"b"}


def test_commits_that_git_cannot_compare_have_no_changes(tmp_path: Path) -> None:
    make_repository(tmp_path, {"a.md": "A"})
    first = head_of(tmp_path)
    repository = Repository(tmp_path)
    assert repository.changes("0" * 40, first) is None
    (tmp_path / os.fsdecode(b"odd\xff.md")).write_text("x")
    assert repository.changes(first, commit(tmp_path, {})) is None, "another page may be shown by the same name"


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "repository", {"a.md": "A", "b.md": "B"})
    first = git(place, "rev-parse", "HEAD")
    commit(place, {"a.md": "AA", ".gitattributes": "*.md diff=evil filter=evil\n"})
    trap, trapped = tmp_path / "trap", tmp_path / "trapped"
    trap.write_text(f"#!/bin/sh\necho $0 $@ >> {trapped}\ncat\n")
    trap.chmod(0o755)
    names = (
        *("core.fsmonitor", "core.pager", "pager.log", "pager.diff-tree", "core.sshCommand", "core.gitProxy", "core.askPass"),
        *("core.editor", "credential.helper", "diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean"),
        *("filter.evil.smudge", "filter.evil.process", "gpg.program", "gpg.ssh.program", "core.alternateRefsCommand"),
        *("uploadpack.packObjectsHook", "merge.evil.driver", "sequence.editor", "alias.log", "alias.cat-file"),
    )
    for name in names:
        git(place, "config", name, str(trap))
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "post-checkout"):
        (hooks / name).symlink_to(trap)
    git(place, "config", "core.hooksPath", str(hooks))
    git(place, "config", "log.showSignature", "true")
    trapped.unlink(missing_ok=True)

    repository = Repository(place)
    head = repository.head()
    assert head
    assert set(repository.pages(head)) == {"a", "b"}
    assert repository.changes(first, head) is not None
    assert set(repository.last_changes(head)) == {*(repository.changes_since(first, head) or ()), "b"}
    assert repository.commits(head, "a", 1)
    assert list(repository.read_blobs(repository.page_blobs(head).values())) == [b"AA", b"B"]
    assert repository.root == place
    assert (repository.root_commit(), repository.resolve_commit(first[:8])) == (first, first)
    assert repository.commits_between(first, head, 10) == 1
    assert not trapped.exists(), trapped.read_text()


def test_a_wiki_with_a_page_called_notation_is_not_a_folder(tmp_path: Path) -> None:
    files = dict.fromkeys(("notation.md", "notation/run.py", "elsewhere/run.py"), "x")
    repository = Repository.of(Settings(make_repository(tmp_path / "wiki", files), tmp_path / "index"))
    assert repository.attachment_blobs("HEAD").keys() == {"notation/run.py"}


def test_a_blob_is_read_up_to_a_limit(tmp_path: Path) -> None:
    place = make_repository(tmp_path / "repository", {"a.md": "A" * 3_000_000, "b.md": "B"})
    repository = Repository(place)
    blobs = repository.page_blobs(git(place, "rev-parse", "HEAD"))
    assert list(repository.read_blobs(blobs.values(), 5)) == [b"AAAAA", b"B"]
