"""Read pages for the API and for agents: whole, by section or by line.

The text comes from git, the links from the index. Text is parsed in a separate process, so that no page can block a server.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.markdown import read_front_matter
from otterwiki_semantic.content.pages import (
    check_not_excluded,
    find_page,
    page_excluded,
    page_not_found,
    parent_path,
    view_page,
)
from otterwiki_semantic.core.errors import (
    LimitExceededError,
    PageExcludedError,
    PageNotFoundError,
    PageUnreadableError,
    RevisionNotFoundError,
    SemanticError,
)
from otterwiki_semantic.core.parameter_parsing import MAX_PATH_CHARACTERS
from otterwiki_semantic.core.records import NO_URLS, FileKind, PageHistory, PageLinks, PageRequest, PageUrls, PageView
from otterwiki_semantic.core.settings import EXCLUDE
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.daemon.interface import IndexService

_SECONDS = 5.0
"""CPU seconds per page."""
_IDLE_SECONDS = 60.0


class _Source(NamedTuple):
    path: str
    """As spelled in git."""
    commit: str
    text: str
    kind: FileKind | None = None


class PageReader:
    """Read the pages of a repository, with the links from its index.

    Errors: `PageNotFoundError`, also for a page that is excluded from search, `RevisionNotFoundError`,
    `SectionNotFoundError`, `AmbiguousSectionError`, `ParameterError` for lines that do not exist, `PageUnreadableError`,
    errors of git.
    """

    def __init__(self, index: IndexService, repository: Repository) -> None:
        self._index = index
        self._repository = repository
        self._worker = WorkerProcess(_IDLE_SECONDS)

    def page(self, path: str, request: PageRequest, urls: PageUrls = NO_URLS) -> PageView:
        """Return a page as of HEAD or a revision: whole, or the requested sections and lines."""
        path, commit, text, kind = self._source(path, request.revision)
        try:
            if kind or request.revision is not None:
                self._check_head(parent_path(path) if kind else path)
            view = self._worker.call(_SECONDS, view_page, path, commit, text, request, kind, self._repository.notation)
        except LimitExceededError as error:
            raise PageUnreadableError(f"the page {path} cannot be read: parsing it {error}") from error
        last = next(iter(self._repository.commits(commit, path, 1, kind)), None)
        links, failure = self._links(path)
        return structs.replace(
            view,
            revision=last.revision if last else commit,
            last_commit=last,
            links_to=links.links_to,
            linked_from=links.linked_from,
            degraded=failure or None,
            url=urls.of(path, kind=kind),
        )

    def text(self, path: str) -> str:
        """Return the Markdown of a page as of HEAD."""
        return self._source(path, None).text

    def history(self, path: str, n: int) -> PageHistory:
        """Return the last `n` commits that changed a page."""
        path, commit, _, kind = self._source(path, None)
        self._check_head(parent_path(path) if kind else path)
        return PageHistory(path, tuple(self._repository.commits(commit, path, n, kind)))

    def check_not_excluded(self, path: str, text: str) -> None:
        """Raise `PageExcludedError` if a page with this text, which need not be in HEAD, would be excluded from search."""
        if self._repository.is_excluded(path):
            raise page_excluded(path, EXCLUDE)
        check_not_excluded(path, self._worker.call(_SECONDS, read_front_matter, text))

    def _check_head(self, path: str) -> None:
        """Raise `PageExcludedError` for a page that HEAD excludes, even if it was not excluded earlier."""
        head = self._repository.head()
        blob = self._repository.page_blob(head, path) if head else None
        if blob:
            check_not_excluded(path, self._worker.call(_SECONDS, read_front_matter, self._text(blob)))

    def _links(self, path: str) -> tuple[PageLinks, str]:
        """Return a page's links, and why they are missing if the index fails; the text is available without them."""
        try:
            return self._index.links(path), ""
        except PageExcludedError:  # the daemon may have other settings than this process
            raise
        except SemanticError as error:
            return PageLinks((), ()), f"the index cannot say which pages link here: {error}"

    def _source(self, path: str, revision: str | None) -> _Source:
        """Return a page, or an attached file, as of a commit. Errors: `PageNotFoundError`."""
        spellings, repository = _spellings(path), self._repository
        path, plain = spellings[0], spellings[-1]
        commit = repository.head() if revision is None else repository.resolve_commit(revision)
        if commit is None and revision is not None:
            raise RevisionNotFoundError(f"there is no revision {revision!r}")
        if commit is None:
            raise page_not_found("the wiki", plain, ())
        for each in spellings:
            if blob := repository.page_blob(commit, each):
                return _Source(each, commit, self._text(blob))
        blobs = repository.page_blobs(commit)
        if there := find_page(path, blobs):
            return _Source(there, commit, self._text(blobs[there]))
        files = repository.attachment_blobs(commit)
        if there := find_page(path, files):
            return self._file(commit, there, files[there])
        if find_page(plain, repository.excluded_pages(commit)):
            raise page_excluded(plain, EXCLUDE)
        raise page_not_found("the wiki", plain, blobs)

    def _file(self, commit: str, path: str, blob: str) -> _Source:
        kind = self._repository.attachments.kind_of(path)
        text = self._repository.file_text(blob, kind) if kind else None
        if text is None:
            raise PageUnreadableError(f"the file {path} has not been read yet; try again in a moment, without a revision")
        if not text.markdown:
            raise PageUnreadableError(f"the file {path} cannot be read: {text.problem or 'it has no text'}")
        return _Source(path, commit, text.markdown, kind)

    def _text(self, blob: str) -> str:
        return next(self._repository.read_blobs([blob])).decode("utf-8", errors="replace")


def _spellings(path: str) -> list[str]:
    wanted = path.strip("/")
    if not wanted.removesuffix(".md") or len(wanted) > MAX_PATH_CHARACTERS or "\0" in wanted:
        raise PageNotFoundError(f"no page can have this path: it takes 1 to {MAX_PATH_CHARACTERS:,} characters", ())
    return list(dict.fromkeys((wanted, wanted.removesuffix(".md"))))
