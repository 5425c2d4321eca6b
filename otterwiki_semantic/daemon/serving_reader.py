"""Query the serving generation, and continue when it fails or is replaced meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from otterwiki_semantic.content.pages import page_excluded, page_key, page_not_found
from otterwiki_semantic.core.errors import (
    CatalogCorruptError,
    CatalogError,
    IndexUnavailableError,
    PageNotFoundError,
    VectorStoreError,
)
from otterwiki_semantic.core.telemetry import Failure, Telemetry
from otterwiki_semantic.indexing import IndexManager
from otterwiki_semantic.storage import Generation, VectorStore

_SUCCESSOR_SECONDS = 2.0

T = TypeVar("T")
State = tuple[str, str | None]
"""A generation and its revision, which changes with every change of the index."""


def state_of(generation: Generation) -> State:
    """Return the state of a generation."""
    return generation.name, generation.catalog.meta("revision")


class ServingReader:
    """Query the serving generation, in one snapshot of its catalog. Errors: `IndexUnavailableError`, errors of the query."""

    def __init__(self, manager: IndexManager, telemetry: Telemetry) -> None:
        self._manager = manager
        self._telemetry = telemetry
        self.freshness = manager.index.freshness

    def ask(self, question: Callable[[Generation], T], *, in_memory: bool = False) -> T | None:
        """Return the serving generation's answer, or None without one; retry if it fails or is replaced.

        With `in_memory`, wait until what a start loads into memory is there; see `Generation.wait_until_loaded`.
        """
        generation = self._manager.serving
        while generation is not None:
            if in_memory:
                generation.wait_until_loaded()
            store = generation.mirror.store
            try:
                with generation.catalog.snapshot():
                    return question(generation)
            except (VectorStoreError, CatalogError) as error:
                failure = error
            if isinstance(failure, CatalogError):
                self._telemetry.record_failure(Failure.CATALOG)
            if self._manager.index.is_stopping:
                raise IndexUnavailableError("the index daemon is ending") from failure
            if generation is not self._manager.serving:
                generation = self._manager.serving
            else:
                generation = self._recover(generation, store, failure)
        return None

    def ask_for_page(self, path: str, question: Callable[[Generation], T], *, in_memory: bool = False) -> T:
        """Return the serving generation's answer about a page; `PageNotFoundError` if there is none yet. See `ask`."""
        found = self.ask(question, in_memory=in_memory)
        if found is None:
            raise PageNotFoundError(f"the index has no page {path!r} yet: it is being built")
        return found

    def known_path(self, generation: Generation, path: str) -> str:
        """Return a page's path as spelled in the index, ignoring case; `PageNotFoundError` if there is no such page."""
        known = generation.catalog.pages.find_path(path)
        if known is not None:
            return known
        for excluded, excluder in self._manager.index.excluded_pages(generation).items():
            if page_key(excluded) == page_key(path):
                raise page_excluded(excluded, excluder)
        raise page_not_found("the index", path, generation.catalog.pages.blobs())

    def _recover(self, failed: Generation, store: VectorStore, failure: VectorStoreError | CatalogError) -> Generation:
        """Return the generation to query next: the same without its vector store, or its successor if the catalog fails."""
        try:
            if isinstance(failure, CatalogError):
                return self._successor(failed, failure)
            failed.mirror.handle_failure(store, failure)
        except CatalogError as error:
            return self._successor(failed, error)
        finally:
            self._manager.wake()  # only now: an earlier sync would find nothing to refill
        return failed

    def _successor(self, failed: Generation, failure: CatalogError) -> Generation:
        """Return the successor of a generation whose catalog fails; `IndexUnavailableError` if none follows soon."""
        if isinstance(failure, CatalogCorruptError):
            self._manager.mark_corrupt(failed)
            successor = self._manager.index.wait_for_successor(failed, _SUCCESSOR_SECONDS)
            if successor is not None:
                return successor
        raise IndexUnavailableError(f"the index is being repaired: {failure}") from failure
