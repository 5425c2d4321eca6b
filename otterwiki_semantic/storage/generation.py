"""Generations: an index consists of a catalog and the mirror of its vectors in ChromaDB.

Each generation has its own directory. A new one is built next to the serving one, and replaces it by exchanging one small file.
Layout of the data directory::

    current                      the name of the serving generation
    previous                     the name of the generation before it, if kept
    generations/<name>/          catalog.sqlite3 and the ChromaDB directory that the catalog names
    chroma                       a link to the ChromaDB directory of the last complete collection, for other programs
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from otterwiki_semantic.content.analysis import ANALYSIS_VERSION
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.errors import CatalogCorruptError, CatalogError, IndexUnavailableError
from otterwiki_semantic.core.files import directory_size, write_atomically
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.settings import Settings, index_settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Telemetry
from otterwiki_semantic.embedding import Embedder, Matrix, model_config, vector_fingerprint
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.chroma.mirror import OpenStore, VectorMirror
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerStore
from otterwiki_semantic.storage.exact_index import ChunkRef, ExactIndex
from otterwiki_semantic.storage.filters import FilterMask
from otterwiki_semantic.storage.schema import SCHEMA_VERSION
from otterwiki_semantic.storage.vector_store import DEFAULT_SPEC, CollectionSpec

_CATALOG = "catalog.sqlite3"
EXACT, EXACT_FLOAT32 = 500_000, 100_000
"""Up to this many chunks, as int8 or float32, search is exact: some milliseconds slower, with perfect recall."""
READ_FOR_SEARCH = 20_000
"""How many vectors on disk to compare when ChromaDB cannot answer a search: 0.1 s if they are cached."""
_READ_FOR_NEIGHBOUR = 2
"""Vectors that can be read from disk in the time that ChromaDB takes for one more neighbour."""
PUBLIC_LINK = "chroma"
_SETTINGS = "settings"
_LOADING_SECONDS = 10.0
"""How long a search waits for the index to be loaded: less than the 15 s after which nobody reads its answer."""
_PREFIX_LENGTH = 8

log = logging.getLogger(__name__)


class Nearest(NamedTuple):
    """The chunks nearest to a vector with their cosine similarities, in no order."""

    found: list[tuple[ChunkRef, float]]
    is_whole: bool
    """Whether `found` contains every chunk that passes."""
    degraded: str | None = None


class Generation:
    """One index: a catalog, and the mirror of its vectors in ChromaDB. The constructor raises the catalog's errors."""

    def __init__(
        self,
        path: Path,
        open_store: OpenStore = EmbeddedChromaStore,
        telemetry: Telemetry = NO_TELEMETRY,
        spec: CollectionSpec = DEFAULT_SPEC,
        exact_up_to: float = EXACT,
        vectors: str = "auto",
    ) -> None:
        """`spec` describes a new collection; `vectors` is the format in memory, or `disk` to leave vectors on disk."""
        self.path = path
        self.name = path.name
        self.catalog = Catalog(path / _CATALOG, vectors)
        self.settings: dict[str, Any] = json.loads(self.catalog.meta(_SETTINGS) or "{}")
        """The settings it was created with (`core.settings.index_settings`); empty if it is new or from an older version."""
        if self.settings:
            spec = replace(spec, model=model_config(self.settings))
        self.mirror = VectorMirror(self.catalog, path, spec, open_store, telemetry)
        self._exact_up_to = exact_up_to
        self._loading = threading.Lock()

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the recipe that the index was built with."""
        return self.catalog.meta("fingerprint")

    @cached_property
    def vector_fingerprint(self) -> str | None:
        """The fingerprint of the vectors; see `embedding.vector_fingerprint`. It never changes, and every search reads it."""
        return self.catalog.meta("recipe")

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """The languages for stemming pages and queries. They never change."""
        return tuple((self.catalog.meta("languages") or ENGLISH).split(","))

    def nearest(self, vector: Matrix, count: int, mask: FilterMask | None = None) -> Nearest:
        """Return about `count` chunks nearest to a vector.

        Search is exact up to `exact_up_to` chunks, and while the mirror is not current. Above that, ChromaDB returns enough
        neighbours that `count` probably pass the mask. Vectors on disk are read if there are few, or if ChromaDB lacks few.
        """
        self.mirror.note_search()
        index = mask.index if mask else self.catalog.reader.exact_index()
        size = mask.size if mask else index.size
        wanted = min(index.size, mask.oversample(count)) if mask and size else count
        found = None
        if index.in_memory is None:
            if size > _READ_FOR_NEIGHBOUR * wanted:
                found = self._nearest_with_disk(index, vector, count, mask, wanted)
        elif size > self._exact_up_to:
            found = self._nearest_in_chroma(index, vector, mask, wanted)
        return found or _nearest_of(index, vector, count, mask)

    def _nearest_in_chroma(
        self, index: ExactIndex, vector: Matrix, mask: FilterMask | None, wanted: int, *, may_lack: bool = False
    ) -> Nearest | None:
        """Return the nearest `wanted` that pass the mask, or None if ChromaDB cannot be used now."""
        distances = self.mirror.query(vector, wanted, may_lack=may_lack)
        if distances is None:
            return None
        candidates = self.catalog.reader.candidates(distances)
        passing = index.candidates([each.id for each in candidates], mask.mask) if mask else candidates
        return Nearest([(each, 1 - distances[each.vector]) for each in passing], is_whole=len(distances) < wanted)

    def _nearest_with_disk(
        self, index: ExactIndex, vector: Matrix, count: int, mask: FilterMask | None, wanted: int
    ) -> Nearest | None:
        """Return the nearest in ChromaDB and, if few, among what it lacks; None if ChromaDB fails and all can be read."""
        lacking = self.catalog.outbox.lacking(READ_FOR_SEARCH + 1)
        nearest = self._nearest_in_chroma(index, vector, mask, wanted, may_lack=True)
        if nearest is None:
            why = f"ChromaDB does not answer: {self.mirror.error or 'it is being compared with the catalog'}"
            is_few = (mask.size if mask else index.size) <= READ_FOR_SEARCH
            return None if is_few else Nearest([], is_whole=False, degraded=f"{why}; what only meaning finds is missing")
        if len(lacking) > READ_FOR_SEARCH:
            return nearest._replace(degraded="ChromaDB is being filled; some of what only meaning finds is missing")
        others = FilterMask.of(index, index.mask_of_chunks(lacking) & (mask.mask if mask else index.live))
        found = dict(nearest.found) | dict(_nearest_of(index, vector, count, others).found)
        return Nearest(list(found.items()), nearest.is_whole)

    def warm_up(self) -> None:
        """Load what a search reads, so that the first search is not slow."""
        try:
            with self._loading, self.catalog.snapshot():
                self.catalog.reader.page_names()
                self.catalog.keywords.warm_up(self.catalog.reader.exact_index())
        except CatalogError as error:
            log.info("the index is loaded by the first search: %s", error)

    def wait_until_loaded(self) -> None:
        """Wait while `warm_up` runs. Errors: `IndexUnavailableError` if that takes longer than a client waits for an answer."""
        if not self._loading.acquire(timeout=_LOADING_SECONDS):
            raise IndexUnavailableError("the index is being loaded into memory; try again in a minute")
        self._loading.release()

    def compact(self) -> None:
        """Return unused space to the disk, and save what the next start has to load."""
        self.catalog.compact()
        self.catalog.reader.exact_indexes.save()

    def close(self) -> None:
        """Close the catalog and the vector store."""
        try:
            self.mirror.close()
        finally:
            self.catalog.close()

    def destroy(self) -> None:
        """Close the generation and remove its files."""
        self.mirror.store.destroy()
        self.catalog.close()
        shutil.rmtree(self.path, ignore_errors=True)


def _nearest_of(index: ExactIndex, vector: Matrix, count: int, mask: FilterMask | None) -> Nearest:
    found = index.nearest(vector, count, mask.mask if mask else None)
    return Nearest(found, is_whole=len(found) < count)


def index_fingerprint(embedder: Embedder, profile: Profile, languages: Sequence[str] = (ENGLISH,)) -> str:
    """Return the fingerprint of an index: schema, model, chunk profile and analysis of words."""
    parts = (
        str(SCHEMA_VERSION),
        vector_fingerprint(embedder, profile.heading_weight),
        profile.fingerprint,
        ANALYSIS_VERSION,
        *(languages if tuple(languages) != (ENGLISH,) else ()),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class GenerationStore:
    """The generations of one data directory."""

    def __init__(
        self,
        data_dir: Path,
        open_generation: Callable[[Path], Generation] = Generation,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """`open_generation` opens or creates a generation in a directory; `settings` are recorded in new ones."""
        self.data_dir = data_dir
        self._pointer = data_dir / "current"
        self._previous_pointer = data_dir / "previous"
        self._settings = settings or {}
        self._root = data_dir / "generations"
        self._open_generation = open_generation
        self._root.mkdir(parents=True, exist_ok=True)

    def open_current(self) -> Generation | None:
        """Open the serving generation, or the newest complete one if the pointer is lost; None if there is none, or corrupt."""
        current = self._named_in(self._pointer)
        if current is not None:
            return self._open(current)
        catalogs = sorted(self._root.glob(f"*/{_CATALOG}"), key=lambda path: path.stat().st_mtime, reverse=True)
        for path in catalogs:
            log.warning("%s does not tell which index serves; looking at %s", self._pointer, path.parent)
            generation = self._open(path.parent)
            if generation is not None and generation.catalog.meta("commit") is not None:
                self.set_current(generation)
                return generation
            if generation is not None:
                generation.close()
        return None

    def _open(self, path: Path) -> Generation | None:
        try:
            return self._open_generation(path)
        except CatalogCorruptError as error:
            log.warning("the index is damaged and is built again: %s", error)
            return None

    def create(self, embedder: Embedder, profile: Profile, languages: Sequence[str] = (ENGLISH,)) -> Generation:
        """Create an empty generation, which does not serve yet."""
        fingerprint = index_fingerprint(embedder, profile, languages)
        with self._new_directory(fingerprint) as path:
            generation = self._open_generation(path)
            generation.catalog.set_meta("fingerprint", fingerprint)
            self.refresh_settings(generation)
            generation.catalog.set_meta("languages", ",".join(languages))
            generation.catalog.set_meta("recipe", vector_fingerprint(embedder, profile.heading_weight))
        return generation

    def copy(self, serving: Generation) -> Generation:
        """Create a generation with a copy of the serving catalog and an empty mirror; it does not serve yet.

        `serving` may change meanwhile; the copy's next sync continues. Errors: `CatalogCorruptError` if the copy is damaged.
        """
        with self._new_directory(serving.fingerprint or "") as path:
            serving.catalog.copy_to(path / _CATALOG)
            generation = self._open_generation(path)
            try:
                generation.catalog.check_copy()
                generation.mirror.start_collection()
            except BaseException:
                generation.catalog.close()
                raise
        return generation

    @contextmanager
    def _new_directory(self, fingerprint: str) -> Iterator[Path]:
        path = self._root / f"{fingerprint[:_PREFIX_LENGTH]}-{uuid.uuid4().hex[:8]}"
        path.mkdir(parents=True)
        try:
            yield path
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise

    def set_current(self, generation: Generation) -> None:
        """Select the serving generation."""
        write_atomically(self._pointer, f"{generation.name}\n")

    def refresh_settings(self, generation: Generation) -> None:
        """Record the current settings in a generation that they describe, as its model server's address may have changed."""
        if generation.catalog.is_current and generation.settings != self._settings:
            generation.catalog.set_meta(_SETTINGS, json.dumps(self._settings))
            generation.settings = dict(self._settings)

    def set_previous(self, generation: Generation | None) -> None:
        """Select the replaced generation to preserve for a rollback, or None."""
        if generation is None:
            self._previous_pointer.unlink(missing_ok=True)
        else:
            write_atomically(self._previous_pointer, f"{generation.name}\n")

    def open_previous(self, serving: Generation) -> Generation | None:
        """Open the generation kept for a rollback, or return None if no rollback is possible."""
        path = self._named_in(self._previous_pointer)
        generation = self._open(path) if path is not None and path.name != serving.name else None
        if generation is not None and (not generation.settings or generation.catalog.meta("commit") is None):
            generation.close()
            return None
        return generation

    def is_current(self, generation: Generation) -> bool:
        """Whether the next start opens this generation."""
        return self._named_in(self._pointer) == generation.path

    def open_unfinished(self, fingerprint: str, serving: Generation) -> Generation | None:
        """Open an interrupted build with this fingerprint, next to the serving generation; None if there is none."""
        for path in self._root.glob(f"{fingerprint[:_PREFIX_LENGTH]}-*"):
            generation = self._open(path) if path.name != serving.name else None
            if generation is not None and generation.fingerprint == fingerprint:
                return generation
            if generation is not None:
                generation.close()
        return None

    def remove_others(self, serving: Generation | None, unfinished: str = "") -> None:
        """Remove all generations except the serving one and interrupted builds with the fingerprint `unfinished`.

        Also keeps the one with the published collection, and the previous one if the disk has room for another of its size.
        """
        self._pointer.with_suffix(".new").unlink(missing_ok=True)
        previous = self._named_in(self._previous_pointer)
        if previous is not None and shutil.disk_usage(self._root).free < directory_size(previous):
            log.warning("the disk has no room to keep the index that was replaced, %s", previous.name)
            self.set_previous(None)
            previous = None
        link = self.data_dir / PUBLIC_LINK
        published = link.readlink().parent.name if link.is_symlink() else None
        kept = {serving.name, published, previous and previous.name} if serving is not None else set()
        for path in self._root.iterdir():
            is_unfinished = unfinished and path.name.startswith(f"{unfinished[:_PREFIX_LENGTH]}-")
            if path.name not in kept and not is_unfinished:
                shutil.rmtree(path, ignore_errors=True)

    def remove_collections(self, generation: Generation) -> None:
        """Remove the collections of a generation that does not serve, except a published one."""
        link = self.data_dir / PUBLIC_LINK
        for path in generation.path.glob("chroma-*"):
            if not (link.is_symlink() and link.resolve() == path.resolve()):
                shutil.rmtree(path, ignore_errors=True)

    def _named_in(self, pointer: Path) -> Path | None:
        """Return the directory of the generation that a file names; a corrupt one may contain anything."""
        try:
            path = self._root / pointer.read_text(encoding="ascii").strip()
            return path if (path / _CATALOG).is_file() else None
        except (OSError, ValueError):
            return None


