"""Generated wikis and their indexes, kept in ``.bench`` and used again as long as they are what would be made now."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.support.corpus import page, write_pages
from benchmarks.support.local import opened, wait_until_settled
from benchmarks.support.options import ROOT
from benchmarks.support.processes import in_fresh_process
from benchmarks.support.report import say
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.storage.generation import GenerationStore, index_fingerprint
from tests.support.live_wiki import git, make_repository

KEPT = ROOT / ".bench"
_CHUNKS_A_PAGE = 8
_USUAL_PACE = 55.0
"""Chunks a second on two cores, to say beforehand how long a build will take."""
_LONG_SECONDS = 60.0
_LONGEST_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class BuiltWiki:
    """A wiki's git repository and the data directory of its index, which equals HEAD and which no process has open.

    `build_seconds` is what the first build of the index took, on the day `built_on`; None if that was not one build without a
    break.
    """

    repository: Path
    data_dir: Path
    pages: int
    chunks: int
    build_seconds: float | None
    built_on: str


def kept_place(pages: int) -> Path:
    """Return the directory of a generated wiki; another one for every other way of generating it."""
    mark = hashlib.blake2b("".join(page(number)[1] for number in range(16)).encode(), digest_size=4).hexdigest()
    return KEPT / f"wiki-{pages}-{mark}"


def generated(pages: int) -> Path:
    """Return the repository of a generated wiki: one commit, packed as after a clone."""
    repository = kept_place(pages) / "repository"
    if not repository.exists():
        write_repository(repository, pages)
    return repository


def write_repository(repository: Path, pages: int) -> None:
    """Make a git repository of a generated wiki: one commit, packed as after a clone."""
    half_made = repository.with_name(f"{repository.name}.new")
    shutil.rmtree(half_made, ignore_errors=True)
    make_repository(half_made, {})
    git(half_made, "config", "gc.auto", "0")
    write_pages(half_made, pages)
    git(half_made, "add", "-A")
    git(half_made, "commit", "-q", "-m", f"{pages} generated pages")
    git(half_made, "gc", "-q")
    half_made.rename(repository)


def built(pages: int, *, fresh: bool = False) -> BuiltWiki:
    """Return a generated wiki with its index, built now if none is kept that fits, or with `fresh`.

    An index that another version of the package made is brought up to date as it is for a user; a build that was broken off
    goes on.
    """
    repository, data_dir = generated(pages), kept_place(pages) / "index"
    record = data_dir.with_suffix(".json")
    if fresh:
        shutil.rmtree(data_dir, ignore_errors=True)
    state = _state(data_dir)
    if state == _wanted_state(repository) and record.is_file():
        return _read_record(record, repository, data_dir)
    if state is not None and record.is_file():
        say(f"the kept index of {pages:,} pages was made another way, and is brought up to date")
    else:
        _announce(pages)
    result = in_fresh_process(_build, repository, data_dir)
    wiki = result if state is None else replace(result, build_seconds=None)
    facts = {name: value for name, value in asdict(wiki).items() if name not in {"repository", "data_dir"}}
    record.write_text(json.dumps(facts), encoding="utf-8")
    return wiki


def copied(wiki: BuiltWiki, place: Path) -> BuiltWiki:
    """Return a copy of a wiki and its index, to change it; files keep their times, so that the index is taken as it is."""
    repository, data_dir = place / "repository", place / "index"
    shutil.copytree(wiki.repository, repository, symlinks=True)
    ignored = shutil.ignore_patterns("*.sock", "*.lock")
    shutil.copytree(wiki.data_dir, data_dir, symlinks=True, ignore=ignored)
    return replace(wiki, repository=repository, data_dir=data_dir)


@contextmanager
def scratch() -> Iterator[Path]:
    """Lend an empty directory beside the kept wikis, where there is room for copies of them."""
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=KEPT) as name:
        yield Path(name)


def _announce(pages: int) -> None:
    chunks = pages * _CHUNKS_A_PAGE
    seconds = chunks / _USUAL_PACE
    if seconds > _LONG_SECONDS:
        say(f"building an index of {pages:,} pages, about {chunks:,} chunks: some {seconds / 60:.0f} minutes on two cores.")
        say(f"It is kept in {KEPT} for later runs; SMALL=1 leaves it out, and one that is broken off goes on where it was.")
    else:
        say(f"building an index of {pages:,} pages")


def _state(data_dir: Path) -> tuple[str | None, str | None] | None:
    """Return how the index was made and the commit that it equals; None if there is no index."""
    if not data_dir.is_dir():
        return None
    generation = GenerationStore(data_dir).open_current()
    if generation is None:
        return None
    try:
        return generation.fingerprint, generation.catalog.commit
    finally:
        generation.close()


def _wanted_state(repository: Path) -> tuple[str | None, str | None]:
    return index_fingerprint(BundledModel(), Profile()), Repository(repository).head()


def _read_record(record: Path, repository: Path, data_dir: Path) -> BuiltWiki:
    facts: Mapping[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    return BuiltWiki(repository, data_dir, **facts)


def _build(repository: Path, data_dir: Path) -> BuiltWiki:
    """Build the index, in the process that calls; the time is from before the index is opened until it is whole."""
    start = time.perf_counter()
    with opened(repository, data_dir) as index:
        status = wait_until_settled(index, _LONGEST_SECONDS)
        seconds = time.perf_counter() - start
    return BuiltWiki(repository, data_dir, status.pages, status.chunks, round(seconds, 3), time.strftime("%Y-%m-%d"))
