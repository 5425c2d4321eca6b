"""Read a wiki's git repository: HEAD, its pages and their history. Reads objects only, never the work tree."""

from __future__ import annotations

import os
import posixpath
import subprocess
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from otterwiki_semantic.content.attachments.kinds import NO_ATTACHMENTS, AttachmentRule, attachment_rule
from otterwiki_semantic.content.attachments.texts import AttachmentText, AttachmentTexts
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.files import locked, make_private, write_atomically
from otterwiki_semantic.core.records import Commit, FileKind, LastChange, Notation
from otterwiki_semantic.core.settings import Settings

NOTATION = "notation"
"""A file in the private repository of a folder, or in the data directory of a wiki."""
_PAGE = b".md"
_REGULAR_FILE = b"100"
_TIMEOUT_SECONDS = 120
_LINE_BYTES = 4096
_PIECE_BYTES = 1 << 20
_LOCK_SECONDS = 5.0
_CACHED_COMMITS = 4
_MAX_FOLDERS = 100
"""Folders of new and removed pages to search for attached files; above this number, all files are compared."""
_DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-relative")
_HINT_TO_INIT = "; to make it one, there: git init && git add -A && git commit -m pages; or use --folder"
_UNWANTED_VARIABLES = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_NAMESPACE"),
    *("GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
)
"""In a git hook, these variables would make git use a different repository, or read paths differently."""


_SAFE_SETTINGS = (
    *("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.pager=cat", "core.sshCommand=false", "core.gitProxy="),
    *("core.askPass=", "core.alternateRefsCommand=", "credential.helper=", "diff.external=", "log.showSignature=false"),
    *("gpg.program=false", "gpg.ssh.program=false", "gpg.x509.program=false", "protocol.allow=never"),
    "safe.bareRepository=all",  # the directory is given, not discovered
)
"""A repository's configuration can name programs for git to run. These settings prevent that."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A page in a commit."""

    path: str
    """Without ``.md`` for a page; with the extension for an attached file."""
    blob: str
    size: int
    kind: FileKind | None = None
    """None for a page."""


@dataclass(frozen=True, slots=True)
class _LoggedCommit:
    id: str
    parents: list[str]
    time: int
    """In seconds since 1970."""
    files: list[bytes]


