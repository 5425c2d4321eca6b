"""Every error that this package raises on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class SemanticError(Exception):
    """Base of every error in this package. Messages are written for people."""

    code = "index_unavailable"
    """The error's code in the API."""


class ConfigError(SemanticError):
    """A setting is unknown or has an invalid value. `public` is the message without the value, which may be a secret."""

    def __init__(self, message: str, public: str = "") -> None:
        super().__init__(message)
        self.public = public or message


class ModelError(SemanticError):
    """The embedding model cannot be used: its files are missing or damaged, or its answers are invalid."""


class ModelUnreachableError(ModelError):
    """The embedding model's server is down, slow or refuses; it may answer later."""


class ModelOpeningError(ModelUnreachableError):
    """The embedding model is still being opened; it answers as soon as that is done."""


class RerankerError(SemanticError):
    """The reranker cannot be used, or did not answer in time; the ranking stays unchanged."""


class ChatModelError(SemanticError):
    """The model that writes answers is down, slow, refuses, or returns nothing useful; the sources are still available."""

    code = "model_unavailable"


class PageChangedError(SemanticError):
    """A page differs from the revision that a change is based on; `diff` shows what has changed since."""

    code = "page_changed"

    def __init__(self, message: str, revision: str, diff: str) -> None:
        super().__init__(message)
        self.revision = revision
        """The last commit that changed the page."""
        self.diff = diff


class AnswersDisabledError(SemanticError):
    """`SEMANTIC_ANSWERS` is not set, so no answers are written."""

    code = "answers_disabled"


class RateLimitError(SemanticError):
    """An account or an address has sent too many requests; the message says when it may ask again."""

    code = "rate_limited"


class AskNotFoundError(SemanticError):
    """There is no answer with this id, or it has expired."""


class RepositoryError(SemanticError):
    """Git cannot be run, or the directory is not a git repository."""


class CatalogError(SemanticError):
    """The catalog cannot be used now, for example because the disk is full; it may work later."""


class CatalogClosedError(CatalogError):
    """The catalog is closed: another generation serves by now, or the index is being stopped."""


class CatalogCorruptError(CatalogError):
    """The catalog file is damaged, missing, or not a catalog; the index has to be rebuilt."""


class DiskFullError(CatalogError):
    """The disk is full, or a quota is used up."""


class VectorStoreError(SemanticError):
    """ChromaDB cannot read or write the collection; it has to be refilled from the catalog."""


class VectorStoreUnreachableError(VectorStoreError):
    """The ChromaDB server cannot be reached now; its collection is unchanged, and may answer later."""


class VectorStoreRefusedError(VectorStoreUnreachableError):
    """The ChromaDB server cannot be used with these settings; the message says what to do."""


class MapError(SemanticError):
    """The map of the wiki cannot be created; the message says what to do."""


class MetricsError(SemanticError):
    """No metrics are collected for Prometheus; the message says what to do."""

    code = "package_missing"


class AttachmentError(SemanticError):
    """An attached file cannot be read. The message continues a sentence that begins with the file."""


class LimitExceededError(SemanticError):
    """A function exceeded its limit of time or memory. The message continues a sentence that begins with its subject."""


class PageUnreadableError(SemanticError):
    """A page cannot be parsed within the limits of time and memory."""

    code = "page_unreadable"


class ParameterError(SemanticError):
    """A request parameter is missing or invalid. `parameter` is its name if its value cannot be parsed."""

    code = "invalid_parameter"

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter


class NotFoundError(SemanticError):
    """A name matches nothing, or several things. `nearest` has similar existing names, likeliest first."""

    code = "not_found"
    nearest_field: str | None = None
    """The field in the API's answer for the nearest names."""

    def __init__(self, message: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.nearest = tuple(nearest)


class PageNotFoundError(NotFoundError):
    """The wiki or the index has no such page."""

    code = "page_unknown"
    nearest_field = "pages"


class PageExcludedError(PageNotFoundError):
    """A page is excluded from the index."""


class RevisionNotFoundError(NotFoundError):
    """Git has no such commit."""

    code = "revision_unknown"


class SectionNotFoundError(NotFoundError):
    """A page has no such section."""

    code = "section_unknown"
    nearest_field = "sections"


class AmbiguousSectionError(NotFoundError):
    """Several sections of a page have this name."""

    code = "section_ambiguous"
    nearest_field = "sections"


class JobNotFoundError(NotFoundError):
    """There is no job with this id, or it has expired."""

    code = "job_unknown"


class FindingNotFoundError(NotFoundError):
    """The health report has no such finding."""

    code = "finding_unknown"


class DismissalError(SemanticError):
    """A dismissal cannot be stored; the message says why."""


class RebuildRunningError(SemanticError):
    """A rebuild was requested while one is running."""

    code = "reindex_running"


class RollbackError(SemanticError):
    """There is no earlier index to return to."""

    code = "no_rollback"


class RebuildRefusedError(SemanticError):
    """A rebuild cannot start for lack of disk space, or its result is not good enough to serve."""

    code = "disk_full"


class DaemonUnavailableError(SemanticError):
    """The index daemon does not answer."""


class DaemonMismatchError(DaemonUnavailableError):
    """The daemon has another version or other settings than its client, which may wait until it has exited."""


class DaemonForeignError(DaemonMismatchError):
    """The daemon serves another repository: two wikis share one data directory, unless it is about to exit."""


class IndexUnavailableError(SemanticError):
    """The index cannot answer now."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, the first cause last."""
    seen = set[int]()  # `raise error from error` is a circle
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
