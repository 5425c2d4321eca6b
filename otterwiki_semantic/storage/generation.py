"""A generation: one index, which is a catalog and its vectors in ChromaDB, and what is done when ChromaDB fails."""

from __future__ import annotations

import logging
import math
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    SemanticError,
    VectorStoreError,
    VectorStoreUnreachableError,
)
from otterwiki_semantic.core.telemetry import NO_TELEMETRY, Failure, Telemetry
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.catalog import DEAD_PLACES, Catalog, StoredVector
from otterwiki_semantic.storage.exact import Candidate
from otterwiki_semantic.storage.reader import Allowed
from otterwiki_semantic.storage.vector_store import ChromaVectors, VectorStore

CATALOG = "catalog.sqlite3"
EXACT = 100_000
"""Up to so many passages each is compared: a few milliseconds more than ChromaDB takes, and none is missed."""
_ASKED_SECONDS = 2.0
_REST_SECONDS = 30.0
"""How long a ChromaDB that cannot be reached, or breaks again and again, is left alone."""
_MOST_DEATHS = 3
_STEADY_SECONDS = 600.0
"""A process that had ChromaDB open for so long and was killed then did not die of it."""
_SEAL, _DEATHS = "chroma files", "deaths"
"""Notes in the catalog: the state of ChromaDB's files, and how many processes ended while they had them open."""
_FEW_DEAD, _DEAD_SHARE = 300, 0.15
"""Dead places that a collection may have: so many, or such a share of its vectors."""
_PROBES = 16
_NEAR = 10
_SAME = 1e-3
"""Cosine distance below which two vectors are one, rounding apart."""

OpenStore = Callable[[Path, str], VectorStore]
"""Makes the store of a directory and a collection's name; it is opened on first use."""

log = logging.getLogger(__name__)


class Nearest(NamedTuple):
    """Passages with their cosines. `is_whole` tells that there are no others."""

    found: list[tuple[Candidate, float]]
    is_whole: bool


