"""Check git and the repository, the data directory, disk space and memory."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.cli.doctor.index import serving_directory
from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.attachments import tesseract_languages
from otterwiki_semantic.core.errors import RepositoryError, SemanticError
from otterwiki_semantic.core.files import directory_size, try_lock
from otterwiki_semantic.core.hints import SHOW_CAPITALS
from otterwiki_semantic.core.languages import ENGLISH, SNOWBALL
from otterwiki_semantic.core.records import PageUrls
from otterwiki_semantic.core.settings import BUNDLED, EXCLUDE, Settings, read_flag
from otterwiki_semantic.daemon import socket_location

_GIT_SECONDS = 10
_SAMPLED_PAGES, _SAMPLED_BYTES = 60, 20_000
_MIN_SHARE = 0.1
"""The least share of pages in a language for it to be reported."""
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "fuse.sshfs", "virtiofs")
_ELSEWHERE = "set SEMANTIC_DATA_DIR to a directory of the wiki's user"
_MOUNTS = Path("/proc/self/mounts")
_SPARE = 1.2
"""Free disk space that a rebuild needs, relative to its estimated size, as in `indexing.promotion`."""
_DAEMON_BYTES = 250e6
_MEMORY = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def user_name(uid: int) -> str:
    """Return the name and id of a user."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)


def check_repository(context: DoctorContext) -> Iterator[Finding]:
    """Check git, the repository, and its pages."""
    git = shutil.which("git", path=context.environment.get("PATH"))
    if git is None:
        yield problem("git", "not found on the PATH of this process", "install it: apt-get install git")
        return
    version = subprocess.run([git, "--version"], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False).stdout
    yield ok("git", f"{version.removeprefix('git version ').strip()}, {git}")
    if context.settings is not None:
        yield from _repository(context, context.settings)


def _repository(context: DoctorContext, settings: Settings) -> Iterator[Finding]:
    place = settings.repository
    if not place.exists():
        yield problem("repository", f"{place} does not exist", "correct REPOSITORY, or mount its file system")
        return
    try:
        repository = Repository.of(settings)
        head = repository.head()
        if head is None:
            yield note("repository", f"{place} has no commit yet: there is nothing to index")
            return
        pages, excluded = repository.page_blobs(head), repository.excluded_pages(head)
        idle = [pattern for pattern in settings.exclude if not repository.matching_pages(head, [pattern])]
    except RepositoryError as error:
        reason = str(error)
        yield problem("repository", reason.splitlines()[0], _hint(place, reason))
        return
    left_out = f", without {len(excluded)} that {EXCLUDE} excludes" if excluded else ""
    yield ok("repository", f"{place}, {len(pages)} pages at {head[:12]}{left_out}")
    if idle:
        detail = f"no page's file matches {', '.join(idle)} of {EXCLUDE}"
        yield note("repository", detail, "files have their case and end in .md: notes.md, Notes/*.md, **/notes.md, notes/**")
    retains_case = False
    with suppress(ValueError):
        retains_case = read_flag(context.given("RETAIN_PAGE_NAME_CASE"))
    hidden = [path for path in pages if not PageUrls(retains_case=retains_case).shows(path)]
    if hidden and repository.notation.is_wiki:
        detail = f"the wiki cannot show {len(hidden)} of them, such as {min(hidden)}: their names have capitals, and"
        yield note("repository", f"{detail} RETAIN_PAGE_NAME_CASE is off, unless it is on in its preferences", SHOW_CAPITALS)
    if settings.synonyms is not None and settings.synonyms not in {*pages, *excluded}:
        hint = "create it, or correct SEMANTIC_SYNONYMS; upper and lower case are those of its file"
        yield problem("synonyms", f"the repository has no page {settings.synonyms!r}", hint)
    if settings.ocr is not None:
        yield _ocr(settings.ocr)
    if settings.model == BUNDLED and pages:
        yield from _languages(repository, sorted(pages.values()))


def _ocr(languages: str) -> Finding:
    """Check that Tesseract is installed, with the languages of the setting."""
    missing = [language for language in languages.split("+") if language not in tesseract_languages()]
    if not missing:
        return ok("OCR", f"Tesseract reads {languages}")
    packages = " ".join(f"tesseract-ocr-{language.replace('_', '-').lower()}" for language in missing)
    hint = f"install them, on Debian: apt-get install tesseract-ocr {packages}; then restart the wiki"
    return problem("OCR", f"Tesseract, or its data for {', '.join(missing)} of SEMANTIC_OCR, is missing", hint)


