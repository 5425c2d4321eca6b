"""Generations: everything one way of indexing needs, in a directory of its own, and the pointer to the one that serves.

A way of indexing is a model, a chunking and a schema; its fingerprint tells it from others. A new generation is built beside
the serving one and takes its place by the exchange of one small file. Layout of the data directory::

    current                      the name of the serving generation
    generations/<name>/          catalog.sqlite3 and the ChromaDB directory that the catalog names
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from otterwiki_semantic.content.analysis import ANALYSIS_VERSION
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.embedding import Embedder, vector_fingerprint
from otterwiki_semantic.storage.catalog import SCHEMA
from otterwiki_semantic.storage.generation import CATALOG, Generation, OpenStore
from otterwiki_semantic.storage.vector_store import ChromaVectors

_MARK = 8
"""So many characters of its fingerprint a generation's name begins with."""

log = logging.getLogger(__name__)


def index_fingerprint(embedder: Embedder, profile: Profile) -> str:
    """Give what tells this way of indexing from others."""
    parts = (str(SCHEMA), vector_fingerprint(embedder, profile.heading_weight), profile.fingerprint, ANALYSIS_VERSION)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class GenerationStore:
    """The generations of one data directory."""

    def __init__(self, data_dir: Path, open_store: OpenStore = ChromaVectors, watcher: Telemetry = NO_TELEMETRY) -> None:
        self.place = data_dir
        self._pointer = data_dir / "current"
        self._root = data_dir / "generations"
        self._open_store = open_store
        self._watcher = watcher
        self._root.mkdir(parents=True, exist_ok=True)

    def current(self) -> Generation | None:
        """Open the serving generation, or the newest whole one if the pointer is lost.

        None when there is none, or it is damaged (the reason is logged).
        """
        try:
            name = self._pointer.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            name = ""
        if name and _is_file(self._root / name / CATALOG):
            return self._open(self._root / name)
        catalogs = sorted(self._root.glob(f"*/{CATALOG}"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in catalogs:
            log.warning("%s does not tell which index serves; looking at %s", self._pointer, path.parent)
            generation = self._open(path.parent)
            if generation is not None and generation.catalog.meta("commit") is not None:
                self.serve(generation)
                return generation
            if generation is not None:
                generation.close()
        return None

    def _open(self, directory: Path) -> Generation | None:
        try:
            return Generation(directory, self._open_store, self._watcher)
        except CatalogCorruptError as error:
            log.warning("the index is damaged and is built again: %s", error)
            return None

    def create(self, embedder: Embedder, profile: Profile) -> Generation:
        """Make a new, empty generation; it does not serve yet."""
        mark = index_fingerprint(embedder, profile)
        with self._new_directory(mark) as directory:
            generation = Generation(directory, self._open_store, self._watcher)
            generation.catalog.set_meta("fingerprint", mark)
            generation.catalog.set_meta("recipe", vector_fingerprint(embedder, profile.heading_weight))
        return generation

    def copy(self, serving: Generation) -> Generation:
        """Make a generation with a copy of another one's catalog, whose ChromaDB is filled later; it does not serve yet.

        The other one goes on being read and written; a copy of one whose pages are changing is as after a crash: its next sync
        puts it right. Errors: `CatalogCorruptError` if there is anything wrong with the copy.
        """
        with self._new_directory(serving.fingerprint or "") as directory:
            serving.catalog.copy_to(directory / CATALOG)
            generation = Generation(directory, self._open_store, self._watcher)
            try:
                generation.catalog.check_copy()
                generation.fill_later()
            except BaseException:
                generation.catalog.close()
                raise
        return generation

    @contextmanager
    def _new_directory(self, mark: str) -> Iterator[Path]:
        """Lend a directory for a new generation, which goes if that fails."""
        directory = self._root / f"{mark[:_MARK]}-{uuid.uuid4().hex[:8]}"
        directory.mkdir(parents=True)
        try:
            yield directory
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise

    def serve(self, generation: Generation) -> None:
        """Make this generation the serving one, in one step that a crash cannot halve."""
        scratch = self._pointer.with_suffix(".new")
        with scratch.open("w", encoding="ascii") as stream:
            stream.write(f"{generation.name}\n")
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(self._pointer)

    def points_to(self, generation: Generation) -> bool:
        """Whether this generation is the one that the next start opens."""
        try:
            return self._pointer.read_text(encoding="ascii").strip() == generation.name
        except (OSError, ValueError):
            return False

    def unfinished(self, mark: str, serving: Generation) -> Generation | None:
        """Open what is left of a build with a fingerprint beside the serving generation, to go on with; None without one."""
        for directory in self._root.glob(f"{mark[:_MARK]}-*"):
            generation = self._open(directory) if directory.name != serving.name else None
            if generation is not None and generation.fingerprint == mark:
                return generation
            if generation is not None:
                generation.close()
        return None

    def remove_others(self, serving: Generation | None, but: str = "") -> None:
        """Remove every generation but the serving one, and what is left of builds with the fingerprint `but`.

        Only when none is being built.
        """
        self._pointer.with_suffix(".new").unlink(missing_ok=True)
        for directory in self._root.iterdir():
            is_kept = but and directory.name.startswith(f"{but[:_MARK]}-")
            if not is_kept and (serving is None or directory.name != serving.name):
                shutil.rmtree(directory, ignore_errors=True)
        if serving is not None:
            serving.remove_other_stores()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a damaged pointer may hold any name
        return False
