"""Check free disk space for a rebuild, and memory for the index daemon."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.cli.doctor.checks.data_directory import existing
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.cli.doctor.offline_index import serving_directory
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.files import directory_size
from otterwiki_semantic.core.settings import Settings

_SPARE = 1.2
"""Free disk space that a rebuild needs, relative to its estimated size, as in `indexing.promotion`."""
_DAEMON_BYTES = 250e6
_MEMORY = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def check_resources(context: DoctorContext) -> Iterator[Finding]:
    """Check the disk of the data directory, and memory."""
    if context.settings is not None:
        yield _disk(context.settings)
    yield from _memory()


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
    """Return the size of a new index in bytes: that of the serving one, or an estimate from the pages."""
    serving = serving_directory(settings.data_dir)
    if serving is not None:
        return directory_size(serving)
    from otterwiki_semantic.content import Repository
    from otterwiki_semantic.embedding import open_embedder
    from otterwiki_semantic.indexing import estimate

    try:
        repository = Repository(settings.repository, settings.exclude)
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
    if limit.strip().isdigit() and used.strip().isdigit():  # "max": there is no limit
        found.append(max(0, int(limit) - int(used)))
    return min(found, default=None)


def _memory() -> Iterator[Finding]:
    paths = (_MEMORY, _CGROUP / "memory.max", _CGROUP / "memory.current")
    free = available_memory(*(path.read_text(errors="replace") if path.exists() else "" for path in paths))
    if free is None:
        return
    detail = f"{free / 1e6:.0f} MB are available; the index daemon needs about 250 MB for 250,000 words"
    if free < _DAEMON_BYTES:
        yield note("memory", detail, "unless it is running already, give the machine or the container more memory")
    else:
        yield ok("memory", detail)
