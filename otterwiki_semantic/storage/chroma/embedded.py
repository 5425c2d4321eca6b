"""A ChromaDB collection on this machine, opened in a process of its own.

ChromaDB holds the interpreter lock while it writes, takes 100 MB, and can crash on damaged files. In another process it neither
delays nor ends searches.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreUnreachableError
from otterwiki_semantic.core.worker_process import UNLIMITED, WorkerProcess
from otterwiki_semantic.storage.vector_store import HNSW, CollectionSpec, VectorStore, embedding_function

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

_IDLE_SECONDS = 30.0
_NICENESS = 10
_CALL_SECONDS = 600.0
"""Of processor time, for one request."""

log = logging.getLogger(__name__)
_collections: dict[str, Collection] = {}
"""In the process that opens them: the open collections, by directory."""


class EmbeddedChromaStore(VectorStore):
    """A persistent collection in its own directory, which no other process may have open while this one writes.

    `link` is the public location: a symbolic link to the directory of the published collection. If searches use the store,
    its process has normal priority and stays.
    """

    def __init__(self, directory: Path, spec: CollectionSpec, link: Path | None = None, *, is_searched: bool = False) -> None:
        super().__init__(str(directory), spec)
        self.directory = directory
        self._link = link
        self._is_unlinked = False
        self._worker = WorkerProcess(None if is_searched else _IDLE_SECONDS, 0 if is_searched else _NICENESS, UNLIMITED)

    @property
    def name(self) -> str:
        return self.spec.name

    def publish(self) -> None:
        if self._link is None:
            return
        target = os.path.relpath(self.directory, self._link.parent)
        if self._link.is_symlink() and str(self._link.readlink()) == target:
            return
        new = self._link.with_suffix(".new")
        try:
            new.unlink(missing_ok=True)
            new.symlink_to(target)
            new.replace(self._link)
        except OSError as error:
            if not self._is_unlinked:
                log.warning("%s does not lead to the collection: %s; remove what is there", self._link, error)
            self._is_unlinked = True
            with suppress(OSError):
                new.unlink(missing_ok=True)

    def close(self) -> None:
        with self._opening:
            self._is_closed = True
        self._worker.close()

    def destroy(self) -> None:
        self.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def stay_open(self) -> None:
        self._worker.idle_seconds = None

    def _open(self) -> Collection:
        with self._opening:
            self._check_open()
            return cast("Collection", _RemoteCollection(self._worker, self.place, self.spec, self._own_metadata()))

    def _translate(self, action: str, error: BaseException) -> VectorStoreError:
        # ChromaDB's own errors are RuntimeErrors; an OSError means that its process cannot be started now
        kind = VectorStoreUnreachableError if isinstance(error, OSError) else VectorStoreError
        return kind(f"ChromaDB could not {action} in {self.place}: {error}")


class _RemoteCollection:
    """The methods of a collection that another process has open."""

    def __init__(self, worker: WorkerProcess, place: str, spec: CollectionSpec, metadata: dict[str, Any]) -> None:
        self._worker = worker
        self._opened_with = place, spec, metadata

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            return self._worker.call(_CALL_SECONDS, _call, *self._opened_with, method, *arguments, **keywords)

        return call


def _call(place: str, spec: CollectionSpec, metadata: dict[str, Any], method: str, /, *arguments: Any, **keywords: Any) -> Any:
    """Call a method of a collection, which is opened first, in the process that has it open.

    Errors: `RuntimeError`, as ChromaDB's own cannot always be sent to another process.
    """
    try:
        if place not in _collections:
            _collections[place] = _opened(place, spec, metadata)
        return getattr(_collections[place], method)(*arguments, **keywords)
    except BaseException as error:  # ChromaDB's core panics with an exception outside Exception
        raise RuntimeError(str(error) or type(error).__name__) from error


def _opened(place: str, spec: CollectionSpec, metadata: dict[str, Any]) -> Collection:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(place, Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint=""))
    return client.get_or_create_collection(
        spec.name, configuration={"hnsw": HNSW}, metadata=metadata or None, embedding_function=embedding_function(spec)
    )
