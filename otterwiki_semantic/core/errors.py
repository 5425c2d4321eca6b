"""Every error that this package raises on purpose."""

from __future__ import annotations

from collections.abc import Sequence


class SemanticError(Exception):
    """Base of every error of this package; its message is written for people."""

    code = "index_unavailable"
    """The error's code in the API."""


class ConfigError(SemanticError):
    """A setting is unknown or has a value that is not allowed. `public` is the message without the value, maybe a secret."""

    def __init__(self, message: str, public: str = "") -> None:
        super().__init__(message)
        self.public = public or message


class ModelError(SemanticError):
    """The embedding model cannot be used: its files are missing or damaged, or its answers make no sense."""


class ModelUnreachableError(ModelError):
    """The server of the embedding model is down, slow or refuses; it may answer later."""


class RerankerError(SemanticError):
    """The reranker cannot be used, or did not answer in time; the ranking stays unchanged."""


class ChatModelError(SemanticError):
    """The model that writes answers is down, slow, refuses, or answers nothing of use; the sources can be read without it."""

    code = "model_unavailable"


class PageChangedError(SemanticError):
    """A page is not as in the revision that a change is based on; `diff` is what has changed since."""

    code = "page_changed"

    def __init__(self, message: str, revision: str, diff: str) -> None:
        super().__init__(message)
        self.revision = revision
        """The last commit that changed the page."""
        self.diff = diff


class AnswersDisabledError(SemanticError):
    """`SEMANTIC_ANSWERS` is not set: nothing writes answers."""

    code = "answers_disabled"


class RateLimitError(SemanticError):
    """An account or an address has asked too much; the message says when it may ask again."""

    code = "rate_limited"


class AskNotFoundError(SemanticError):
    """There is no answer with this id, or no longer."""


class RepositoryError(SemanticError):
    """Git cannot be run, or the directory is not a git repository."""


class CatalogError(SemanticError):
    """The catalog cannot be used now, for instance because the disk is full; it may work later."""


class CatalogCorruptError(CatalogError):
    """The catalog file is damaged, missing, or not a catalog; the index has to be rebuilt."""


class DiskFullError(CatalogError):
    """There is no room left on the disk, or a quota is used up."""


class VectorStoreError(SemanticError):
    """ChromaDB cannot read or write the collection; it has to be refilled from the catalog."""


class VectorStoreUnreachableError(VectorStoreError):
    """The ChromaDB server cannot be reached now; its collection is unchanged, and may answer later."""


class VectorStoreRefusedError(VectorStoreUnreachableError):
    """The ChromaDB server cannot be used with these settings; the message says what to do."""


class MapError(SemanticError):
    """The map of the wiki cannot be made; the message says what to do."""


class MetricsError(SemanticError):
    """No metrics are kept for Prometheus; the message says what to do."""

    code = "package_missing"


class AttachmentError(SemanticError):
    """An attached file cannot be read; the message ends a sentence that begins with the file."""


class LimitExceededError(SemanticError):
    """A function took more time or memory than it may; the message ends a sentence that begins with what it worked on."""


class PageUnreadableError(SemanticError):
    """A page cannot be parsed within the limits of time and memory."""

    code = "page_unreadable"


class ParameterError(SemanticError):
    """A request's parameter is missing or not allowed."""

    code = "invalid_parameter"


class NotFoundError(SemanticError):
    """Something that was named does not exist, or more than once. `nearest` has names that do, the likeliest first."""

    code = "not_found"
    nearest_field: str | None = None
    """The field of the API's answer that has the nearest names."""

    def __init__(self, message: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)


class PageNotFoundError(NotFoundError):
    """The wiki, or the index, has no such page."""

    code = "page_unknown"
    nearest_field = "pages"


class PageExcludedError(PageNotFoundError):
    """A page is left out of the index."""


class RevisionNotFoundError(NotFoundError):
    """Git has no such commit."""

    code = "revision_unknown"


class SectionNotFoundError(NotFoundError):
    """A page has no such section."""

    code = "section_unknown"
    nearest_field = "sections"


class AmbiguousSectionError(NotFoundError):
    """Several sections of a page have the name."""

    code = "section_ambiguous"
    nearest_field = "sections"


class JobNotFoundError(NotFoundError):
    """There is no job with an id, or no longer."""

    code = "job_unknown"


class FindingNotFoundError(NotFoundError):
    """The report on the wiki's health has no such finding."""

    code = "finding_unknown"


class DismissalError(SemanticError):
    """What is dismissed cannot be stored; the message says why."""


class RebuildRunningError(SemanticError):
    """A rebuild was asked for while one runs."""

    code = "reindex_running"


class RollbackError(SemanticError):
    """There is no earlier index to return to."""

    code = "no_rollback"


class RebuildRefusedError(SemanticError):
    """A rebuild cannot begin because the disk has no room for it, or its result is not good enough to serve."""

    code = "disk_full"


class DaemonUnavailableError(SemanticError):
    """The index daemon does not answer."""


class DaemonMismatchError(DaemonUnavailableError):
    """The daemon is of another version or of other settings than its client, which may wait until it has ended."""


class DaemonForeignError(DaemonMismatchError):
    """The daemon is of another repository: two wikis share one data directory, unless it is about to end."""


class IndexUnavailableError(SemanticError):
    """The index cannot answer now."""
