"""Check the index: query the daemon, or if none runs, read the files without changing any."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import IndexUnavailableError, ModelError, RepositoryError, SemanticError
from otterwiki_semantic.core.files import try_lock
from otterwiki_semantic.core.hints import problem as status_problem
from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.core.records import ChromaFill, ChromaState, Freshness, IndexStatus, RebuildState
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import DaemonInfo, DaemonProbe, code_version, settings_fingerprint

_DAEMON = "index daemon"
_SEE_LOG = "see owner.log in the data directory; it is retried automatically"
_TAIL_BYTES = 1 << 16
_ERROR = re.compile(r"^\[[^]]*\] ERROR in ")
_LINE = re.compile(r"^\[\d")
_REPAIRS = "no action needed: it is rebuilt when the index daemon starts; if this happens again, check the disk"
_CATALOG = "catalog.sqlite3"
"""Equals `storage.generation.CATALOG`, whose module needs packages that may be missing."""
_CHECK_SECONDS = 5.0
_STEPS = 10_000


def check_index(context: DoctorContext) -> Iterator[Finding]:
    """Check the daemon, its log, and the index."""
    if context.settings is None:
        return
    probe = DaemonProbe(context.settings.data_dir)
    is_running = True
    try:
        daemon = probe.who()
        is_running = daemon is not None
        if daemon is None:
            yield from _offline(context.settings)
        else:
            yield from _running(context.settings, probe, daemon)
    except SemanticError as error:
        yield problem(_DAEMON, str(error), status_problem(error).hint)
    yield from _log(context.settings.data_dir, is_running=is_running)


def _running(settings: Settings, probe: DaemonProbe, daemon: DaemonInfo) -> Iterator[Finding]:
    if daemon.version != code_version():
        detail = f"it has another version ({daemon.version or 'an older one'}) than this command"
        hint = "restart the wiki; if this does not help, run the command in the wiki's own environment"
        yield problem(_DAEMON, detail, hint)
        return
    if daemon.repository != str(settings.repository):
        detail = f"{settings.data_dir} is in use for the repository {daemon.repository}, not for {settings.repository}"
        yield problem(_DAEMON, detail, "give each wiki its own SEMANTIC_DATA_DIR")
        return
    yield ok(_DAEMON, f"running, process {daemon.pid}, version {daemon.version}")
    if daemon.settings != settings_fingerprint(settings):
        hint = "run this with the environment and the settings.cfg of the wiki, or restart the wiki if they were changed"
        yield note(_DAEMON, "it was started with other settings than those found here", hint)
    yield from status_findings(probe.status(daemon))


def status_findings(status: IndexStatus) -> Iterator[Finding]:
    """Report the status of a running index."""
    detail = f"{status.contents}, {status.chunks} passages, model {status.model}, generation {status.generation or 'none'}"
    yield _compared(detail, status.index, "no action needed, unless a problem follows")
    if status.chroma is not None and status.chroma.state is not ChromaState.RESTING:
        yield _collection(status.chroma)
    if status.unread:
        what, _, hint = status.unread.partition("; ")
        yield note("attachments", what, hint)
    reported = {each.message for each in status.problems}
    yield from (problem("index", each.message, each.hint) for each in status.problems)
    if status.last_error and status.last_error not in reported:
        yield problem("index", f"the last error: {status.last_error}", _SEE_LOG)
    if status.rebuild.state is RebuildState.FAILED and status.rebuild.error not in reported:
        yield problem("rebuild", str(status.rebuild.error), status.rebuild.hint or _SEE_LOG)


def _collection(fill: ChromaFill) -> Finding:
    counted = "not counted yet" if fill.count is None else f"{fill.count} records"
    detail = f"{fill.collection}: {counted}"
    if not (fill.pending or fill.outdated):
        return ok("collection", f"{detail}, complete")
    last = f"last complete at {(fill.complete_commit or '')[:12]}" if fill.complete_commit else "never complete yet"
    lacks = f"it lacks {fill.pending}, and {fill.outdated} are outdated; {last}"
    return note("collection", f"{detail}; {lacks}", "no action needed: it is filled after each change; searches do without")


def _compared(detail: str, index: Freshness, hint: str) -> Finding:
    if index.commit == index.head and not index.pending_pages:
        return ok("index", f"{detail}; it equals HEAD ({(index.head or 'no commit')[:12]})")
    behind = f"it equals {(index.commit or 'no commit')[:12]}, HEAD is {(index.head or 'none')[:12]}"
    pending = f", {count(index.pending_pages, 'page')} pending" if index.pending_pages else ""
    return note("index", f"{detail}; {behind}{pending}", hint)


def _offline(settings: Settings) -> Iterator[Finding]:
    yield note(_DAEMON, "not running", "it starts with the wiki, or with: otterwiki-semantic index")
    place = serving_directory(settings.data_dir)
    if place is None:
        yield note("index", f"none in {settings.data_dir} yet", "start the wiki, or: otterwiki-semantic index")
        return
    try:
        with _locked(settings.data_dir):
            facts, detail = _read(place)
    except sqlite3.Error as error:
        yield problem("index", f"the catalog {place / _CATALOG} cannot be read: {error}", _REPAIRS)
    except IndexUnavailableError as error:
        yield note("index", str(error))
    else:  # the lock is released first: opening the model can take long, and a daemon may need the lock
        yield from _files(settings, facts, detail)


def _read(place: Path) -> tuple[dict[str, str], str]:
    """Return the facts of the index and its description. Errors: `sqlite3.Error`, `IndexUnavailableError`."""
    log = place / f"{_CATALOG}-wal"
    if log.exists() and log.stat().st_size:
        raise IndexUnavailableError("the last index daemon was killed; the next one recovers what it left")
    uri = f"{(place / _CATALOG).absolute().as_uri()}?mode=ro&immutable=1"  # otherwise SQLite would create files next to it
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        facts = dict(connection.execute("SELECT name, value FROM meta"))
        knows_excluded = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'excluded_pages'").fetchone()
        tables = ("pages", "chunks", *(["excluded_pages"] if knows_excluded else ()))
        pages, chunks, *excluded = (connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)
        is_checked = _check(connection)
    detail = f"{pages} pages" + (f" ({sum(excluded)} excluded by their front matter)" if sum(excluded) else "")
    detail += f", {chunks} passages, generation {place.name}"
    return facts, detail + ("; its file is intact" if is_checked else "; its file is too large to be checked here")


def _files(settings: Settings, facts: dict[str, str], detail: str) -> Iterator[Finding]:
    try:
        index = Freshness(None if "changing" in facts else facts.get("commit"), Repository(settings.repository).head(), 0)
        yield _compared(detail, index, "no action needed: the next start updates it")
    except RepositoryError:  # reported by its own check
        yield note("index", f"{detail}; HEAD is unknown")
    if unfinished := int(facts.get("unfinished") or 0):
        yield note("index", f"{unfinished} pages have passages without a vector", "no action needed: they are retried")
    if _wanted(settings) not in {None, facts.get("fingerprint")}:
        hint = "no action needed: the next start builds a new one, and this one serves until then"
        yield note("index", "it was built with another model, other chunks or by another version", hint)


def _wanted(settings: Settings) -> str | None:
    """Return the fingerprint of the index that would be built now; None without a model, which has its own check."""
    from otterwiki_semantic.embedding import open_embedder, profile_for
    from otterwiki_semantic.storage import index_fingerprint

    try:
        embedder = open_embedder(settings)
        return index_fingerprint(embedder, profile_for(embedder, settings.chunks), settings.languages)
    except ModelError:
        return None


def _log(data_dir: Path, *, is_running: bool) -> Iterator[Finding]:
    """Return the last error in the daemon's log; it is a problem if the log ends with it and no daemon runs."""
    path = data_dir / "owner.log"
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            lines = [line for line in log.read().decode("utf-8", errors="replace").splitlines() if _LINE.match(line)]
    except OSError:
        return
    errors = [line for line in lines if _ERROR.match(line)]
    if not errors:
        return
    if errors[-1] == lines[-1] and not is_running:
        yield problem("log", f"the index daemon ended with: {errors[-1]}", "correct this, then restart the wiki")
    else:
        yield note(
            "log", f"the last of {len(errors)} errors in {path}: {errors[-1]}", "no action needed, unless it happens again"
        )


def serving_directory(data_dir: Path) -> Path | None:
    """Return the directory of the serving generation; None if none can be read."""
    try:
        name = (data_dir / "current").read_text(encoding="ascii").strip()
        place = data_dir / "generations" / name
        return place if name and (place / _CATALOG).is_file() else None
    except (OSError, ValueError):
        return None


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Hold the lock, so that a daemon started meanwhile waits briefly."""
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


def _check(connection: sqlite3.Connection) -> bool:
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
