"""The index: told by the process that owns it, else read from its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.cli.doctor.offline_index import Serving, read_serving
from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogCorruptError, ModelError, RepositoryError, SemanticError
from otterwiki_semantic.core.records import IndexStatus, RebuildState
from otterwiki_semantic.core.remedies import problem as status_problem
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import DaemonInfo, DaemonProbe, settings_fingerprint

_TAIL_BYTES = 1 << 16
_ERROR = re.compile(r"^\[[^]]*\] ERROR in ")
_LINE = re.compile(r"^\[\d")
_REPAIRS = "nothing: it is built again by itself when the index process starts; if this comes back, look at the disk"


def check_index(case: DoctorContext) -> Iterator[Finding]:
    """See to the owner, its log, and the index."""
    if case.settings is None:
        return
    asked = DaemonProbe(case.settings.data_dir)
    is_running = True
    try:
        owner = asked.who()
        is_running = owner is not None
        if owner is None:
            yield from _at_rest(case.settings)
        else:
            yield from _running(case.settings, asked, owner)
    except SemanticError as error:
        yield problem("index process", str(error), status_problem(error).hint)
    yield from _log(case.settings.data_dir, is_running=is_running)


def _running(settings: Settings, asked: DaemonProbe, owner: DaemonInfo) -> Iterator[Finding]:
    if not owner.is_of_this_version:
        detail = f"it is of another version ({owner.version or 'an older one'}) than this command"
        yield problem(
            "index process", detail, "restart the wiki; if it is so still, run the command of the wiki's own environment"
        )
        return
    if owner.repository != str(settings.repository):
        detail = f"{settings.data_dir} is in use for the repository {owner.repository}, not for {settings.repository}"
        yield problem("index process", detail, "give each wiki its own SEMANTIC_DATA_DIR")
        return
    yield ok("index process", f"it runs: process {owner.pid}, version {owner.version}")
    if owner.settings != settings_fingerprint(settings):
        hint = "run this with the environment and the settings.cfg of the wiki, or restart the wiki if they were changed"
        yield note("index process", "it was started with other settings than those that are seen here", hint)
    yield from status_findings(asked.status(owner))


def status_findings(status: IndexStatus) -> Iterator[Finding]:
    """Tell what an index says of itself."""
    index = status.index
    detail = f"{status.pages} pages, {status.chunks} passages, model {status.model}, generation {status.generation or 'none'}"
    if index.commit == index.head and not index.pending_pages:
        yield ok("index", f"{detail}; it equals HEAD ({(index.head or 'no commit')[:12]})")
    else:
        behind = f"it equals {(index.commit or 'no commit')[:12]}, HEAD is {(index.head or 'none')[:12]}"
        yield note("index", f"{detail}; {behind}, {index.pending_pages} pages are pending", "nothing, unless a problem follows")
    told = {each.message for each in status.problems}
    yield from (problem("index", each.message, each.hint) for each in status.problems)
    if status.last_error and status.last_error not in told:
        yield problem("index", f"the last error: {status.last_error}", "see owner.log in the data directory; it is tried again")
    if status.rebuild.state is RebuildState.FAILED and status.rebuild.error not in told:
        yield problem("rebuild", str(status.rebuild.error), status.rebuild.hint or "see owner.log in the data directory")


def _at_rest(settings: Settings) -> Iterator[Finding]:
    yield note("index process", "it does not run now", "it starts with the wiki, and with: otterwiki-semantic index")
    try:
        found = read_serving(settings.data_dir)
    except CatalogCorruptError as error:
        yield problem("index", str(error), _REPAIRS)
    except SemanticError as error:
        yield note("index", str(error))
    else:
        if found is None:
            yield note("index", f"there is none in {settings.data_dir} yet", "start the wiki, or: otterwiki-semantic index")
        else:
            yield from _files(settings, found)


def _files(settings: Settings, found: Serving) -> Iterator[Finding]:
    detail = f"{found.pages} pages, {found.chunks} passages, generation {found.name}"
    detail += "; its file is sound" if found.is_checked else "; its file is too large to be read whole here"
    yield _compared(settings, found.commit, detail)
    if found.unfinished:
        yield note("index", f"{found.unfinished} pages have passages without a vector", "nothing: they are tried again")
    wanted = _wanted(settings)
    if wanted is not None and found.fingerprint != wanted:
        hint = "nothing: the next start builds another one beside it, and this one answers meanwhile"
        yield note("index", "it was made with another model, other chunks or by another version", hint)


def _compared(settings: Settings, commit: str | None, detail: str) -> Finding:
    try:
        head = Repository(settings.repository).head()
    except RepositoryError:  # its own check has told
        return note("index", f"{detail}; what HEAD is cannot be told")
    if commit == head:
        return ok("index", f"{detail}; it equals HEAD ({(head or 'no commit')[:12]})")
    behind = f"it equals {(commit or 'no commit')[:12]}, HEAD is {(head or 'none')[:12]}"
    return note("index", f"{detail}; {behind}", "nothing: the next start brings it to HEAD")


def _wanted(settings: Settings) -> str | None:
    """Give the index_fingerprint of the index that would be made now; None without a model, as its own check has told."""
    from otterwiki_semantic.embedding import open_embedder, profile_for
    from otterwiki_semantic.storage import index_fingerprint

    try:
        embedder = open_embedder(settings)
        return index_fingerprint(embedder, profile_for(embedder, settings.chunks))
    except ModelError:
        return None


def _log(data_dir: Path, *, is_running: bool) -> Iterator[Finding]:
    """Tell the last error of the owner's log; it is in the way if it is the last thing that an owner said."""
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
        yield problem("log", f"the index process ended with: {errors[-1]}", "do what it says, then start the wiki again")
    else:
        yield note("log", f"the last of {len(errors)} errors in {path}: {errors[-1]}", "nothing, unless it comes again")
