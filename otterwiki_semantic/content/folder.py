"""Track a folder of Markdown files and documents in a private git repository. Nothing is written to the folder."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from pathlib import Path, PurePath

from otterwiki_semantic.content.attachments import MAX_FILE_BYTES
from otterwiki_semantic.content.attachments.kinds import KIND_OF_EXTENSION, NO_ATTACHMENTS, AttachmentRule
from otterwiki_semantic.content.git import NOTATION, Repository
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.files import locked, make_private
from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.core.records import Notation

_GIT_DIRECTORY = "folder.git"
_EXCLUDE = "*\n!*/\n!*.md\n{files}.*\n/logseq/bak/\n"
"""Added to the folder's own .gitignore: only Markdown and documents, no hidden files, no Logseq backups."""
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding\n"
"""Store files byte for byte, overriding the folder's own .gitattributes."""
_SETTINGS = ("core.fileMode=false", "core.untrackedCache=true", "gc.autoDetach=false", "core.bigFileThreshold=1m")
_LOCKS = ("*.lock", "refs/heads/*.lock")
_LOCK_SECONDS = 600.0
_EXACT_FILES = 500
"""Up to this number of changed files, each modification time gets a commit; above it, each day does."""
_DAY_SECONDS = 86_400
_MAX_NAMED = 3
_NO_MODE = b"000000"
_AUTHOR = b"otterwiki-semantic"

log = logging.getLogger(__name__)


