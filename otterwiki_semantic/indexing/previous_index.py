"""The generations besides the serving one: its predecessor, which can serve again, and unfinished builds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import RollbackError, SemanticError
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.serving_index import ServingIndex
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage import Generation, GenerationStore

log = logging.getLogger(__name__)


class PreviousIndex:
    """The serving generation's predecessor of another recipe. Changed only while `ServingIndex.changing` is held."""

    def __init__(
        self,
        repository: Repository,
        generations: GenerationStore,
        recipe: IndexRecipe,
        recipe_of: Callable[[Generation], IndexRecipe],
        index: ServingIndex,
        loader: PageLoader,
    ) -> None:
        """`recipe_of` returns the recipe of a generation that was built with other settings."""
        self._repository = repository
        self._generations = generations
        self._recipe = recipe
        self._recipe_of = recipe_of
        self._index = index
        self._loader = loader
        self.generation: Generation | None = None
        """None if there is nothing to return to."""
        self._tidied = ""
        """The serving generation for which unneeded generations were last removed."""

    def tidy(self, serving: Generation, *, is_rebuilding: bool) -> None:
        """Remove the generation's predecessor once its collection is complete, and bring the previous index to HEAD."""
        previous = self.generation
        if self._tidied != serving.name and serving.mirror.is_whole and not is_rebuilding:
            if previous is not None:
                previous.mirror.start_collection()
                self._generations.remove_collections(previous)
            self.remove_others(serving)
            self._tidied = serving.name
            if previous is not None and not previous.catalog.is_in_place:
                self.forget()
        if self.generation is not None:
            self._follow(self.generation, serving)

    def remove_others(self, serving: Generation | None) -> None:
        """Remove all unneeded generations except the serving one; an unfinished build of the current recipe is kept."""
        is_outdated = serving is not None and not self._recipe.matches(serving)
        self._generations.remove_others(serving, self._recipe.fingerprint if is_outdated else "")

    def _follow(self, previous: Generation, serving: Generation) -> None:
        """Bring the previous generation's keyword index to HEAD; only vectors of the serving generation are copied.

        Other changes are embedded if it serves again. If its recipe is uncertain, it stays unchanged until then.
        """
        try:
            if previous.catalog.commit == serving.catalog.commit:
                return
            recipe = self._recipe_of(previous)
            if not recipe.matches(previous):
                return
            loader = self._loader.with_model(recipe.embedder, recipe.languages)
            indexer = Indexer(self._repository, recipe, lambda: self._index.is_stopping, loader=loader)
            shared = serving.catalog if previous.vector_fingerprint == serving.vector_fingerprint else None
            plan = indexer.plan(previous.catalog, embed=False, previous=shared)
            if plan is not None:
                indexer.sync(previous, plan, ProgressTracker())
        except SemanticError as error:
            log.warning("the index that was replaced cannot follow the wiki, and is removed: %s", error)
            self.forget()

    def forget(self) -> None:
        """Remove the previous generation."""
        previous, self.generation = self.generation, None
        self._generations.set_previous(None)
        if previous is not None:
            previous.destroy()

    def roll_back(self, record: Callable[[Generation, Generation], None]) -> Generation:
        """Return the previous generation, which will serve when the index is reopened; the serving one is kept.

        `record` is called with both before any change. Errors: `RollbackError` if there is none, or if the change cannot be
        written.
        """
        previous, serving = self.generation, self._index.generation
        if previous is None or serving is None or not (previous.catalog.is_current and previous.catalog.is_in_place):
            raise RollbackError("there is no earlier index to return to: none of another model or profile was replaced")
        try:
            record(previous, serving)
            self._generations.set_previous(serving)
            self._generations.set_current(previous)
        except OSError as error:
            with suppress(OSError):
                self._generations.set_current(serving)
                self._generations.set_previous(previous)
            raise RollbackError(f"the rollback cannot be written to the data directory: {error}") from error
        self._index.has_rolled_back = True
        log.warning("the index %s is to serve again, in place of %s", previous.name, serving.name)
        return previous
