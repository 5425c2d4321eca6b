"""The mirror of a catalog's vectors in a vector store, and the handling of store failures."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TypeVar

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    SemanticError,
    VectorStoreError,
    VectorStoreRefusedError,
    VectorStoreUnreachableError,
)
from otterwiki_semantic.core.records import ChromaFill, ChromaState
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.vector_store import CollectionSpec, VectorStore

T = TypeVar("T")

_REST_SECONDS = 30.0
"""How long to leave a store alone that is unreachable or breaks repeatedly."""
_SEARCHED_SECONDS = 2.0
_UPSERTS, _UPSERTS_WHILE_SEARCHED = 100, 16
"""Vectors per write, which takes about 1 ms for each. During searches, writes are small, and each is followed by a pause of the
same duration, because both need a processor, and searches in the store wait for writes.
"""
_DELETES = 200
_MAX_TOMBSTONES, _MAX_TOMBSTONES_SHARE = 300, 0.15
"""The most tombstones that a collection may have: this number, or this share of its vectors."""
_PROBES, _PROBED_RESULTS = 16, 10
_MISSED_SHARE = 0.25
"""The share of probes that a sound collection may miss: among a million vectors, HNSW does not find all of its own."""
_SAME = 1e-3
"""Cosine distance below which two vectors are equal except for rounding."""

_DIRECTORY, _SPEC, _WHOLE = "chroma", "chroma spec", "chroma whole"
"""Facts in the catalog: the collection's directory, its specification, and when it was last whole."""

OpenStore = Callable[[Path, CollectionSpec], VectorStore]
"""Returns the store in a directory; the store opens on first use."""

log = logging.getLogger(__name__)


class MirrorState(Enum):
    """What a mirror's store holds; see `VectorMirror`."""

    UNVERIFIED = "unknown"
    FILLING = "verified, but may lack vectors"
    CURRENT = "every vector of the catalog, so searches may use it"
    RESTING = "it failed, and is left alone for a while"


