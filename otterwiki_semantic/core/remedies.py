"""What is wrong with the index, in words, and what to do about it."""

from __future__ import annotations

import errno

from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    DaemonUnavailableError,
    DiskFullError,
    ModelError,
    ModelUnreachableError,
    ParameterError,
    RebuildRefusedError,
    RepositoryError,
    RerankerError,
    VectorStoreError,
    VectorStoreRefusedError,
    VectorStoreUnreachableError,
)
from otterwiki_semantic.core.records.status import Problem

_ROOM = "make room on the disk of the data directory, or set SEMANTIC_DATA_DIR to another one; the index goes on by itself"
_HINTS: tuple[tuple[type[BaseException], str], ...] = (
    (RepositoryError, "see that REPOSITORY is a git repository that the wiki's user may read; git is asked again by itself"),
    (DiskFullError, _ROOM),
    (CatalogCorruptError, "nothing: it is built again by itself; if this comes back, look at the disk"),
    (CatalogError, "see that the wiki's user may write to the data directory and that its disk works; it is tried again"),
    (VectorStoreRefusedError, "do what it says and start the wiki again; the server is asked again every 30 s"),
    (VectorStoreUnreachableError, "start the ChromaDB server, or correct SEMANTIC_CHROMA_URL; it is asked again every 30 s"),
    (VectorStoreError, "nothing: ChromaDB is filled again by itself; if this comes back, look at the disk"),
    (ModelUnreachableError, "do what it says; the model is asked again by itself, and words answer meanwhile"),
    (ModelError, "do what it says; if it is about the bundled model, install the package again"),
    (RerankerError, "do what it says; answers have their usual order meanwhile, and it is asked again every 30 s"),
    (RebuildRefusedError, "do what it says, then reindex"),
    (ParameterError, "correct the file that SEMANTIC_EVAL_QUERIES names"),
    (DaemonUnavailableError, "do what it says; the next request starts the index process again"),
)
_DEFAULT = "see owner.log in the data directory; it is tried again by itself"


def problem(error: BaseException) -> Problem:
    """Give what an error means for the person who runs the wiki."""
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Problem(str(error), _ROOM)
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), _DEFAULT)
    return Problem(str(error) or type(error).__name__, hint)
