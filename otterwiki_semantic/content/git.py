"""The wiki's git repository: what HEAD is, which pages it holds, and what they say. Reads objects only, never the work tree."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.records import Commit

_PAGE = b".md"
_REGULAR_FILE = b"100"
_TIMEOUT_SECONDS = 120
_LINE_BYTES = 4096
_TO_MAKE_ONE = "; to make it one, there: git init && git add -A && git commit -m pages"
_OTHER_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE")
"""Set in a git hook, these would lead git to another repository than the one asked about."""
_OTHER_PATHSPECS = ("GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS")


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page in a commit: its path without ``.md``, the id of its content, and its size in bytes."""

    path: str
    blob: str
    size: int


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit: its time in seconds since 1970, its parents, and the files that it changed."""

    time: int
    name: str
    parents: list[str]
    names: list[bytes]


class Repository:
    """Git objects of one repository, bare or with a work tree.

    Errors: `RepositoryError` when git is missing, the directory is no repository, or an object cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        unwanted = {*_OTHER_REPOSITORY, *_OTHER_PATHSPECS}
        inherited = {name: value for name, value in os.environ.items() if name not in unwanted}
        self._environment = {
            **inherited,
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",  # what a commit's name stands for must not change
        }

    @cached_property
    def _directories(self) -> tuple[Path, Path]:
        """Where git keeps HEAD, and where the branches; asked for when needed: a repository may be there only later."""
        own, common = self._git("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir").splitlines()
        return Path(os.fsdecode(own)), Path(os.fsdecode(common))

    @property
    def root(self) -> Path:
        """The directory the repository is known by: the top of the work tree, or a bare repository itself."""
        top = self._run("rev-parse", "--show-toplevel")
        if top.returncode == 0:
            return Path(os.fsdecode(top.stdout.removesuffix(b"\n")))
        if self._git("rev-parse", "--is-bare-repository").strip() == b"true":
            return self._directories[0]
        raise RepositoryError(f"{self.directory} is the inside of a repository; name the directory that holds .git")

    def head(self) -> str | None:
        """Give the commit that HEAD is; None in a repository without a commit.

        Reads the small files git keeps it in, as every search asks for it; asks git when the branch is kept otherwise.
        """
        own, common = self._directories
        try:
            head = _read_small(f"{own}/HEAD")
            if head.startswith("ref: "):
                head = _commit_of(head.removeprefix("ref: "), common)
            if len(head) in {40, 64} and int(head, 16) >= 0:
                return head
        except (OSError, ValueError):
            pass
        return self._ask_for_head()

    def _ask_for_head(self) -> str | None:
        answer = self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if answer.returncode == 0:
            return answer.stdout.decode("ascii").strip()
        if self._run("symbolic-ref", "--quiet", "HEAD").returncode == 0 and not answer.stderr.strip():
            return None
        raise RepositoryError(f"git cannot read HEAD of {self.directory}: {_message(answer.stderr)}")

    def pages(self, commit: str) -> dict[str, PageFile]:
        """Give the pages of a commit by path: see `blobs`."""
        return {file.path: file for file in self.page_files(self.page_blobs(commit))}

    def page_blobs(self, commit: str) -> dict[str, str]:
        r"""Give the id of each page's content in a commit, by path. Symbolic links and submodules are no pages.

        A name that is not UTF-8 is shown with its odd bytes as ``\\xNN``.
        """
        found: dict[str, str] = {}
        for entry in self._git("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
            facts, _, name = entry.partition(b"\t")
            if facts.startswith(_REGULAR_FILE) and (path := _page(name)) is not None:
                found[path] = facts.rpartition(b" ")[2].decode("ascii")
        return found

    def page_files(self, blobs: Mapping[str, str]) -> list[PageFile]:
        """Give pages with the sizes of their contents, which git has to look up one by one."""
        asked = "".join(f"{blob}\n" for blob in blobs.values()).encode("ascii")
        sizes = self._git("cat-file", "--batch-check=%(objectsize)", given=asked).splitlines() if blobs else []
        try:
            return [PageFile(path, blob, int(size)) for (path, blob), size in zip(blobs.items(), sizes, strict=True)]
        except ValueError:
            raise RepositoryError(f"git lacks objects of {self.directory}; try: git fsck") from None

    def last_changed(self, commit: str, since: str | None = None) -> dict[str, int]:
        """Give when each page was last changed up to a commit, in seconds since 1970: the time of its last commit.

        With `since`, only what was changed after that commit; but everything if there are merges among the commits since then,
        or it is no ancestor of theirs: then they alone cannot tell.
        """
        if since is not None and (log := self._log(f"{since}..{commit}")) is not None and _is_straight(log, since, commit):
            return _newest(log)
        log = self._log(commit, "--", ":(top)*.md")
        if log is None:
            raise RepositoryError(f"git cannot read the history of {self.directory}; try: git fsck")
        return _newest(log)

    def _log(self, *span: str) -> list[_Commit] | None:
        """Give commits, newest first; None if git knows no such span, or cannot read it."""
        shown = ("--format=%x00//%ct %H %P", "--encoding=UTF-8", "--name-only", "-c", "-z", "--no-renames", "--no-relative")
        answer = self._run("-c", "log.showRoot=true", "log", *shown, *span, timeout=None)
        if answer.returncode:
            return None
        commits: list[_Commit] = []
        before = b""
        for field in answer.stdout.split(b"\0"):  # two slashes and what is known of the commit, which begin no path; then paths
            if field.startswith(b"//"):
                time, name, *parents = field[2:].split()
                commits.append(_Commit(int(time), name.decode("ascii"), [parent.decode("ascii") for parent in parents], []))
            elif field:
                commits[-1].names.append(field.removeprefix(b"\n") if before.startswith(b"//") else field)
            before = field
        return commits

    def commits_between(self, since: str | None, commit: str, most: int) -> int | None:
        """Count the commits that lead to one and not to another one, `most` at most; None if git cannot.

        Of all that lead to it, if there is no other one, or git does not know it any more.
        """
        for span in ([commit, f"^{since}"] if since else [commit], [commit]):
            answer = self._run("rev-list", "--count", f"--max-count={most}", "--end-of-options", *span)
            if answer.returncode == 0:
                return int(answer.stdout)
        return None

    def changes(self, since: str, commit: str) -> tuple[dict[str, str], list[str]] | None:
        """Give the ids of the pages of a commit that differ from those of another one, and the pages that are gone.

        None if git cannot compare them: one may have been collected as garbage. None, too, if a name among them is not UTF-8,
        since two such can be shown as one.
        """
        answer = self._run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-relative", since, commit)
        if answer.returncode:
            return None
        changed: dict[str, str] = {}
        gone: list[str] = []
        fields = answer.stdout.split(b"\0")
        for facts, name in zip(fields[::2], fields[1::2], strict=False):
            if (path := _page(name)) is None:
                continue
            if "\\x" in path:
                return None
            mode_before, mode, blob_before, blob, _ = facts.removeprefix(b":").split()
            was_page, is_page = mode_before.startswith(_REGULAR_FILE), mode.startswith(_REGULAR_FILE)
            if is_page and not (was_page and blob == blob_before):
                changed[path] = blob.decode("ascii")
            elif was_page and not is_page:
                gone.append(path)
        return changed, sorted(gone)

    def resolve_commit(self, revision: str) -> str | None:
        """Give the commit with a name or the beginning of one, in hexadecimal; None if there is none, or several begin so."""
        answer = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        commit = answer.stdout.decode("ascii").strip()
        return commit if commit.startswith(revision.lower()) and commit else None  # else a branch has that name

    def page_blob(self, commit: str, path: str) -> str | None:
        """Give the id of a page's content in a commit; None if there is no such page, or its name is not UTF-8."""
        answer = self._run("ls-tree", "-z", "--full-tree", commit, "--", f"{path}{_PAGE.decode()}").stdout  # none: outside
        facts, _, name = answer.partition(b"\0")[0].partition(b"\t")
        is_page = facts.startswith(_REGULAR_FILE) and _page(name) == path
        return facts.rpartition(b" ")[2].decode("ascii") if is_page else None

    def last_commit(self, commit: str, path: str) -> Commit | None:
        """Give the last commit up to another one that changed a page; None if its name is not UTF-8."""
        shown = "--format=%H%x00%an%x00%cI%x00%B"
        name = f":(top,literal){path}{_PAGE.decode()}"
        answer = self._git("log", "-1", shown, "--encoding=UTF-8", commit, "--", name).decode("utf-8", errors="replace")
        revision, author, date, message = (answer.split("\0", 3) + [""] * 4)[:4]
        return Commit(revision, author, date, message.strip()) if revision else None

    def read_blobs(self, blobs: Iterable[str]) -> Iterator[bytes]:
        """Give the content of each object, in order, through one git process."""
        command = ["git", "-C", str(self.directory), "cat-file", "--batch"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self._environment
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for blob in blobs:
                process.stdin.write(blob.encode("ascii") + b"\n")
                process.stdin.flush()
                header = process.stdout.readline().split()
                if len(header) != 3 or header[1] != b"blob":
                    raise RepositoryError(f"git cannot read object {blob} of {self.directory}; try: git fsck")
                content = process.stdout.read(int(header[2]))
                process.stdout.read(1)
                yield content
            process.stdin.close()

    def _git(self, *arguments: str, given: bytes | None = None) -> bytes:
        answer = self._run(*arguments, given=given)
        if answer.returncode:
            reason = _message(answer.stderr)
            cure = _TO_MAKE_ONE if "not a git repository" in reason else ""
            raise RepositoryError(f"git cannot read the repository {self.directory}: {reason}{cure}")
        return answer.stdout

    def _run(
        self, *arguments: str, given: bytes | None = None, timeout: float | None = _TIMEOUT_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self.directory), *arguments]
        try:
            return subprocess.run(
                command, input=given, capture_output=True, env=self._environment, timeout=timeout, check=False
            )
        except FileNotFoundError:
            raise RepositoryError("git is not installed, or not on the PATH of this process") from None
        except subprocess.TimeoutExpired:
            raise RepositoryError(f"git did not answer within {timeout} s: {' '.join(command)}") from None


def _read_small(path: str) -> str:
    """Give the line that a file holds, in a quarter of the time that a file object takes."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _LINE_BYTES).decode("ascii").strip()
    finally:
        os.close(file)


def _commit_of(branch: str, common: Path) -> str:
    """Give the commit of a branch, which has a file of its own, or a line in the file of those that `git gc` packed."""
    try:
        return _read_small(f"{common}/{branch}")
    except FileNotFoundError:
        lines = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.partition(" ")[0] for line in lines if line.endswith(f" {branch}")), "")


def _page(name: bytes) -> str | None:
    """Give the path of the page that a file is; None if it is none. A file named ``.md`` has no name as a page."""
    path = name.removesuffix(_PAGE).decode("utf-8", errors="backslashreplace")
    return path if name.endswith(_PAGE) and path and not path.endswith("/") else None


def _is_straight(log: Sequence[_Commit], since: str, commit: str) -> bool:
    """Whether these commits of one parent each lead from one commit to the other."""
    for each in log:
        if each.name != commit or len(each.parents) != 1:
            return False
        commit = each.parents[0]
    return commit == since


def _newest(log: Iterable[_Commit]) -> dict[str, int]:
    """Give the time of the last of these commits that changed a page."""
    times: dict[str, int] = {}
    for commit in log:
        for name in commit.names:
            if (path := _page(name)) is not None:
                times.setdefault(path, commit.time)
    return times


def _message(stderr: bytes) -> str:
    return stderr.decode("utf-8", errors="replace").strip() or "no reason given"
