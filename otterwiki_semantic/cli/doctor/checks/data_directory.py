"""Check the data directory: its owner and mode, file locks, file system, and the path of the daemon's socket."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.cli.doctor.checks.repository import user_name
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.files import try_lock
from otterwiki_semantic.daemon import socket_location

_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse.sshfs", "virtiofs")
_ELSEWHERE = "set SEMANTIC_DATA_DIR to a directory of the wiki's user"
_MOUNTS = Path("/proc/self/mounts")


def check_data_directory(context: DoctorContext) -> Iterator[Finding]:
    """Check the data directory, or where it would be created. A scratch file is created in it and removed."""
    if context.settings is None:
        return
    place = context.settings.data_dir
    try:
        yield _there(place) if place.exists() else _missing(place)
    except OSError as error:
        yield problem("data directory", str(error), _ELSEWHERE)
        return
    yield from _file_system(place)
    yield from _socket(place)


def existing(place: Path) -> Path:
    """Return the path itself, or the nearest parent that exists."""
    return next(path for path in (place, *place.parents) if os.path.lexists(path))


def _missing(place: Path) -> Finding:
    above = existing(place)
    if not above.is_dir():
        return problem("data directory", f"{place} cannot be created: {above} is not a directory", _ELSEWHERE)
    if not os.access(above, os.W_OK | os.X_OK):
        detail = f"{place} cannot be created: {user_name(os.geteuid())} may not write to {above}"
        return problem("data directory", detail, _as_owner(above))
    return note("data directory", f"{place} does not exist yet; the first start creates it")


def _there(place: Path) -> Finding:
    if not place.is_dir():
        return problem("data directory", f"{place} is not a directory", "move it away, or set SEMANTIC_DATA_DIR")
    facts = place.stat()
    if facts.st_uid != os.geteuid():
        detail = f"{place} belongs to {user_name(facts.st_uid)}, and you are {user_name(os.geteuid())}"
        return problem("data directory", detail, _as_owner(place))
    if failure := _write_failure(place):
        return failure
    if facts.st_mode & 0o077:
        return _open_to_others(place, facts.st_mode & 0o777)
    return ok("data directory", f"{place}, private, writable, with file locks")


def _open_to_others(place: Path, mode: int) -> Finding:
    """Return what a directory that others can reach means, and whether the index will be able to close it."""
    detail = f"{place} is open to other users (mode {mode:o}), and contains the wiki's text"
    with tempfile.TemporaryFile(dir=place) as scratch:
        has_permissions = not os.fstat(scratch.fileno()).st_mode & 0o077
    if has_permissions:
        return note("data directory", f"{detail}; the next start of the index closes it", f"chmod 700 {place}")
    return problem("data directory", f"{detail}; its file system cannot keep them out", _ELSEWHERE)


def _as_owner(place: Path) -> str:
    uid = place.stat().st_uid
    if uid == os.geteuid():
        return _ELSEWHERE
    owner = user_name(uid)
    name = owner.partition(" ")[0]
    return (
        f"run this as the user that the wiki runs as; if that is {owner}: sudo -u {name} …, or docker exec -u {name} …;"
        " otherwise make that user the owner (chown -R), or set SEMANTIC_DATA_DIR to a directory of its own"
    )


def _write_failure(place: Path) -> Finding | None:
    """Write and lock a scratch file, as the index does; return what fails."""
    try:
        with tempfile.TemporaryFile(dir=place) as scratch:
            scratch.write(b"x")
            scratch.flush()
            try:
                try_lock(scratch.fileno())
            except OSError as error:
                hint = "set SEMANTIC_DATA_DIR to a directory on a local disk"
                return problem("data directory", f"the file system of {place} has no file locks: {error}", hint)
    except OSError as error:
        hint = "make sure that its disk is neither full nor mounted read-only, or set SEMANTIC_DATA_DIR to another directory"
        return problem("data directory", f"cannot write to {place}: {error.strerror or error}", hint)
    return None


def file_system(place: Path, mounts: str) -> str:
    """Return the type of the file system of a path, according to the content of ``/proc/self/mounts``."""
    best, kind = "", ""
    for line in mounts.splitlines():
        _, point, found, *_ = [*line.split(" "), "", "", ""]
        point = point.encode("ascii", errors="replace").decode("unicode_escape")  # a space is written as \040
        if place.is_relative_to(point or "-") and len(point) >= len(best):
            best, kind = point, found
    return kind


def _file_system(place: Path) -> Iterator[Finding]:
    kind = file_system(existing(place).resolve(), _MOUNTS.read_text(errors="replace")) if _MOUNTS.exists() else ""
    if kind.startswith(_NETWORK):
        detail = f"{place} is on a network file system ({kind}): its locks must work, and only one host may use it"
        yield note("file system", detail, "set SEMANTIC_DATA_DIR to a directory on a local disk")


def _socket(place: Path) -> Iterator[Finding]:
    socket = socket_location(place)
    if socket.parent == place:
        return
    detail = f"the path of the data directory is too long for a socket ({len(os.fsencode(place))} bytes), which is {socket}"
    hint = "all processes of the wiki need the same temporary directory (TMPDIR); otherwise set a shorter SEMANTIC_DATA_DIR"
    yield note("socket", detail, hint)