class Repository:
    """A git repository, bare or with a work tree. Files that match one of the globs `exclude` are not pages.

    `attachments` selects the files to index that are attached to pages; `texts` has their Markdown.

    Errors: `RepositoryError` if git is missing, the directory is not a repository, or an object cannot be read.
    """

    def __init__(
        self,
        directory: Path,
        exclude: Sequence[str] = (),
        attachments: AttachmentRule = NO_ATTACHMENTS,
        texts: AttachmentTexts | None = None,
        data_dir: Path | None = None,
    ) -> None:
        self.directory = directory
        self._data_dir = data_dir
        self.attachments, self.texts = attachments, texts
        self.exclude = tuple(exclude)
        self._inherited: tuple[int, ...] = ()
        self._excluded = lru_cache(_CACHED_COMMITS)(partial(self.matching_pages, patterns=self.exclude))
        self._files = lru_cache(1)(self._list_files)
        self._command = ("git", "-C", str(directory), *(part for setting in _SAFE_SETTINGS for part in ("-c", setting)))
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in _UNWANTED_VARIABLES},
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",  # a commit's content must not change
        }

    @classmethod
    def of(cls, settings: Settings) -> Repository:
        """Return the repository for these settings."""
        rule = attachment_rule(settings, is_folder=not read_notation(settings.repository).is_wiki)
        texts = AttachmentTexts(settings.data_dir, rule.ocr)
        return cls(settings.repository, settings.exclude, rule, texts, settings.data_dir)

    @cached_property
    def _directories(self) -> tuple[Path, Path]:
        """The directories of HEAD and of the branches. Looked up on first use, because the repository may be created later."""
        own, common = self._git("rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir").splitlines()
        return Path(os.fsdecode(own)), Path(os.fsdecode(common))

    @property
    def notation(self) -> Notation:
        """The syntax of links: that of notes if the repository tracks a folder, otherwise as the wiki's preferences say."""
        return read_notation(*filter(None, (self._directories[0], self._data_dir)))

    @property
    def root(self) -> Path:
        """The top of the work tree, or the directory of a bare repository."""
        top = self._run("rev-parse", "--show-toplevel")
        if top.returncode == 0:
            return Path(os.fsdecode(top.stdout.removesuffix(b"\n")))
        if self._git("rev-parse", "--is-bare-repository").strip() == b"true":
            return self._directories[0]
        raise RepositoryError(f"{self.directory} is the inside of a repository; name the directory that holds .git")

    def head(self) -> str | None:
        """Return HEAD's commit, or None without commits; read from git's own files, because every search needs it."""
        own, common = self._directories
        try:
            head = _read_line(f"{own}/HEAD")
            if head.startswith("ref: "):
                head = _branch_head(head.removeprefix("ref: "), common)
            if len(head) in {40, 64} and int(head, 16) >= 0:
                return head
        except (OSError, ValueError):
            pass
        answer = self._run("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if answer.returncode == 0:
            return answer.stdout.decode("ascii").strip()
        if self._run("symbolic-ref", "--quiet", "HEAD").returncode == 0 and not answer.stderr.strip():
            return None
        raise RepositoryError(f"git cannot read HEAD of {self.directory}: {_message(answer.stderr)}")

    def root_commit(self) -> str | None:
        """Return the first commit in HEAD's history, or one of several; None without commits."""
        head = self.head()
        return self._git("rev-list", "--max-parents=0", "--max-count=1", head).decode("ascii").strip() if head else None

    def pages(self, commit: str) -> dict[str, PageFile]:
        """Return the pages of a commit by path."""
        return {file.path: file for file in self.page_files(self.page_blobs(commit))}

    def page_blobs(self, commit: str) -> dict[str, str]:
        r"""Return the blob ids of a commit's pages by path. Symbolic links and submodules are not pages.

        In a path that is not UTF-8 the invalid bytes are replaced by ``\\xNN``.
        """
        entries = _page_entries(self._files(commit))
        excluded = self.excluded_pages(commit)
        return {path: blob for path, blob in entries if path not in excluded}

    def attachment_blobs(self, commit: str, pages: Container[str] | None = None) -> dict[str, str]:
        """Return the blob ids of a commit's indexed attached files by path; `pages` are the paths of its pages, if known."""
        if not self.attachments.kinds:
            return {}
        names = _regular_files(self._files(commit))
        entries = {path: blob for name, blob in names if self.attachments.kind_of(path := _decoded(name))}
        if not entries:
            return {}
        pages = self.page_blobs(commit) if pages is None else pages
        excluded = set(map(_decoded, self._matching_names(commit, self.exclude)))
        globs = self.attachments.globs
        wanted = set(map(_decoded, self._matching_names(commit, globs))) if globs else entries.keys()
        attached = {path for path in entries if self.attachments.is_folder or path.rpartition("/")[0] in pages}
        attached &= wanted - excluded
        return {path: blob for path, blob in entries.items() if path in attached and path not in pages}

    def _list_files(self, commit: str) -> bytes:
        return self._git("ls-tree", "-r", "-z", "--full-tree", commit)

    def unread_attachments(self, commit: str) -> dict[str, int]:
        """Return how many attached files in a commit would be indexed with their library installed, by extension."""
        rule = replace(self.attachments, kinds=self.attachments.lacking)
        paths = Repository(self.directory, self.exclude, rule).attachment_blobs(commit)
        return dict(Counter(posixpath.splitext(path)[1][1:].lower() for path in sorted(paths)))

    def file_text(self, blob: str, kind: FileKind) -> AttachmentText | None:
        """Return the Markdown of an attached file, or None if it has not been read yet."""
        return self.texts.get(blob, kind) if self.texts else None

    def file_names(self, commit: str) -> list[str]:
        """Return the paths of all files in a commit, pages and others."""
        listing = self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        return listing.decode("utf-8", errors="backslashreplace").split("\0")[:-1]

    def excluded_pages(self, commit: str) -> frozenset[str]:
        """Return the paths of the files in a commit that are not pages only because they are excluded."""
        return self._excluded(commit) if self.exclude else frozenset()

    def is_excluded(self, path: str) -> bool:
        """Whether a page with this path is excluded, even if no commit contains it; git itself matches the globs."""
        if not self.exclude:
            return False
        with TemporaryDirectory() as place:
            index = {"GIT_INDEX_FILE": f"{place}/index"}
            empty = self._git("hash-object", "--stdin", stdin=b"").decode("ascii").strip()
            entry = f"100644 {empty}\t{path}.md\0".encode()
            self._git("update-index", "-z", "--add", "--index-info", stdin=entry, environment=index)
            globs = [f":(top,glob){pattern}" for pattern in self.exclude]
            return bool(self._git("ls-files", "-z", "--", *globs, environment=index))

    def matching_pages(self, commit: str, patterns: Sequence[str]) -> frozenset[str]:
        """Return the paths of files in a commit that match any of the globs, which git's ``ls-tree`` does not support."""
        return frozenset(path for name in self._matching_names(commit, patterns) if (path := _page_path(name)) is not None)

    def _matching_names(self, commit: str, patterns: Sequence[str]) -> Iterator[bytes]:
        globs = [f":(top,glob){pattern}" for pattern in patterns]
        difference = self._git(*_DIFF, self._empty_tree, commit, "--", *globs) if globs else b""
        return (each.name for each in _changed_files(difference) if each.is_file)

    @cached_property
    def _empty_tree(self) -> str:
        """The id of the empty tree, which depends on the repository's object format. Git knows it without storing it."""
        return self._git("hash-object", "-t", "tree", "--stdin", stdin=b"").decode("ascii").strip()

    def page_files(self, blobs: Mapping[str, str], attached: Container[str] = ()) -> list[PageFile]:
        """Return pages, and the `attached` files among them, with their sizes, which git looks up one by one."""
        ids = "".join(f"{blob}\n" for blob in blobs.values()).encode("ascii")
        sizes = self._git("cat-file", "--batch-check=%(objectsize)", stdin=ids).splitlines() if blobs else []
        try:
            return [
                PageFile(path, blob, int(size), self.attachments.kind_of(path) if path in attached else None)
                for (path, blob), size in zip(blobs.items(), sizes, strict=True)
            ]
        except ValueError:
            raise RepositoryError(f"git lacks objects of {self.directory}; try: git fsck") from None

    def last_changes(self, commit: str) -> dict[str, LastChange]:
        """Return the last change of each page and attached file up to a commit."""
        endings = {posixpath.splitext(path)[1] for path in self.attachment_blobs(commit)}
        log = self._log(commit, "--", ":(top)*.md", *(f":(top)*{ending}" for ending in sorted(endings)))
        if log is None:
            raise RepositoryError(f"git cannot read the history of {self.directory}; try: git fsck")
        return self._last_changes(log)

    def changes_since(self, since: str, commit: str) -> dict[str, LastChange] | None:
        """Return the last change of each page and file changed by commits after `since`; empty only if none differs.

        None if `since` is not an ancestor of `commit`, or if there was a merge since, which can bring in earlier changes.
        """
        log = self._log(f"{since}..{commit}")
        return self._last_changes(log) if log is not None and _is_straight(log, since, commit) else None

    def _last_changes(self, log: Iterable[_LoggedCommit]) -> dict[str, LastChange]:
        """Return the last change of each page and attached file in a log with the newest commit first."""
        changes: dict[str, LastChange] = {}
        for commit in log:
            for name in commit.files:
                path = _page_path(name)
                if path is None and self.attachments.kind_of(file := _decoded(name)):
                    path = file
                if path is not None:
                    changes.setdefault(path, LastChange(commit.time, commit.id))
        return changes

    def _log(self, *span: str) -> list[_LoggedCommit] | None:
        """Return commits, newest first; None if git does not know the span, or cannot read it."""
        options = ("--format=%x00//%ct %H %P", "--encoding=UTF-8", "--name-only", "-c", "-z", "--no-renames", "--no-relative")
        answer = self._run("-c", "log.showRoot=true", "log", *options, *span, timeout=None)
        if answer.returncode:
            return None
        commits: list[_LoggedCommit] = []
        for field in answer.stdout.split(b"\0"):
            if field.startswith(b"//"):  # no path begins so
                time, identity, *parents = field[2:].decode("ascii").split()
                commits.append(_LoggedCommit(identity, parents, int(time), []))
            elif field:
                files = commits[-1].files
                files.append(field if files else field.removeprefix(b"\n"))
        return commits

    def commits_between(self, since: str | None, commit: str, limit: int) -> int | None:
        """Count up to `limit` commits since another one, or all if git does not know that; None if git cannot."""
        for span in ([commit, f"^{since}"] if since else [commit], [commit]):
            answer = self._run("rev-list", "--count", f"--max-count={limit}", "--end-of-options", *span)
            if answer.returncode == 0:
                return int(answer.stdout)
        return None

    def changes(self, since: str, commit: str) -> tuple[dict[str, str], list[str]] | None:
        """Return the blob ids of pages added or changed since another commit, and the paths of removed pages.

        None if git cannot compare the commits (one may have been garbage-collected), or if a path is not UTF-8, because two
        such paths can look alike. Also None if attached files differ, or if files became attached or ceased to be.
        """
        others = [":(top)", *(f":(top,glob,exclude){pattern}" for pattern in self.exclude)]
        answer = self._run(*_DIFF, since, commit, "--", *others)
        if answer.returncode:
            return None
        changes = list(_changed_files(answer.stdout))
        if self.attachments.kinds and self._concern_attachments(changes, commit):
            return None
        pages = [(path, each) for each in changes if (path := _page_path(each.name)) is not None]
        changed = {path: each.blob for path, each in pages if each.is_file and not each.is_same}
        removed = sorted(path for path, each in pages if each.was_file and not each.is_file)
        return None if any("\\x" in path for path in (*changed, *removed)) else (changed, removed)

    def _concern_attachments(self, changes: Sequence[_FileChange], commit: str) -> bool:
        """Whether attached files have changed, or pages with a file's path, or pages with attachments came or went."""
        if any(self.attachments.kind_of(_decoded(each.name.removesuffix(_PAGE))) for each in changes):
            return True
        folders = [path for each in changes if each.was_file != each.is_file and (path := _page_path(each.name))]
        if not 0 < len(folders) <= _MAX_FOLDERS:
            return bool(folders)
        files = self._git(
            "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", *(f":(top,literal){path}/" for path in folders)
        )
        return any(self.attachments.kind_of(_decoded(name)) for name in files.split(b"\0"))

    def resolve_commit(self, revision: str) -> str | None:
        """Return the commit with this id or unique prefix, in hexadecimal; None if there is none."""
        answer = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        commit = answer.stdout.decode("ascii").strip()
        return commit if commit.startswith(revision.lower()) and commit else None  # otherwise a branch has this name

    def page_blob(self, commit: str, path: str) -> str | None:
        """Return the blob id of a page in a commit; None if the page does not exist, or its name is not UTF-8."""
        if path in self.excluded_pages(commit):
            return None
        name = f":(top,literal){path}{_PAGE.decode()}"
        listing = self._run("ls-tree", "-z", "--full-tree", commit, "--", name).stdout  # empty if outside
        return dict(_page_entries(listing)).get(path)

    def commits(self, commit: str, path: str, n: int, kind: FileKind | None = None) -> list[Commit]:
        """Return the last `n` commits up to `commit` that changed a page or a file of a kind, latest first."""
        name = f":(top,literal){path}{'' if kind else _PAGE.decode()}"
        answer = self._git("log", "-z", f"-{n}", "--format=%H%x00%an%x00%cI%x00%B", "--encoding=UTF-8", commit, "--", name)
        fields = iter(answer.decode("utf-8", errors="replace").split("\0"))
        return [
            Commit(revision, author, date, message.strip())
            for revision, author, date, message in zip(*[fields] * 4, strict=False)
        ]

    def read_blobs(self, blobs: Iterable[str], max_bytes: int | None = None) -> Iterator[bytes]:
        """Yield the content of each blob, or at most `max_bytes` of it, in order, from one git process."""
        command = [*self._command, "cat-file", "--batch"]
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
                size = int(header[2])
                content = process.stdout.read(size if max_bytes is None else min(size, max_bytes))
                rest = size - len(content) + 1
                while rest > 0 and (piece := process.stdout.read(min(rest, _PIECE_BYTES))):
                    rest -= len(piece)
                yield content
            process.stdin.close()

    def _git(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        timeout: float | None = _TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return git's output. Errors: `RepositoryError` if git fails."""
        answer = self._run(*arguments, stdin=stdin, timeout=timeout, environment=environment)
        if answer.returncode:
            reason = "; ".join(_message(answer.stderr).splitlines())
            hint = _HINT_TO_INIT if "not a git repository" in reason else ""
            raise RepositoryError(f"git cannot read the repository {self.directory}: {reason}{hint}")
        return answer.stdout

    def _run(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        timeout: float | None = _TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        command = [*self._command, *arguments]
        try:
            return subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                env=self._environment | dict(environment or {}),
                pass_fds=self._inherited,
                timeout=timeout,
                check=False,
            )
        except FileNotFoundError:
            raise RepositoryError("git is not installed, or not on the PATH of this process") from None
        except subprocess.TimeoutExpired:
            raise RepositoryError(f"git did not answer within {timeout} s: {' '.join(command)}") from None


def read_notation(*directories: Path) -> Notation:
    """Return the syntax of links that the first directory with such a file names, or that of a wiki by default."""
    for directory in directories:
        with suppress(OSError, ValueError):
            return Notation((directory / NOTATION).read_text(encoding="ascii"))
    return Notation.WIKI


def write_notation(directory: Path, notation: Notation) -> bool:
    """Write the file that names the syntax of links; return whether it has changed. Errors: `OSError`."""
    if read_notation(directory) is notation:
        return False
    make_private(directory)
    with locked(directory / f"{NOTATION}.lock", _LOCK_SECONDS):  # several workers of a wiki start at once
        write_atomically(directory / NOTATION, notation)
    return True


def _read_line(path: str) -> str:
    """Return the only line of a file, in a quarter of the time that a file object takes."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, _LINE_BYTES).decode("ascii").strip()
    finally:
        os.close(file)


def _branch_head(branch: str, common: Path) -> str:
    """Return the commit of a branch, from its own file or from the packed branches of `git gc`."""
    try:
        return _read_line(f"{common}/{branch}")
    except FileNotFoundError:
        lines = (common / "packed-refs").read_text(encoding="utf-8").splitlines()
        return next((line.partition(" ")[0] for line in lines if line.endswith(f" {branch}")), "")


def _page_path(name: bytes) -> str | None:
    """Return a file's path as a page, or None if it is not a page, such as a file named ``.md``."""
    path = _decoded(name.removesuffix(_PAGE))
    return path if name.endswith(_PAGE) and path and not path.endswith("/") else None


def _decoded(name: bytes) -> str:
    """Decode the name of a file; bytes that are not UTF-8 are escaped."""
    return name.decode("utf-8", errors="backslashreplace")


def _regular_files(listing: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the names and blob ids of regular files in ``ls-tree -z`` output; no symbolic links and submodules."""
    for entry in listing.split(b"\0"):
        mode_and_id, _, name = entry.partition(b"\t")
        if mode_and_id.startswith(_REGULAR_FILE):
            yield name, mode_and_id.rpartition(b" ")[2].decode("ascii")


def _page_entries(listing: bytes) -> Iterator[tuple[str, str]]:
    return ((path, blob) for name, blob in _regular_files(listing) if (path := _page_path(name)) is not None)


@dataclass(frozen=True, slots=True)
class _FileChange:
    name: bytes
    blob: str
    was_file: bool
    is_file: bool
    is_same: bool


def _changed_files(difference: bytes) -> Iterator[_FileChange]:
    fields = difference.split(b"\0")
    for modes_and_ids, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, mode, old_blob, blob, _ = modes_and_ids.removeprefix(b":").split()
        was_file, is_file = old_mode.startswith(_REGULAR_FILE), mode.startswith(_REGULAR_FILE)
        yield _FileChange(name, blob.decode("ascii"), was_file, is_file, is_file and was_file and blob == old_blob)


def _is_straight(log: Sequence[_LoggedCommit], since: str, commit: str) -> bool:
    """Whether these commits lead from `commit` straight back to `since`, with one parent each."""
    for each in log:
        if each.id != commit or len(each.parents) != 1:
            return False
        commit = each.parents[0]
    return commit == since


def _message(stderr: bytes) -> str:
    return stderr.decode("utf-8", errors="replace").strip() or "no reason given"