class VectorMirror:
    """The vectors of a catalog in a vector store, filled from the catalog's outbox.

    ==========  =========  ==========================  =============  ============  ==========  =======================
    State       verify()   push()                      expect_more()  unreachable   broken      otherwise
    ==========  =========  ==========================  =============  ============  ==========  =======================
    UNVERIFIED  FILLING    verifies, then as FILLING                  RESTING       UNVERIFIED
    FILLING                CURRENT once it lacks none                 RESTING       UNVERIFIED
    CURRENT                stays CURRENT               FILLING        RESTING       UNVERIFIED  compact(): UNVERIFIED
    RESTING                                                                                     after 30 s: UNVERIFIED
    ==========  =========  ==========================  =============  ============  ==========  =======================

    An empty store replaces a broken one; if a second one breaks within 30 s, its replacement rests. A collection is published,
    and the previous one removed, once it is whole: current, with all metadata, and without deleted vectors. Thread-safe; one
    thread pushes at a time.
    """

    def __init__(
        self, catalog: Catalog, directory: Path, spec: CollectionSpec, open_store: OpenStore, telemetry: Telemetry
    ) -> None:
        self._catalog = catalog
        self._directory = directory
        self._spec = spec
        self._digest = hashlib.sha256(json.dumps(asdict(spec), sort_keys=True).encode()).hexdigest()[:16]
        self._open_store = open_store
        self._telemetry = telemetry
        self._writing = threading.Lock()
        self._state = MirrorState.UNVERIFIED
        self.error: SemanticError | None = None
        """Why the store is not used now, or None if it is used or will be in a moment."""
        self.publication_error: SemanticError | None = None
        """Why the collection lacks its public name, or None if it has the name or will get it."""
        self._count: int | None = None
        self._whole_at: tuple[str | None] | None = None
        """The commit at which the store was whole, or None if it was written to since."""
        self._rest = Cooldown(_REST_SECONDS)
        self._replaced_lately = Cooldown(_REST_SECONDS)
        self._searched_lately = Cooldown(_SEARCHED_SECONDS)
        name = catalog.meta(_DIRECTORY)
        self.store = open_store(directory / name, spec) if name else self._open_new()
        """The current store; replaced if it breaks."""
        if catalog.is_current and catalog.meta(_SPEC) != self._digest:
            self.start_collection()

    @property
    def state(self) -> MirrorState:
        if self._state is MirrorState.RESTING and not self._rest.is_active:
            self._state = MirrorState.UNVERIFIED
        return self._state

    @property
    def is_current(self) -> bool:
        """Whether the store holds every vector of the catalog."""
        return self.state is MirrorState.CURRENT

    @property
    def fill(self) -> ChromaFill:
        """How much of the catalog the store holds."""
        pending, outdated = self._catalog.outbox.count() if self._catalog.is_current else (0, 0)
        current = ChromaState.FILLING if pending else ChromaState.READY  # the caller's snapshot may be of an earlier moment
        state = {MirrorState.CURRENT: current, MirrorState.RESTING: ChromaState.RESTING}.get(self.state)
        whole_at, _, whole_commit = (self._catalog.meta(_WHOLE) or "").partition(" ")
        return ChromaFill(
            state=state or ChromaState.FILLING,
            pending=pending,
            count=self._count,
            outdated=outdated,
            collection=self.store.name,
            complete_at=whole_at or None,
            complete_commit=whole_commit or None,
        )

    @property
    def is_whole(self) -> bool:
        """Whether the store holds exactly the contents of the catalog."""
        return self.is_current and self._whole_at == (self._catalog.commit,)

    @property
    def retry_in(self) -> float:
        """Seconds until the store may be used; 0 if it may be used now."""
        return self._rest.remaining if self.state is MirrorState.RESTING else 0.0

    def note_search(self) -> None:
        """Record a search: for two seconds, writes are small and pause in between."""
        self._searched_lately.start()

    def query(self, vector: Matrix, count: int, *, may_lack: bool = False) -> dict[str, float] | None:
        """Return the ids of the `count` nearest vectors with their distances, or None if the store cannot be used now.

        `may_lack` allows vectors of the outbox to be missing. Errors: `VectorStoreError` if the store is broken; pass it to
        `handle_failure` outside `Catalog.snapshot`.
        """
        store = self.store
        if not (self._is_open if may_lack else self.is_current) or count > store.max_results:
            return None
        store.stay_open()
        try:
            return store.query(vector, count)
        except VectorStoreUnreachableError as error:
            self.handle_failure(store, error)
            return None

    def verify(self) -> None:
        """Compare the store with the catalog, and add differences to the outbox.

        Errors: `VectorStoreError` if the store must be replaced, because it fails or does not find its own vectors.
        """
        if self.state is not MirrorState.UNVERIFIED:
            return
        store = self.store
        wrong = self._catalog.outbox.reconcile(store.ids())
        if wrong:
            log.warning("ChromaDB differed from the catalog's record in %d vectors; correcting it from the catalog", wrong)
        probes = self._catalog.outbox.sample_sent(_PROBES)
        lost = [each for each in probes if min(store.query(each.embedding, _PROBED_RESULTS).values(), default=2.0) > _SAME]
        if len(lost) > _MISSED_SHARE * len(probes):
            raise VectorStoreError(
                f"ChromaDB does not find {len(lost)} of {len(probes)} of its own vectors, such as {lost[0].id} ({store.place})"
            )
        self._state = MirrorState.FILLING
        store.remove_strays()

    def push(self, seconds: float = math.inf, check_stop: Callable[[], None] = lambda: None) -> None:
        """Send the outbox to the store: upserts and updates for up to `seconds`, then deletes.

        A failing store is handled, not raised. `check_stop` runs before every write, and may raise to end the work.
        """
        store, outbox, has_documents = self.store, self._catalog.outbox, self.store.spec.has_documents
        try:
            self.verify()
            end = time.monotonic() + seconds
            send, update = partial(self._send, store, check_stop), store.update if has_documents else lambda _: None
            send(lambda: outbox.upserts(self._batch, documents=has_documents), store.upsert, outbox.mark_upserted, end)
            send(lambda: outbox.updates(self._batch), update, outbox.mark_updated, end)
            send(lambda: outbox.deletes(_DELETES), store.delete, outbox.mark_deleted, math.inf)
            self._end_push()
        except VectorStoreError as error:
            check_stop()  # a closed store also fails
            self.handle_failure(store, error)

    @property
    def _is_open(self) -> bool:
        return self.state in {MirrorState.FILLING, MirrorState.CURRENT}

    @property
    def _batch(self) -> int:
        return _UPSERTS_WHILE_SEARCHED if self._searched_lately.is_active else _UPSERTS

    def _send(
        self,
        store: VectorStore,
        check_stop: Callable[[], None],
        select: Callable[[], list[T]],
        write: Callable[[list[T]], None],
        mark: Callable[[list[T]], None],
        end: float,
    ) -> None:
        """Write the selected items to the store in parts; during searches, pause after each part for as long as it took."""
        while time.monotonic() < end and self._is_open and (items := select()):
            check_stop()
            start = time.monotonic()
            with self._writing:
                if self.store is not store:  # another thread has replaced it
                    return
                self._whole_at = None
                write(items)
                mark(items)
            if self._searched_lately.is_active and len(items) == _UPSERTS_WHILE_SEARCHED:
                time.sleep(time.monotonic() - start)

    def _end_push(self) -> None:
        with self._writing:
            if not self._is_open:
                return
            self._count = self.store.count()
            self._state = MirrorState.FILLING if self._catalog.outbox.upserts(1, documents=False) else MirrorState.CURRENT
            self.error = None
            if self.is_current and not (self.is_whole or self._catalog.outbox.updates(1)):
                self._publish()

    def _publish(self) -> None:
        """Publish the collection, which is whole, and record that in its metadata."""
        commit = self._catalog.commit
        if commit is None:
            self._whole_at = (commit,)
            return
        self.store.describe(commit, self._catalog.outbox.dimension)
        try:
            self.store.publish()
            self.publication_error = None
        except VectorStoreRefusedError as error:
            if self.publication_error is None:
                log.warning("%s", error)
            self.publication_error = error
        for others in self._directory.glob("chroma-*"):
            if others.name != self._catalog.meta(_DIRECTORY):
                shutil.rmtree(others, ignore_errors=True)
        self._catalog.set_meta(_WHOLE, f"{datetime.now(UTC).isoformat(timespec='seconds')} {commit}")
        self._whole_at = (commit,)

    def expect_more(self) -> None:
        """Stop using the store for searches, because the outbox is about to get more vectors."""
        if self.state is MirrorState.CURRENT:
            self._state = MirrorState.FILLING

    def handle_failure(self, store: VectorStore, error: VectorStoreError) -> None:
        """Continue without a failed store. An unreachable store rests; an empty one replaces a broken one."""
        self._telemetry.record_failure(Failure.VECTOR_STORE)
        if isinstance(error, VectorStoreUnreachableError):
            self._start_rest(error)
            return
        try:
            with self._writing:
                if self.store is not store:  # another thread has replaced it
                    return
                self.start_collection()
        except CatalogCorruptError:
            raise
        except CatalogError as failure:
            self._start_rest(failure)
            return
        store.destroy()
        log.warning("%s; filling it again from the catalog", error)
        if self._replaced_lately.is_active:
            self._start_rest(error)
        self._replaced_lately.start()

    def _start_rest(self, error: SemanticError) -> None:
        if self.error is None:
            log.warning("%s; searching the catalog's vectors meanwhile", error)
        self.error = error
        self._rest.start()
        self._state = MirrorState.RESTING

    def start_collection(self) -> None:
        """Start an empty collection, to be filled with all vectors. The previous one stays public until then."""
        self._state = MirrorState.UNVERIFIED
        self._whole_at = self._count = None
        self._catalog.outbox.refill()
        self.store = self._open_new()

    def _open_new(self) -> VectorStore:
        """Return the store of a new collection, in its own directory, and record its name in the catalog."""
        name = f"chroma-{uuid.uuid4().hex[:8]}"
        self._catalog.set_meta(_DIRECTORY, name)
        self._catalog.set_meta(_SPEC, self._digest)
        return self._open_store(self._directory / name, self._spec)

    def compact(self) -> None:
        """Refill a collection with many tombstones, in a new directory."""
        tombstones = self._catalog.outbox.tombstones
        limit = max(_MAX_TOMBSTONES, _MAX_TOMBSTONES_SHARE * self._catalog.counts().vectors)
        if tombstones > limit and self.is_current:
            log.info("ChromaDB still takes space for %d deleted vectors; it is refilled from the catalog", tombstones)
            with self._writing:
                self.store.close()
                self.start_collection()

    def close(self) -> None:
        """Close the store, ignoring failures."""
        with self._writing, suppress(VectorStoreError):
            self.store.close()
