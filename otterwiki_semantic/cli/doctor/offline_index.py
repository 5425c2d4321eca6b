"""Read the index while no daemon uses it, without changing any file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from otterwiki_semantic.core.errors import CatalogCorruptError, IndexUnavailableError
from otterwiki_semantic.core.files import try_lock

_CATALOG = "catalog.sqlite3"
"""As `storage.generation.CATALOG`, whose module needs packages that may be missing."""
_CHECK_SECONDS = 5.0
_STEPS = 10_000


@dataclass(frozen=True, slots=True)
class OfflineIndex:
    """The serving generation."""

    name: str
    commit: str | None
    """The commit that it equals; None if none."""
    fingerprint: str | None
    pages: int
    excluded: int
    """Pages that are left out because of their front matter."""
    chunks: int
    unfinished: int
    """Pages with passages that lack a vector."""
    is_checked: bool
    """Whether the whole file was checked; a large one takes too long."""


def serving_directory(data_dir: Path) -> Path | None:
    """Return the directory of the serving generation; None if there is none that can be read."""
    try:
        name = (data_dir / "current").read_text(encoding="ascii").strip()
        place = data_dir / "generations" / name
        return place if name and (place / _CATALOG).is_file() else None
    except (OSError, ValueError):
        return None


def read_offline_index(data_dir: Path) -> OfflineIndex | None:
    """Read the index; None if there is none.

    Errors: `CatalogCorruptError`; `IndexUnavailableError` if it cannot be read now, because a daemon uses it, or one was killed
    and left a write-ahead log, which the next one applies.
    """
    place = serving_directory(data_dir)
    if place is None:
        return None
    with _locked(data_dir):
        log = place / f"{_CATALOG}-wal"
        if log.exists() and log.stat().st_size:
            raise IndexUnavailableError("the last index daemon was killed; the next one recovers what it left")
        try:
            return _read(place)
        except sqlite3.Error as error:
            raise CatalogCorruptError(f"the catalog {place / _CATALOG} cannot be read: {error}") from error


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Keep a daemon that starts in the meantime waiting, for the moment that this takes."""
    with ExitStack() as opened:
        try:
            lock = opened.enter_context((data_dir / "owner.lock").open("rb"))
            is_locked = try_lock(lock.fileno(), shared=True)
        except FileNotFoundError:
            is_locked = True  # no daemon ever ran
        except OSError as error:
            raise IndexUnavailableError(f"the files of the index cannot be read: {error}") from error
        if not is_locked:
            raise IndexUnavailableError("an index daemon holds the lock but does not answer")
        yield


def _read(place: Path) -> OfflineIndex:
    uri = f"{(place / _CATALOG).absolute().as_uri()}?mode=ro&immutable=1"  # else SQLite would create files next to it
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        facts = dict(connection.execute("SELECT name, value FROM meta"))
        knows_excluded = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'excluded_pages'").fetchone()
        tables = ("pages", "chunks", *(["excluded_pages"] if knows_excluded else ()))
        pages, chunks, *excluded = (connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)
        is_checked = _check(connection)
    commit = None if "changing" in facts else facts.get("commit")
    unfinished = int(facts.get("unfinished") or 0)
    return OfflineIndex(place.name, commit, facts.get("fingerprint"), pages, sum(excluded), chunks, unfinished, is_checked)


def _check(connection: sqlite3.Connection) -> bool:
    """Check the file; False if that takes too long."""
    deadline = time.monotonic() + _CHECK_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError:
        if time.monotonic() > deadline:
            return False
        raise
    if finding != "ok":
        raise sqlite3.DatabaseError(finding)
    return True
