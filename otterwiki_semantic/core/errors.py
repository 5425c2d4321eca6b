"""Every error this package raises on purpose.

SemanticError
├── ConfigError            a setting is unknown or has a value that is not allowed
├── ModelError             the embedding model cannot be used: files are missing or damaged, an answer makes no sense
│   └── ModelUnreachableError  the server of the embedding model is down, slow or refuses; it may be asked again later
├── RerankerError          the reranker cannot be used, or did not answer in time
├── RepositoryError        git cannot be run, or the directory is not a git repository
├── CatalogError           the catalog cannot be used now
│   ├── CatalogCorruptError  the catalog file is damaged, gone, or no catalog
│   └── DiskFullError        there is no room left on the disk
├── VectorStoreError       ChromaDB cannot read or write the collection
│   └── VectorStoreUnreachableError  the ChromaDB server is down, slow, or not one
│       └── VectorStoreRefusedError  it cannot be used as the settings have it
├── MapError               the map of the wiki cannot be made
├── MetricsError           no figures are kept for Prometheus
├── ParameterError         a request's parameter is missing or not allowed
├── NotFoundError          something that was named is not there; has the names that are nearest
│   ├── PageNotFoundError     the wiki, or the index, has no such page
│   ├── RevisionNotFoundError git has no such commit
│   ├── SectionNotFoundError  a page has no such section
│   └── AmbiguousSectionError  several sections of a page have the name
├── RebuildRunningError    a rebuild was asked for while one runs
├── RebuildRefusedError    a rebuild cannot begin, or its result is not good enough to serve
├── DaemonUnavailableError  the process that owns the index does not answer
│   └── DaemonMismatchError   it is of another version or of other settings than its client
│       └── DaemonForeignError    it is of another repository
└── IndexUnavailableError  the index cannot answer now
"""

from __future__ import annotations

from collections.abc import Sequence


class SemanticError(Exception):
    """Base of every error of this package; its text is made to be shown to a person."""


class ConfigError(SemanticError):
    """A setting is unknown or has a value that is not allowed."""


class ModelError(SemanticError):
    """The embedding model cannot be used: its files are missing or damaged, or what it answers makes no sense."""


class ModelUnreachableError(ModelError):
    """The server of the embedding model is down, slow or refuses; it may be asked again later."""


class RerankerError(SemanticError):
    """The reranker cannot be used, or did not answer in time; the ranking stays as it was."""


class RepositoryError(SemanticError):
    """Git cannot be run, or the directory is not a git repository."""


class CatalogError(SemanticError):
    """The catalog cannot be used now, for instance because the disk is full; it may be later."""


class CatalogCorruptError(CatalogError):
    """The catalog file is damaged, gone, or no catalog; the index has to be built again."""


class DiskFullError(CatalogError):
    """There is no room left on the disk, or a quota is used up."""


class VectorStoreError(SemanticError):
    """ChromaDB cannot read or write the collection; it has to be filled again from the catalog."""


class VectorStoreUnreachableError(VectorStoreError):
    """The ChromaDB server cannot be reached now; its collection is as it was, and may be asked again later."""


class VectorStoreRefusedError(VectorStoreUnreachableError):
    """The ChromaDB server cannot be used as the settings have it; its text says what to do."""


class MapError(SemanticError):
    """The map of the wiki cannot be made; its text says what to do."""


class MetricsError(SemanticError):
    """No figures are kept for Prometheus; its text says what to do."""


class ParameterError(SemanticError):
    """A request's parameter is missing or not allowed."""


class NotFoundError(SemanticError):
    """Something that was named is not there, or more than once. `nearest` has names that are, the likeliest first."""

    def __init__(self, message: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)


class PageNotFoundError(NotFoundError):
    """The wiki, or the index, has no such page."""


class RevisionNotFoundError(NotFoundError):
    """Git has no such commit."""


class SectionNotFoundError(NotFoundError):
    """A page has no such section."""


class AmbiguousSectionError(NotFoundError):
    """Several sections of a page have the name."""


class RebuildRunningError(SemanticError):
    """A rebuild was asked for while one runs."""


class RebuildRefusedError(SemanticError):
    """A rebuild cannot begin because the disk has no room for it, or its result is not good enough to serve."""


class DaemonUnavailableError(SemanticError):
    """The process that owns the index does not answer."""


class DaemonMismatchError(DaemonUnavailableError):
    """The owner is of another version than its client, or of another repository; its client may wait for its end."""


class DaemonForeignError(DaemonMismatchError):
    """The owner is of another repository: two wikis name one data directory, unless it is about to end."""


class IndexUnavailableError(SemanticError):
    """The index cannot answer now."""