class Generation:
    """One index: its catalog, and its vectors in ChromaDB.

    Searches look at the catalog's vectors until ChromaDB was seen to hold the same, and again whenever it fails. Errors of the
    constructor: those of the catalog.
    """

    def __init__(self, directory: Path, open_store: OpenStore = ChromaVectors, watcher: Telemetry = NO_TELEMETRY) -> None:
        self.directory = directory
        self.name = directory.name
        self.catalog = Catalog(directory / CATALOG)
        self._open_store = open_store
        self._watcher = watcher
        self._changing = threading.Lock()
        self._recipe: str | None = None
        self.is_refilling = True
        """Whether ChromaDB may lack vectors that the catalog has."""
        self.store_error: SemanticError | None = None
        """Why ChromaDB is not asked now; None if it is, or will be in a moment."""
        self._is_verified = False
        self._verified_at = 0.0
        self._is_sealed = True
        self._rests_until = 0.0
        self._asked_at = -math.inf
        self._last_reset = -math.inf
        self.fills_later = False
        """Whether ChromaDB is left alone until this generation serves."""
        self.vectors = self._vectors_of(self.catalog.meta("chroma") or self._new_chroma())

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint it was built with."""
        return self.catalog.meta("fingerprint")

    @property
    def recipe(self) -> str | None:
        """The fingerprint of what made its vectors: see `passages_fingerprint`. It never changes; each search asks."""
        if self._recipe is None:
            self._recipe = self.catalog.meta("recipe")
        return self._recipe

    def nearest(self, vector: Matrix, count: int, allowed: Allowed | None = None) -> Nearest:
        """Give the passages nearest to a vector, of all or of the allowed ones: about `count` of them.

        Up to 100,000 passages are compared one by one, and so are all while ChromaDB may lack some. Of more ChromaDB is asked,
        for as many as are likely to have enough that are allowed.
        """
        self._asked_at = time.monotonic()
        lookup = self.catalog.lookup
        flat = allowed.flat if allowed else lookup.flat()
        size = allowed.size if allowed else flat.size
        mask = allowed.mask if allowed else None
        wanted = min(flat.size, allowed.enough(count)) if allowed and size else count
        distances = (
            None
            if self.is_refilling or size <= EXACT or wanted > self.vectors.most_results
            else self._ask_chroma(vector, wanted)
        )
        if distances is None:
            found = flat.nearest(vector, count, mask)
            return Nearest(found, is_whole=len(found) < count)
        candidates = lookup.with_vectors(distances)
        passing = candidates if allowed is None else flat.candidates([each.id for each in candidates], mask)
        found = [(candidate, 1 - distances[candidate.vector]) for candidate in passing]
        return Nearest(found, is_whole=len(distances) < wanted)

    @property
    def is_asked(self) -> bool:
        """Whether somebody has searched in the last two seconds."""
        return time.monotonic() - self._asked_at < _ASKED_SECONDS

    def _ask_chroma(self, vector: Matrix, count: int) -> dict[str, float] | None:
        """Give the ids of the nearest vectors with their distances; None if ChromaDB cannot be reached."""
        store = self.vectors
        try:
            return store.query(vector, count)
        except VectorStoreUnreachableError as error:
            self.store_failed(store, error)
            return None

    def _vectors_of(self, chroma: str) -> VectorStore:
        return self._open_store(self.directory / chroma, f"otterwiki-{self.name}")

    def _new_chroma(self) -> str:
        name = f"chroma-{uuid.uuid4().hex[:8]}"
        self.catalog.set_meta("chroma", name)
        return name

    # Telling ChromaDB

    def vectors_to_store(self, limit: int) -> list[StoredVector]:
        """Give up to `limit` vectors that ChromaDB is to hold; none while it rests."""
        return [] if self.rests_for else self.catalog.vectors_to_store(limit)

    def store_vectors(self, vectors: Sequence[StoredVector]) -> None:
        """Store vectors in ChromaDB, and note that it holds them."""
        with self._changing:
            self._break_seal()
            self.vectors.upsert(vectors)
            self.catalog.mark_stored(vectors)

    def vectors_to_drop(self, limit: int) -> list[str]:
        """Give up to `limit` ids that ChromaDB is to forget; none while it rests."""
        return [] if self.rests_for else self.catalog.vectors_to_drop(limit)

    def drop_vectors(self, ids: Sequence[str]) -> None:
        """Let ChromaDB forget vectors, and note that it has."""
        with self._changing:
            self._break_seal()
            self.vectors.delete(ids)
            self.catalog.mark_dropped(ids)

    def end_refilling(self) -> None:
        """Note that ChromaDB lacks nothing, unless it rests or was replaced by an empty one meanwhile."""
        with self._changing:
            if not self.rests_for and self._is_verified:
                self.is_refilling = bool(self.catalog.vectors_to_store(1))
                self.store_error = None

    def note_files(self) -> None:
        """Note the state of ChromaDB's files, now that nothing writes to them, and that they killed nobody for long."""
        with self._changing:
            if not self.rests_for and self._is_verified:
                self._seal()
                if time.monotonic() - self._verified_at > _STEADY_SECONDS and self.catalog.meta(_DEATHS) is not None:
                    self.catalog.set_meta(_DEATHS, None)

    # When ChromaDB fails

    @property
    def rests_for(self) -> float:
        """Seconds for which ChromaDB is left alone; 0 if it may be asked."""
        return math.inf if self.fills_later else max(0.0, self._rests_until - time.monotonic())

    def verify_vectors(self) -> None:
        """See once that ChromaDB holds what the catalog says it does, and finds it; what differs is noted, to be put right.

        `VectorStoreError` if that cannot be put right: its files were changed while no process had them open (a damaged one can
        end the process that reads it), several processes in a row ended while they had them open, or vectors are not found.
        """
        if self._is_verified or self.rests_for:
            return
        store = self.vectors
        if (manifest := store.manifest()) is not None:
            self._check_files(manifest)
        wrong = self.catalog.note_stored(store.ids())
        if wrong:
            log.warning("ChromaDB did not hold %d vectors as noted; putting it right from the catalog", wrong)
        self.probe_vectors()
        self._is_verified, self._verified_at = True, time.monotonic()
        store.remove_strays()

    def _check_files(self, manifest: str) -> None:
        seal, deaths = self.catalog.meta(_SEAL), int(self.catalog.meta(_DEATHS) or 0)
        if seal is not None and seal != manifest:
            raise VectorStoreError(f"the files of ChromaDB were changed while it was closed ({self.vectors.place})")
        if deaths >= _MOST_DEATHS:
            raise VectorStoreError(
                f"{deaths} index processes in a row ended while they had ChromaDB open ({self.vectors.place})"
            )
        self.catalog.set_meta(_DEATHS, str(deaths + 1))
        self._break_seal()

    def _break_seal(self) -> None:
        if not self._is_sealed:
            return
        self.catalog.set_meta(_SEAL, None)
        self._is_sealed = False

    def _seal(self) -> None:
        """Note the state of ChromaDB's files while nothing writes to them."""
        if not self._is_sealed:
            self.catalog.set_meta(_SEAL, self.vectors.manifest())
            self._is_sealed = True

    def probe_vectors(self) -> None:
        """Search for some vectors that ChromaDB holds; `VectorStoreError` if it does not find one of them."""
        for vector in self.catalog.some_vectors(_PROBES):
            if min(self.vectors.query(vector.embedding, _NEAR).values(), default=2.0) > _SAME:
                raise VectorStoreError(f"ChromaDB does not find its own vector {vector.id} ({self.vectors.place})")

    def store_failed(self, failed: VectorStore, error: VectorStoreError) -> None:
        """Go on without ChromaDB: one that cannot be reached is asked later, a broken one is replaced by an empty one.

        One that breaks again soon rests, too.
        """
        self._watcher.record_failure(Failure.VECTOR_STORE)
        now = time.monotonic()
        if isinstance(error, VectorStoreUnreachableError):
            self._rest(now, error)
            return
        try:
            is_new = self.reset_vectors(failed)
        except CatalogCorruptError:
            raise
        except CatalogError as failure:
            self._rest(now, failure)
            return
        if is_new:
            log.warning("%s; filling it again from the catalog", error)
            if now - self._last_reset < _REST_SECONDS:
                self._rest(now, error)
            self._last_reset = now

    def _rest(self, now: float, error: SemanticError) -> None:
        if self.store_error is None:
            log.warning("%s; searching the catalog's vectors meanwhile", error)
        self.is_refilling, self._is_verified = True, False
        self.store_error, self._rests_until = error, now + _REST_SECONDS

    def reset_vectors(self, failed: VectorStore) -> bool:
        """Put an empty collection in place of the failed one, unless that has been done; tells whether it was done now.

        The next flush fills it from the catalog, without the model.
        """
        with self._changing:
            if self.vectors is not failed:
                return False
            self._begin_collection()
        failed.destroy()
        return True

    def _begin_collection(self) -> None:
        """Name an empty collection, which holds nothing yet of what the catalog has."""
        self.is_refilling, self._is_verified = True, False
        self.catalog.store_all_again()
        for note in (_SEAL, _DEATHS, DEAD_PLACES):
            self.catalog.set_meta(note, None)
        self._is_sealed = False
        self.vectors = self._vectors_of(self._new_chroma())

    def fill_later(self) -> None:
        """Begin an empty collection and leave it alone until `fills_later` is taken away; for one that serves nobody yet."""
        with self._changing:
            self._begin_collection()
            self.fills_later = True

    def tidy(self) -> None:
        """Give room back to the disk: the catalog's, and a collection's with many dead places, by beginning an empty one."""
        self.catalog.tidy()
        dead = int(self.catalog.meta(DEAD_PLACES) or 0)
        if dead > max(_FEW_DEAD, _DEAD_SHARE * self.catalog.counts().vectors) and not (self.is_refilling or self.rests_for):
            log.info("ChromaDB keeps the places of %d vectors that are gone; it is filled anew from the catalog", dead)
            self.reset_vectors(self.vectors)

    def remove_other_stores(self) -> None:
        """Remove what a replaced collection left when the process ended before it was gone."""
        for directory in self.directory.glob("chroma-*"):
            if directory.name != self.catalog.meta("chroma"):
                shutil.rmtree(directory, ignore_errors=True)

    def close(self) -> None:
        """Close the catalog and the database."""
        try:
            with self._changing, suppress(CatalogError, VectorStoreError):
                self.vectors.close()
                if self._is_verified:
                    self._is_sealed = False
                    self._seal()
                    self.catalog.set_meta(_DEATHS, None)
        finally:
            self.catalog.close()

    def destroy(self) -> None:
        """Close the generation and remove its files."""
        self.vectors.destroy()
        self.catalog.close()
        shutil.rmtree(self.directory, ignore_errors=True)
