"""A git repository or a folder of Markdown pages, without a running wiki."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio.to_thread
from msgspec import to_builtins

from otterwiki_semantic.content import Folder, Repository
from otterwiki_semantic.core.errors import NotFoundError, SemanticError
from otterwiki_semantic.core.parameter_parsing import page_path, parse_parameters
from otterwiki_semantic.core.records import (
    AskRequest,
    FindingKind,
    HealthRequest,
    PageListRequest,
    PageRequest,
    ReindexStarted,
    SearchOptions,
    query_text,
)
from otterwiki_semantic.daemon import IndexClient, whole_answer
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.mcp.backend import BackendError, Json

_FOLDER_SECONDS, _POLL_SECONDS = 30.0, 0.1
"""The longest wait for the changes of a folder."""


class LocalBackend:
    """The `WikiBackend` of a repository and its index; blocking calls run in threads."""

    def __init__(self, index: IndexClient, repository: Repository, folder: Folder | None = None) -> None:
        self._index = index
        self._folder = folder
        self._pages = PageReader(index, repository)

    async def search(self, queries: Sequence[str], arguments: Mapping[str, Any]) -> list[Json]:
        def search() -> object:
            texts = [query_text(query, "query") for query in queries]
            return {"answers": self._index.search(texts, parse_parameters(SearchOptions, arguments))}

        return list((await _in_thread(search))["answers"])

    async def ask(self, question: str) -> Json:
        return await _in_thread(
            lambda: whole_answer(self._index, self._index.ask(AskRequest(query_text(question, "question"))))
        )

    async def pages(self, arguments: Mapping[str, Any]) -> Json:
        return await _in_thread(lambda: self._index.pages(parse_parameters(PageListRequest, arguments)))

    async def page(self, path: str, arguments: Mapping[str, Any]) -> Json:
        return await _in_thread(lambda: self._pages.page(path, parse_parameters(PageRequest, arguments)))

    async def related(self, path: str, n: int) -> Json:
        return await _in_thread(lambda: self._index.related(page_path(path), n))

    async def history(self, path: str, limit: int) -> Json:
        return await _in_thread(lambda: self._pages.history(page_path(path), limit))

    async def health(self, kind: str, limit: int) -> Json:
        return await _in_thread(lambda: self._index.health(HealthRequest(kind=FindingKind(kind), limit=limit)))

    async def status(self) -> Json:
        return await _in_thread(self._index.status)

    async def job(self, job: str) -> Json:
        return await _in_thread(lambda: self._index.job(job))

    async def reindex(self, pages: Sequence[str], *, full: bool) -> Json:
        def start() -> ReindexStarted:
            root = ""
            if self._folder is not None:
                self._read_folder(self._folder)
                root = f"{self._folder.folder}/"
            if pages:
                return self._index.refresh([page_path(path.removeprefix(root)) for path in pages])
            return self._index.reindex(full=full)

        return await _in_thread(start)

    def _read_folder(self, folder: Folder) -> None:
        """Update the index to the files on disk, so that it knows new ones."""
        folder.commit()
        self._index.notify()
        deadline = time.monotonic() + _FOLDER_SECONDS
        while (status := self._index.status()).index.commit != status.index.head and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)


async def _in_thread(ask: Callable[[], object]) -> Json:
    try:
        answer: Json = await anyio.to_thread.run_sync(lambda: to_builtins(ask()))
        return answer
    except SemanticError as error:
        raise BackendError(str(error), error.code, error.nearest if isinstance(error, NotFoundError) else ()) from error
