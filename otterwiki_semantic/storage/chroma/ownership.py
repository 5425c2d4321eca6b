"""Collection ownership: detects a copied data directory that writes to the same collection of a ChromaDB server.

Several wikis may share a server, and a data directory may be copied, as when a container is cloned. Each process writes a token
into the metadata of the collections that it uses, and records the token in a file. A collection with an unrecorded token has
been used by a copy since: it is left alone, and a new one is created. A copy is also known by the inode of the data directory.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from otterwiki_semantic.core.errors import VectorStoreRefusedError
from otterwiki_semantic.core.files import read_record, write_atomically

_TOKEN_KEY = "otterwiki_holder"
"""The key of the token in a collection's metadata."""

log = logging.getLogger(__name__)


class _Record(msgspec.Struct):
    """The record of a collection: the inode of the data directory, its possible tokens, and its name before publication."""

    inode: int
    marks: list[str]
    created_as: str = ""


class CollectionOwnership:
    """The collections that a data directory has created at `place`, a database of a server; safe for several threads.

    Errors: `VectorStoreRefusedError` if the file with the records cannot be written.
    """

    def __init__(self, file: Path, place: str) -> None:
        self._file = file
        self._token = uuid.uuid4().hex
        self._changing = threading.Lock()
        self._used: set[str] = set()
        records = dict[str, dict[str, _Record]]
        self._records = read_record(file, records, "other collections are begun on the ChromaDB server") or {}
        self._here = self._records.setdefault(place, {})

    def use(self, name: str) -> None:
        """Record in memory that this process uses a collection, so that it does not count as stray."""
        with self._changing:
            self._used.add(name)

    def release(self, name: str) -> None:
        """Record in memory that this process no longer uses a collection."""
        with self._changing:
            self._used.discard(name)

    def claim(self, name: str) -> dict[str, str]:
        """Record that this process is about to write its token to a collection; return the metadata with the token."""
        with self._changing:
            tokens = self._tokens(name)
            if self._token not in tokens:
                self._record(name, [*tokens, self._token])
        return {_TOKEN_KEY: self._token}

    def confirm(self, name: str) -> None:
        """Record that a collection has this process's token."""
        with self._changing:
            if self._tokens(name) != [self._token]:
                self._record(name, [self._token])

    def publish(self, name: str, public: str) -> None:
        """Record that a collection is about to get its public name. Call `forget` with the old name afterwards."""
        with self._changing:
            self._here[public] = _Record(self._inode(), self._tokens(name), name)
            self._write()
            self._used = self._used - {name} | {public}

    def is_published(self, name: str, public: str) -> bool:
        """Whether the collection created as `name` was published as `public`."""
        return public in self._here and self._here[public].created_as == name

    def forget(self, name: str) -> None:
        """Record that a collection is gone, or belongs to another data directory."""
        with self._changing:
            if self._here.pop(name, None) is not None:
                self._write()

    def knows(self, name: str) -> bool:
        """Whether this data directory has created a collection with this name and not forgotten it."""
        return name in self._here

    def holds(self, metadata: Mapping[str, Any] | None) -> bool:
        """Whether a collection's metadata contain this process's token."""
        return (metadata or {}).get(_TOKEN_KEY) == self._token

    def may_claim(self, name: str, metadata: Mapping[str, Any] | None) -> bool:
        """Whether a collection has a token of this data directory, at any server address: nobody else has used it since."""
        with self._changing:
            tokens = {token for place in self._records.values() if name in place for token in place[name].marks}
        return (metadata or {}).get(_TOKEN_KEY) in tokens

    def strays(self) -> list[str]:
        """Return the unused collections that this data directory has created, not the directory that it is a copy of."""
        inode = self._inode()
        with self._changing:
            return sorted(name for name, record in self._here.items() if name not in self._used and record.inode == inode)

    def _tokens(self, name: str) -> list[str]:
        return self._here[name].marks if name in self._here else []

    def _record(self, name: str, tokens: list[str]) -> None:
        created_as = self._here[name].created_as if name in self._here else ""
        self._here[name] = _Record(self._inode(), tokens, created_as)
        self._write()

    def _inode(self) -> int:
        try:
            return self._file.parent.stat().st_ino
        except OSError:
            return 0

    def _write(self) -> None:
        try:
            write_atomically(self._file, json.dumps(msgspec.to_builtins(self._records), indent=1))
        except OSError as error:
            raise VectorStoreRefusedError(
                f"{self._file} cannot be written ({error}), so no ChromaDB server is used: "
                "make room there, and let the wiki's user write to it"
            ) from error
