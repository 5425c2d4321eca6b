"""The wiki that a data directory belongs to. Another wiki's index must never answer, not even before the first sync.

A commit's id is a hash of its history and content, so a repository that contains a commit may show an index of that commit.
"""

from __future__ import annotations

import json
import logging
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.attachments import DIRECTORY as ATTACHMENT_TEXTS
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.files import make_private, read_record, write_atomically

_NOTE = "repository.json"
_COMPARED = "shadow"
"""The directory in which the previous version stored the index of a model under comparison."""
_WITH_TEXT = ("current", "map.json", "reading", "searches.db", "searches.db-shm", "searches.db-wal")
"""Files that contain text of a wiki, and the one that names the serving generation."""
_COMMITS = "SELECT value FROM meta WHERE name IN ('commit', 'changing')"

log = logging.getLogger(__name__)


def claim_data_directory(data_dir: Path, repository: Repository) -> None:
    """Record the repository of a data directory. Remove another wiki's index, and leftovers of the previous version.

    Errors: `RepositoryError` if git cannot identify the repository, and its path has changed.
    """
    shutil.rmtree(data_dir / _COMPARED, ignore_errors=True)
    noted = read_record(data_dir / _NOTE, dict[str, str | None], "the repository is noted again") or {}
    path, root = str(repository.directory), noted.get("root")
    try:
        repository.head()  # raises an error if git cannot read the repository, which would look like one without commits
        known = [commit for commit in (root, *_indexed_commits(data_dir)) if commit]
        if known and not any(map(repository.resolve_commit, known)):
            log.warning("the index in %s is of another repository (%s), and is removed", data_dir, noted.get("path", "unknown"))
            for directory in ("generations", ATTACHMENT_TEXTS):
                shutil.rmtree(data_dir / directory, ignore_errors=True)
            for name in _WITH_TEXT:
                (data_dir / name).unlink(missing_ok=True)
            root = None
        if root is None or not repository.resolve_commit(root):
            root = repository.root_commit()
    except RepositoryError:
        if noted and noted.get("path") != path:
            raise
        return
    if noted != {"path": path, "root": root}:
        make_private(data_dir)
        write_atomically(data_dir / _NOTE, json.dumps({"path": path, "root": root}))


def _indexed_commits(data_dir: Path) -> Iterator[str]:
    """Yield the commits that the catalogs equal, or are being synced to."""
    for path in data_dir.glob("generations/*/catalog.sqlite3"):
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
            yield from (str(row[0]) for row in database.execute(_COMMITS))
