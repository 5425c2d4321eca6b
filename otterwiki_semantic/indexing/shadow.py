"""The shadow index: the wiki indexed with another model, next to the serving index, to compare the two; no user sees it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import CatalogCorruptError, IndexUnavailableError
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY
from otterwiki_semantic.embedding import QueryEmbedder, open_embedder
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.promotion import check_complete, check_disk_space, estimate
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.search import PinnedAnswers, Query, SearchResult, search_chunks
from otterwiki_semantic.storage import Generation, GenerationStore

_BYTES_PER_NUMBER = 4

log = logging.getLogger(__name__)

ParseQuery = Callable[[str, SearchOptions, Generation], Query]
"""Parses a query for a generation."""


class ShadowIndex:
    """One generation in a directory of its own. One thread brings it to HEAD; any thread may search it.

    Its vectors are compared by the exact index alone, so that nothing of it is in ChromaDB.
    """

    def __init__(
        self,
        settings: Settings,
        repository: Repository,
        should_stop: Callable[[], bool],
        parse: ParseQuery,
        search_slots: AbstractContextManager[object],
    ) -> None:
        """`settings` are those of `core.settings.shadow_settings`. Errors: `ModelError`, `OSError`."""
        embedder = open_embedder(settings)
        self.recipe = IndexRecipe(embedder, settings.chunks, settings.languages)
        self.progress = ProgressTracker()
        self._parse = parse
        self._search_slots = search_slots
        self._queries = QueryEmbedder(embedder, NO_TELEMETRY)
        self._pinned = PinnedAnswers(self._queries.vector_of)
        vectors = "auto" if settings.vectors == "disk" else settings.vectors  # there is no ChromaDB to compare them
        self._generations = GenerationStore(settings.data_dir, partial(Generation, exact_up_to=math.inf, vectors=vectors))
        self._loader = PageLoader(repository, embedder, settings.data_dir, settings.languages)
        self._indexer = Indexer(repository, self.recipe, should_stop, loader=self._loader)
        self._generation: Generation | None = None
        self._is_complete = False

    @property
    def generation(self) -> Generation | None:
        """The index, once it was brought to HEAD completely with this model."""
        generation = self._generation
        is_usable = generation is not None and self._is_complete and self.recipe.matches_vectors(generation)
        return generation if is_usable else None

    def bring_to_head(self, serving: Generation) -> None:
        """Build the index, or follow HEAD; one of another recipe and a corrupt one are built anew.

        Errors: `RebuildRefusedError` if the disk has no room for it, `Stopped`; those of the model, of git and the catalog.
        """
        self.recipe.embedder.prepare()
        self._generation = self._generation or self._generations.open_current()
        if self._generation is not None and not (
            self._generation.catalog.is_in_place and self.recipe.matches(self._generation)
        ):
            self.discard()
        self._generation = self._generation or self._create(serving)
        try:
            self._sync(self._generation, serving)
        except CatalogCorruptError:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove the index, which is damaged or of another recipe; it is built anew next time."""
        generation, self._generation, self._is_complete = self._generation, None, False
        if generation is not None:
            generation.destroy()

    def _create(self, serving: Generation) -> Generation:
        """Create an empty generation, if the disk has room for one with as many vectors as the serving one has."""
        embedder = self.recipe.embedder
        wanted = estimate(serving, 0, embedder, embeds=False, copies=True, place=self._generations.data_dir)
        vectors = serving.catalog.counts().vectors * embedder.dimension * _BYTES_PER_NUMBER
        check_disk_space(structs.replace(wanted, disk_bytes=wanted.disk_bytes + vectors), self._generations.data_dir)
        self._generations.remove_others(None)
        generation = self._generations.create(embedder, self.recipe.profile, self.recipe.languages)
        self._generations.set_current(generation)
        return generation

    def _sync(self, generation: Generation, serving: Generation) -> None:
        plan = self._indexer.plan(generation.catalog, retry_unfinished=True)
        while plan is not None:
            result = self._indexer.sync(generation, plan, self.progress)
            plan = None if result.is_whole else self._indexer.plan(generation.catalog)
            generation.catalog.compact()
        check_complete(generation, serving.catalog.unfinished)
        self._pinned.refresh(generation.catalog.reader.answers())
        if not self._is_complete:
            self._is_complete = True
            log.info("the index of %s equals HEAD, to be compared", self.recipe.embedder.name)

    def search(self, text: str, options: SearchOptions) -> SearchResult:
        """Search as a user would, without a reranker. Errors: `IndexUnavailableError`; those of the model and the catalog."""
        generation = self.generation
        if generation is None:
            raise IndexUnavailableError("the index of SEMANTIC_SHADOW_MODEL is not built yet")
        query = self._parse(text, options, generation)
        vector = self._queries.embed(list(dict.fromkeys(each.text for each in query.all)))
        try:
            with self._search_slots, generation.catalog.snapshot():
                scale = self.recipe.scale(generation)
                pinned = self._pinned.paths(query, lambda: vector, generation, scale)
                return search_chunks(generation, replace(query, pinned=pinned), lambda: vector, options, scale)
        except CatalogCorruptError:
            self.discard()
            raise

    def interrupt(self) -> None:
        """Let work that is under way end soon."""
        self._loader.close()

    def close(self) -> None:
        """Close the files."""
        self._queries.close()
        if self._generation is not None:
            self._generation.close()
