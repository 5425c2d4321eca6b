"""A ChromaDB collection embedded in this process."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from otterwiki_semantic.core.errors import VectorStoreError
from otterwiki_semantic.storage.vector_store import HNSW, CollectionSpec, VectorStore

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

log = logging.getLogger(__name__)


class EmbeddedChromaStore(VectorStore):
    """A persistent collection in its own directory, which no other process may have open while this one writes.

    `link` is the public location: a symbolic link to the directory of the published collection.
    """

    def __init__(self, directory: Path, spec: CollectionSpec, link: Path | None = None) -> None:
        super().__init__(str(directory), spec)
        self.directory = directory
        self._link = link
        self._is_unlinked = False
        self._client: Client | None = None
        self._opened: Collection | None = None

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
            client, self._client, self._opened = self._client, None, None
        if client is not None:
            with self._translate_errors("close the database"):
                client.close()

    def manifest(self) -> str | None:
        """Return a digest of the names, sizes and modification times of the files, after syncing them to disk."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.directory.rglob("*") if path.is_file()):
            with path.open("rb") as file:
                os.fsync(file.fileno())
                facts = os.fstat(file.fileno())
            digest.update(f"{path.relative_to(self.directory)}/{facts.st_size}/{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def destroy(self) -> None:
        try:
            self.close()
        except VectorStoreError as error:  # a broken database may fail to close; remove its files anyway
            log.warning("ChromaDB did not close %s: %s", self.directory, error)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _open(self) -> Collection:
        with self._opening:
            self._check_open()
            if self._opened is None:
                import chromadb
                from chromadb.config import Settings

                settings = Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")
                self._client = cast("Client", chromadb.PersistentClient(self.place, settings=settings))
                self._opened = self._client.get_or_create_collection(
                    self.name,
                    configuration={"hnsw": HNSW},
                    metadata=self._own_metadata() or None,
                    embedding_function=self._embedding_function,
                )
            return self._opened

    def _translate(self, action: str, error: BaseException) -> VectorStoreError:
        return VectorStoreError(f"ChromaDB could not {action} in {self.place}: {error}")