def _languages(repository: Repository, blobs: Sequence[str]) -> Iterator[Finding]:
    """Check the languages of a sample of pages: the bundled model reads English only."""
    from otterwiki_semantic.content.analysis import detect_language

    sample = blobs[:: -(-len(blobs) // _SAMPLED_PAGES)]
    texts = (content.decode(errors="replace") for content in repository.read_blobs(sample, _SAMPLED_BYTES))
    found = Counter(detect_language([text], (ENGLISH, *sorted(SNOWBALL.keys() - {ENGLISH}))) for text in texts)
    others = [language for language, count in found.most_common() if language != ENGLISH and count >= _MIN_SHARE * len(sample)]
    if found[ENGLISH] < len(sample) / 2 and others:
        names = ", ".join(SNOWBALL[language].capitalize() for language in others)
        codes = ",".join((*others, *([ENGLISH] if found[ENGLISH] else [])))
        detail = f"most pages are not English but {names}, which the bundled model does not read"
        yield note("languages", detail, f"set SEMANTIC_MODEL=multilingual (see docs/models.md) and SEMANTIC_LANGUAGES={codes}")


def _hint(place: Path, reason: str) -> str:
    owner = place.stat().st_uid
    if "dubious ownership" in reason or owner != os.geteuid():
        return (
            f"run this, and the wiki, as the user {user_name(owner)} that the repository belongs to (you are"
            f" {user_name(os.geteuid())}); or let git read it: git config --global --add safe.directory {place}"
        )
    if "not a git repository" in reason:
        return "correct REPOSITORY, or create the repository"
    return f"run git itself: git -C {place} log, git -C {place} fsck"


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
    kind = file_system(existing(place).resolve(), _MOUNTS.read_text(errors="replace")) if _MOUNTS.exists() else ""
    if kind.startswith(_NETWORK):
        detail = f"{place} is on a network file system ({kind}): its locks must work, and only one host may use it"
        yield note("file system", detail, "set SEMANTIC_DATA_DIR to a directory on a local disk")
    socket = socket_location(place)
    if socket.parent != place:
        detail = f"the path of the data directory is too long for a socket ({len(os.fsencode(place))} bytes), which is {socket}"
        hint = "all processes of the wiki need the same temporary directory (TMPDIR); otherwise set a shorter SEMANTIC_DATA_DIR"
        yield note("socket", detail, hint)


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


def check_resources(context: DoctorContext) -> Iterator[Finding]:
    """Check the disk of the data directory, and memory."""
    if context.settings is not None:
        yield _disk(context.settings)
    paths = (_MEMORY, _CGROUP / "memory.max", _CGROUP / "memory.current")
    free = available_memory(*(path.read_text(errors="replace") if path.exists() else "" for path in paths))
    if free is None:
        return
    detail = f"{free / 1e6:.0f} MB are available; the index daemon needs about 250 MB for 250,000 words"
    if free < _DAEMON_BYTES:
        yield note("memory", detail, "unless it is running already, give the machine or the container more memory")
    else:
        yield ok("memory", detail)


def _disk(settings: Settings) -> Finding:
    free = shutil.disk_usage(existing(settings.data_dir)).free
    needed = _needed(settings)
    if needed is None:
        return note("disk", f"{free / 1e6:.0f} MB are free; the size of an index is unknown without pages and a model")
    detail = f"{free / 1e6:.0f} MB are free, and a rebuild needs about {needed * _SPARE / 1e6:.0f} MB in addition to the index"
    if needed * _SPARE > free:
        return problem("disk", detail, "make room on the disk of the data directory, or set SEMANTIC_DATA_DIR to another one")
    return ok("disk", detail)


def _needed(settings: Settings) -> float | None:
    """Return the size of a new index in bytes: the size of the serving one, or an estimate from the pages."""
    serving = serving_directory(settings.data_dir)
    if serving is not None:
        return directory_size(serving)
    from otterwiki_semantic.embedding import open_embedder
    from otterwiki_semantic.indexing import estimate

    try:
        repository = Repository.of(settings)
        head = repository.head()
        pages = repository.pages(head).values() if head else ()
        embedder = open_embedder(settings)
    except SemanticError:
        return None
    size = sum(page.size for page in pages)
    return estimate(None, size, embedder, embeds=True, copies=False, place=existing(settings.data_dir)).disk_bytes


def available_memory(meminfo: str, limit: str, used: str) -> int | None:
    """Return the bytes available on the machine and within the limit of the control group; None if unknown."""
    found = [int(line.split()[1]) * 1024 for line in meminfo.splitlines() if line.startswith("MemAvailable:")]
    if limit.strip().isdigit() and used.strip().isdigit():  # "max" means no limit
        found.append(max(0, int(limit) - int(used)))
    return min(found, default=None)
