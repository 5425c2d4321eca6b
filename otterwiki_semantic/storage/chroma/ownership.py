"""Whose a collection on a ChromaDB server is: each process that uses one leaves its mark there, and a note of it here.

Several wikis may share a server, and a data directory may be copied: a backup restored beside it, a cloned container. Whoever
opens a collection whose mark is not in its own notes knows that a copy has gone on with it since, leaves it alone, and begins
another one. What a crash leaves behind is told from what others use by the same notes.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from otterwiki_semantic.core.errors import VectorStoreRefusedError
from otterwiki_semantic.core.files import write_atomically

_MARK = "otterwiki_holder"
"""The name of the mark in a collection's metadata."""

log = logging.getLogger(__name__)


class CollectionOwnership:
    """The collections that a data directory began at one `place`, which is a database of a server; safe for several threads.

    The file has, by place and name, the inode of the data directory that began the collection, and the marks it may carry: the
    last one, and the one that is just being put in its stead. Errors: `VectorStoreRefusedError` if it cannot be written.
    """

    def __init__(self, file: Path, place: str) -> None:
        self._file = file
        self._place = place
        self._mark = uuid.uuid4().hex
        self._changing = threading.Lock()
        self._used: set[str] = set()
        self._notes = _read(file)

    def use(self, name: str) -> None:
        """Say that a collection is in use by this process, and no stray."""
        with self._changing:
            self._used.add(name)

    def let_go(self, name: str) -> None:
        """Say that a collection is not in use any more."""
        with self._changing:
            self._used.discard(name)

    def begin(self, name: str) -> dict[str, str]:
        """Note that this process is about to mark a collection; gives the metadata to mark it with."""
        with self._changing:
            marks = self._marks(name)
            if self._mark not in marks:
                self._note(name, [*marks, self._mark])
        return {_MARK: self._mark}

    def settle(self, name: str) -> None:
        """Note that a collection carries the mark of this process."""
        with self._changing:
            if self._marks(name) != [self._mark]:
                self._note(name, [self._mark])

    def forget(self, name: str) -> None:
        """Note that a collection is gone, or another's."""
        with self._changing:
            if self._here().pop(name, None) is not None:
                self._write()

    def knows(self, name: str) -> bool:
        """Whether this data directory has ever begun a collection of this name, and not forgotten it."""
        return name in self._here()

    def has_marked(self, metadata: Mapping[str, Any] | None) -> bool:
        """Whether a collection's metadata have the mark of this process."""
        return (metadata or {}).get(_MARK) == self._mark

    def may_take(self, name: str, metadata: Mapping[str, Any] | None) -> bool:
        """Whether a collection's metadata have a mark of this data directory, that is, nobody else has used it since.

        A mark that was put there when the server had another address counts, too.
        """
        with self._changing:
            marks = {mark for here in self._notes.values() for mark in here.get(name, {}).get("marks", ())}
        return (metadata or {}).get(_MARK) in marks

    def strays(self) -> list[str]:
        """Give the collections that are not in use, and were begun by this data directory, not by one that it is a copy of."""
        inode = self._inode()
        with self._changing:
            return sorted(name for name, note in self._here().items() if name not in self._used and note["inode"] == inode)

    def _here(self) -> dict[str, Any]:
        here: dict[str, Any] = self._notes.setdefault(self._place, {})
        return here

    def _marks(self, name: str) -> list[str]:
        marks: list[str] = self._here().get(name, {}).get("marks", [])
        return marks

    def _note(self, name: str, marks: list[str]) -> None:
        self._here()[name] = {"inode": self._inode(), "marks": marks}
        self._write()

    def _inode(self) -> int:
        try:
            return self._file.parent.stat().st_ino
        except OSError:
            return 0

    def _write(self) -> None:
        try:
            write_atomically(self._file, json.dumps(self._notes, indent=1))
        except OSError as error:
            raise VectorStoreRefusedError(
                f"{self._file} cannot be written ({error}), so no ChromaDB server is used: "
                "make room there, and let the wiki's user write to it"
            ) from error


def _read(file: Path) -> dict[str, dict[str, Any]]:
    """Give the notes; none if there are none that can be read."""
    try:
        notes: dict[str, dict[str, Any]] = json.loads(file.read_bytes())
        for note in (note for here in notes.values() for note in here.values()):
            if not (isinstance(note["inode"], int) and isinstance(note["marks"], list)):
                raise TypeError(note)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        log.warning("%s cannot be read (%s); other collections are begun on the ChromaDB server", file, error)
        return {}
    return notes