def open_generations(settings: Settings, telemetry: Telemetry) -> GenerationStore:
    """Return the generations in the data directory, without opening any."""
    facts = index_settings(settings)
    vectors = settings.vectors
    if vectors == "auto" and settings.vector_search == "chroma" and settings.chroma_url is not None:
        vectors = "disk"
    largest = EXACT_FLOAT32 if vectors == "float32" else EXACT
    open_generation = partial(
        Generation,
        open_store=_store_opener(settings),
        telemetry=telemetry,
        spec=CollectionSpec(settings.collection, settings.chroma_documents, model_config(facts)),
        exact_up_to={"auto": largest, "exact": math.inf, "chroma": 0.0}[settings.vector_search],
        vectors=vectors,
    )
    return GenerationStore(settings.data_dir, open_generation, facts)


def _store_opener(settings: Settings) -> OpenStore:
    if settings.chroma_url is None:
        is_searched = settings.vector_search == "chroma" or settings.vectors == "disk"
        return partial(EmbeddedChromaStore, link=settings.data_dir / PUBLIC_LINK, is_searched=is_searched)
    tenant, database = settings.chroma_database.split("/")
    server = ChromaServer(settings.chroma_url, settings.chroma_token, tenant, database, settings.chroma_ca)
    ownership = CollectionOwnership(settings.data_dir / "chroma-server.json", server.place)

    def open_on_server(directory: Path, spec: CollectionSpec) -> ChromaServerStore:
        return ChromaServerStore(server, f"{spec.name}-{directory.parent.name}-{directory.name}", ownership, spec)

    return open_on_server