class Folder(Repository):
    """A folder of Markdown files, and the repository in the data directory whose commits track it.

    `attachments` selects other files to track, in any directory. Symbolic links are not followed; hidden and ignored files are
    excluded. The files of nested git repositories are included.
    Errors: `RepositoryError` if the data directory is inside the folder, or holds another index.
    """

    def __init__(self, folder: Path, data_dir: Path | None = None, attachments: AttachmentRule = NO_ATTACHMENTS) -> None:
        self.folder = folder.resolve()
        self.data_dir = (data_dir or _default_data_dir(self.folder)).resolve()
        tracked = replace(attachments, kinds=attachments.kinds | attachments.lacking)  # the status counts the latter
        super().__init__(self.data_dir / _GIT_DIRECTORY, attachments=tracked)
        tree = ("git", "-C", str(self.folder), f"--git-dir={self.directory}", "--work-tree=.")
        settings = (part for setting in _SETTINGS for part in ("-c", setting))
        self._command = (*tree, *self._command[3:], *settings)
        self._environment["GIT_OPTIONAL_LOCKS"] = "1"
        self._unreadable: list[bytes] = []
        if self.data_dir.is_relative_to(self.folder):
            raise RepositoryError(f"the data directory {self.data_dir} is inside the folder; choose another with --data-dir")

    def commit(self) -> None:
        """Commit the changes in the folder, dated by the files. Errors: `RepositoryError` if it is missing or empty."""
        if not (self.folder.is_dir() and os.access(self.folder, os.R_OK | os.X_OK)):
            raise RepositoryError(f"the folder {self.folder} does not exist, or cannot be read")
        try:
            make_private(self.data_dir)
            with locked(self.data_dir / "folder.lock", _LOCK_SECONDS) as lock:
                self._inherited = (lock,)  # a git process that outlives this process also holds the lock
                try:
                    self._prepare()
                    self._update_index()
                    self._commit_index()
                finally:
                    self._inherited = ()
        except OSError as error:
            raise RepositoryError(f"the folder {self.folder} cannot be followed in {self.data_dir}: {error}") from error

    def directories(self) -> list[str]:
        """Return the paths of the folder and of the directories below it that contain tracked files."""
        tops = {parent for path in self._listed("-c") for parent in PurePath(os.fsdecode(path)).parents}
        return sorted(str(self.folder / top) for top in {PurePath(), *tops})

    def _prepare(self) -> None:
        """Create the repository, or remove the locks of a killed git process: no other process is running now."""
        for pattern in _LOCKS:
            for stale in self.directory.glob(pattern):
                stale.unlink(missing_ok=True)
        owner = self.directory / "description"
        if not owner.exists():
            self._create()
        known = Path(os.fsdecode(owner.read_bytes())) if owner.exists() else None
        if known is not None and known != self.folder and known.is_dir():
            raise RepositoryError(f"{self.data_dir} holds the index of the folder {known}; choose another --data-dir")
        if known != self.folder:
            owner.write_bytes(os.fsencode(self.folder))
        exclude, text = self.directory / "info" / "exclude", _EXCLUDE.format(files=_patterns(self.attachments))
        if not exclude.exists() or exclude.read_text(encoding="utf-8") != text:
            exclude.write_text(text, encoding="utf-8")

    def _create(self) -> None:
        if (self.data_dir / "repository.json").exists():
            raise RepositoryError(f"{self.data_dir} holds the index of a repository; choose another --data-dir")
        Repository(self.data_dir)._git("init", "-q", "--bare", "--template=", "--initial-branch=main", _GIT_DIRECTORY)
        (self.directory / "info").mkdir(exist_ok=True)
        notation = Notation.DENDRON if (self.folder / "dendron.yml").exists() else Notation.NOTES
        for path, text in (("info/attributes", _ATTRIBUTES), (NOTATION, notation)):
            (self.directory / path).write_text(text, encoding="ascii")

    def _update_index(self) -> None:
        self._run("update-index", "-q", "--refresh", timeout=None)
        present: list[bytes] = []
        unreadable: list[bytes] = []
        gone = self._listed("-c", "-i")
        for path in self._changed():
            if not self._is_wanted(path) or any(part.startswith(b".") for part in path.split(b"/")):
                continue
            if not self._is_file(path):
                gone.append(path)
            else:
                (present if os.access(self._full(path), os.R_OK) else unreadable).append(path)
        if gone:
            self._git("update-index", "--force-remove", "-z", "--stdin", stdin=_terminated(gone))
        if present:
            self._git("update-index", "--add", "--remove", "-z", "--stdin", stdin=_terminated(present), timeout=None)
        self._report(unreadable)

    def _changed(self, tree: bytes = b"") -> Iterator[bytes]:
        """Yield the paths of new, changed and removed files; `tree` is a nested repository missing from git's index."""
        for entry in self._listed("-o", *(() if tree else ("-m",)), tree=tree):
            path = tree + entry
            if not entry.endswith(b"/"):
                yield path
            elif os.access(self._full(path), os.R_OK | os.X_OK):
                yield from self._changed(path)  # git lists a nested repository as one entry

    def _listed(self, *options: str, tree: bytes = b"") -> list[bytes]:
        place = ("-C", os.fsdecode(tree)) if tree else ()
        without_index = {"GIT_INDEX_FILE": str(self.directory / "none")} if tree else {}
        command = (*place, "ls-files", "-z", "--deduplicate", "--exclude-standard", *options)
        return self._git(*command, environment=without_index).split(b"\0")[:-1]

    def _full(self, path: bytes) -> bytes:
        return os.fsencode(self.folder) + b"/" + path

    def _is_wanted(self, path: bytes) -> bool:
        return path.endswith(b".md") or self.attachments.kind_of(os.fsdecode(path)) is not None

    def _is_file(self, path: bytes) -> bool:
        """Whether there is a regular file, not behind a symbolic link, and small enough to be read."""
        full = self._full(path)
        try:
            found = os.lstat(full)
            is_small = path.endswith(b".md") or found.st_size <= MAX_FILE_BYTES
            return stat.S_ISREG(found.st_mode) and is_small and os.path.realpath(full) == full
        except PermissionError:
            return True  # in a directory that is not accessible for now
        except OSError:
            return False

    def _report(self, unreadable: list[bytes]) -> None:
        if unreadable and unreadable != self._unreadable:
            names = ", ".join(os.fsdecode(path) for path in unreadable[:_MAX_NAMED])
            log.warning("%s of %s cannot be read: %s", count(len(unreadable), "file"), self.folder, names)
        self._unreadable = unreadable

    def _commit_index(self) -> None:
        head = self.head()
        difference = self._git("diff-index", "--cached", "--raw", "-z", "--no-renames", head or self._empty_tree)
        fields = difference.split(b"\0")
        entries = ((entry.split(), path) for entry, path in zip(fields[::2], fields[1::2], strict=False))
        changes = [(entry[1], entry[3], path) for entry, path in entries]
        if changes or head is None:
            if not self._run("ls-files", "-z", "--cached").stdout:
                raise RepositoryError(f"{self.folder} has no Markdown files (*.md) and no documents; is its drive mounted?")
            self._git("fast-import", "--quiet", "--done", stdin=self._commits(head, changes), timeout=None)
            self._run("gc", "--auto", "--quiet", timeout=None)

    def _commits(self, head: str | None, changes: Sequence[tuple[bytes, bytes, bytes]]) -> bytes:
        """Return the changes (mode, blob, path) as a stream for ``git fast-import``, oldest modification first."""
        now = int(time.time())
        removed = [path for mode, _, path in changes if mode == _NO_MODE]
        stored = [(self._modified(path, now), mode, blob, path) for mode, blob, path in changes if mode != _NO_MODE]
        unit = 1 if len(stored) <= _EXACT_FILES else _DAY_SECONDS
        groups = [list(group) for _, group in groupby(sorted(stored), key=lambda change: change[0] // unit)] or [[]]
        first = [b"from " + head.encode("ascii")] if head else []
        first += (b"D " + _quoted(path) for path in removed)
        lines: list[bytes] = []
        for group in groups:
            when = group[-1][0] if group else now
            lines += (b"commit refs/heads/main", b"committer %s <> %d +0000" % (_AUTHOR, when), b"data 5\nSaved", *first)
            lines += (b"M %s %s %s" % (mode, blob, _quoted(path)) for _, mode, blob, path in group)
            first = []
        return b"\n".join((*lines, b"done", b""))

    def _modified(self, path: bytes, now: int) -> int:
        try:
            return min(max(int(os.lstat(self._full(path)).st_mtime), 0), now)
        except OSError:
            return now


def _patterns(rule: AttachmentRule) -> str:
    """Return the lines of a .gitignore that include the files of a rule; git's globs also match directories."""
    extensions = (extension for extension, kind in KIND_OF_EXTENSION.items() if kind in rule.kinds)
    any_case = ("".join(f"[{letter}{letter.upper()}]" for letter in extension) for extension in extensions)
    globs = rule.globs or (f"**/*.{extension}" for extension in any_case)
    return "".join(f"!/{glob}\n!/{glob.removesuffix('/')}/**\n" for glob in globs)


def _terminated(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _quoted(path: bytes) -> bytes:
    """Quote a path for ``git fast-import``, whatever its characters."""
    return b'"%s"' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _default_data_dir(folder: Path) -> Path:
    """Return a per-user directory for the index of a folder: next to the folder, it might be inside another repository."""
    home = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return home / "otterwiki-semantic" / f"{folder.name}-{sha256(os.fsencode(folder)).hexdigest()[:8]}"
