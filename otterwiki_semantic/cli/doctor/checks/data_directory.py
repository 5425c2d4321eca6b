"""The data directory: whether this user can have an index there, its mode, its locks, and the owner's socket."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.cli.doctor.checks.repository import user_name
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.daemon import socket_location

_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse.sshfs", "virtiofs")
_ELSEWHERE = "set SEMANTIC_DATA_DIR to a directory of the wiki's user"
_MOUNTS = Path("/proc/self/mounts")


def check_data_directory(case: DoctorContext) -> Iterator[Finding]:
    """See to the data directory, or to where it would be made. A scratch file is made in it, and removed."""
    if case.settings is None:
        return
    place = case.settings.data_dir
    try:
        is_there = place.exists()
    except OSError as error:
        yield problem("data directory", str(error), _ELSEWHERE)
        return
    yield from _there(place) if is_there else _missing(place)
    yield from _file_system(place)
    yield from _socket(place)


def existing(place: Path) -> Path:
    """Give a path itself, or the nearest directory above it that is there."""
    return next(path for path in (place, *place.parents) if os.path.lexists(path))


def _missing(place: Path) -> Iterator[Finding]:
    above = existing(place)
    if not above.is_dir():
        yield problem("data directory", f"{place} cannot be made: {above} is no directory", _ELSEWHERE)
    elif not os.access(above, os.W_OK | os.X_OK):
        detail = f"{place} cannot be made: {user_name(os.geteuid())} may not write to {above}"
        yield problem("data directory", detail, _as_owner(above))
    else:
        yield note("data directory", f"{place} is not there yet; the first start makes it")


def _there(place: Path) -> Iterator[Finding]:
    if not place.is_dir():
        yield problem("data directory", f"{place} is no directory", "move it away, or set SEMANTIC_DATA_DIR")
        return
    facts = place.stat()
    if facts.st_uid != os.geteuid():
        detail = f"{place} belongs to {user_name(facts.st_uid)}, and you are {user_name(os.geteuid())}"
        yield problem("data directory", detail, _as_owner(place))
        return
    trouble = _trouble(place)
    if trouble is not None:
        yield trouble
        return
    if facts.st_mode & 0o077:
        detail = f"{place} can be read by others (mode {facts.st_mode & 0o777:o}), and holds the wiki's text"
        yield note("data directory", detail, f"chmod 700 {place}")
        return
    yield ok("data directory", f"{place}, private, writable, with file locks")


def _as_owner(place: Path) -> str:
    uid = place.stat().st_uid
    if uid == os.geteuid():
        return _ELSEWHERE
    owner = user_name(uid)
    name = owner.partition(" ")[0]
    return (
        f"do this as the user that the wiki runs as; if that is {owner}: sudo -u {name} …, or docker exec -u {name} …;"
        " else give that user the directory (chown -R), or set SEMANTIC_DATA_DIR to one of its own"
    )


def _trouble(place: Path) -> Finding | None:
    """Write and lock a scratch file, as the index does; tell what fails."""
    try:
        with tempfile.TemporaryFile(dir=place) as scratch:
            scratch.write(b"x")
            scratch.flush()
            try:
                fcntl.flock(scratch, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                hint = "set SEMANTIC_DATA_DIR to a directory on a disk of this machine"
                return problem("data directory", f"the file system of {place} has no file locks: {error}", hint)
    except OSError as error:
        hint = "see that its disk is neither full nor mounted read-only, or set SEMANTIC_DATA_DIR to another directory"
        return problem("data directory", f"nothing can be written to {place}: {error.strerror or error}", hint)
    return None


def file_system(place: Path, mounts: str) -> str:
    """Give the type of the file system that a path is on, of what ``/proc/self/mounts`` says."""
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
        detail = f"{place} is on a network file system ({kind}): its locks must work, and one host alone may use it"
        yield note("file system", detail, "better set SEMANTIC_DATA_DIR to a directory on a disk of this machine")


def _socket(place: Path) -> Iterator[Finding]:
    socket = socket_location(place)
    if socket.parent == place:
        return
    detail = f"the path of the data directory is too long for a socket ({len(os.fsencode(place))} bytes); it is {socket}"
    hint = (
        "all of the wiki's processes have to have the same temporary directory (TMPDIR); else set a shorter SEMANTIC_DATA_DIR"
    )
    yield note("socket", detail, hint)
