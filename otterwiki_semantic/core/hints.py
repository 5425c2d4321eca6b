"""Remedies for errors, which the status, the API and the doctor show next to the message."""

from __future__ import annotations

import errno

from otterwiki_semantic.core import errors
from otterwiki_semantic.core.records.status import Problem

_FREE_DISK = "make room on the disk of the data directory, or set SEMANTIC_DATA_DIR to another one; indexing then continues"
SHOW_CAPITALS = (
    "set RETAIN_PAGE_NAME_CASE=True and restart the wiki, or switch it on in its preferences; or rename the files to lower case"
)
_HINTS: dict[type[BaseException], str] = {
    errors.ConfigError: "correct the setting and restart the wiki; its log has the value, and otterwiki-semantic doctor checks "
    "all settings",
    errors.RepositoryError: "make sure that REPOSITORY is a git repository that the wiki's user may read; git is tried again "
    "automatically",
    errors.DiskFullError: _FREE_DISK,
    errors.CatalogCorruptError: "no action needed: the index is rebuilt automatically; if this happens again, check the disk",
    errors.CatalogError: "make sure that the wiki's user may write to the data directory and that its disk works; this is "
    "retried",
    errors.VectorStoreRefusedError: "correct the SEMANTIC_CHROMA settings and restart the wiki, or give it access to the "
    "server, which is tried again every 30 s",
    errors.VectorStoreUnreachableError: "start the ChromaDB server, or correct SEMANTIC_CHROMA_URL; it is tried again every "
    "30 s",
    errors.VectorStoreError: "no action needed: ChromaDB is refilled automatically; if this happens again, check the disk",
    errors.ModelUnreachableError: "make sure that the model's server or hub can be reached, or correct the SEMANTIC_MODEL "
    "settings; it is tried again automatically, and searches answer by words until then",
    errors.ModelError: "install the package, or correct the SEMANTIC_MODEL setting, as the message says; if it is about "
    "the bundled model, install otterwiki-semantic again",
    errors.RerankerError: "make sure that the reranker works, or correct the SEMANTIC_RERANKER settings; it is tried again "
    "every 30 s, and answers keep their usual order until then",
    errors.RebuildRefusedError: "make room on the disk, or unset SEMANTIC_EVAL_QUERIES, as the message asks, then reindex",
    errors.ParameterError: "correct the file that SEMANTIC_EVAL_QUERIES names",
    errors.DaemonUnavailableError: "correct what the message names, or see owner.log in the data directory; the next request "
    "starts the index daemon again",
}
"""The first class that an error is an instance of applies."""
_DEFAULT = "see owner.log in the data directory; it is tried again automatically"


def problem(error: BaseException) -> Problem:
    """Return an error and its remedy, for the person who runs the wiki."""
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Problem(str(error), _FREE_DISK)
    remedy = next((remedy for kind, remedy in _HINTS.items() if isinstance(error, kind)), _DEFAULT)
    return Problem(str(error) or type(error).__name__, remedy)
