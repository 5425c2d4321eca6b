"""A disk cache of attached files' Markdown, by content id: equal and renamed files are converted once."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from otterwiki_semantic.core.files import make_private, write_atomically
from otterwiki_semantic.core.records import FileKind

_VERSION = 1
"""Increased when the same file is converted to another text."""
DIRECTORY = "attachments"


class AttachmentText(NamedTuple):
    """The result of converting a file."""

    markdown: str
    problem: str | None
    """What is missing from the text; a sentence about the file."""


class AttachmentTexts:
    """A directory of texts. Texts that cannot be read or written count as missing."""

    def __init__(self, data_dir: Path, ocr: str | None = None) -> None:
        self._directory = data_dir / DIRECTORY
        self._ocr = ocr

    def get(self, blob: str, kind: FileKind) -> AttachmentText | None:
        """Return the text of a file, or None if it has not been converted yet."""
        with suppress(OSError, ValueError, TypeError):
            return AttachmentText(*json.loads(self._path(blob, kind).read_bytes()))
        return None

    def put(self, blob: str, kind: FileKind, text: AttachmentText) -> None:
        """Store the text of a file."""
        with suppress(OSError):
            make_private(self._directory)
            write_atomically(self._path(blob, kind), json.dumps(text))

    def prune(self, blobs: Collection[str]) -> None:
        """Delete the texts of all files except those with the ids in `blobs`."""
        with suppress(OSError):
            for path in self._directory.iterdir():
                if path.name.partition(".")[0] not in blobs:
                    path.unlink(missing_ok=True)

    def _path(self, blob: str, kind: FileKind) -> Path:
        read_with = f".{self._ocr}" if kind in {FileKind.IMAGE, FileKind.PDF} and self._ocr else ""
        return self._directory / f"{blob}.{kind}{read_with}.{_VERSION}.json"
