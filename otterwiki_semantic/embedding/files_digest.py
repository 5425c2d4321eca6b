"""What tells a model's files apart from others."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from otterwiki_semantic.errors import ModelError


def digest_of(directory: Path, files: Iterable[Path]) -> str:
    """Give a digest of the names, as they are below the directory, and contents of files. Errors: `ModelError`."""
    whole = hashlib.sha256()
    for path in sorted(files):
        try:
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"the model file {path} cannot be read: {error}") from error
        whole.update(f"{path.relative_to(directory)}\0{content}\0".encode("utf-8", errors="surrogateescape"))
    return whole.hexdigest()[:24]
