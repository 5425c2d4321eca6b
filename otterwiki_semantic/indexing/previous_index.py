"""The generations besides the serving one: its predecessor, which can serve again, and unfinished builds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from otterwiki_semantic.core.errors import RollbackError, SemanticError
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.serving_index import ServingIndex
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage import Generation

log = logging.getLogger(__name__)


class PreviousIndex:
    """The serving generation's predecessor of another recipe. Changed only while `ServingIndex.changing` is held."""

    def __init__(self, index: ServingIndex, recipe_of: Callable[[Generation], IndexRecipe]) -> None:
        """`recipe_of` returns the recipe of a generation that was built with other settings."""
        self._index = index
        self._generations = index.generations
        self._recipe_of = recipe_of
        self.generation: Generation | None = None
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
        recipe = self._index.model.recipe
        is_outdated = serving is not None and not recipe.matches(serving)
        self._generations.remove_others(serving, recipe.fingerprint if is_outdated else "")

    def _follow(self, previous: Generation, serving: Generation) -> None:
        """Bring the previous generation's words to HEAD; copy only vectors that the serving one has.

        If its recipe is uncertain, it stays unchanged.
        """
        try:
            if previous.catalog.commit == serving.catalog.commit:
                return
            recipe = self._recipe_of(previous)
            if not recipe.matches(previous):
                return
            loader = self._index.loader.with_model(recipe.embedder, recipe.languages)
            indexer = Indexer(self._index.repository, recipe, lambda: self._index.is_stopping, loader=loader)
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

        `record` is called with both before any change. Errors: `RollbackError` if there is none, or if that cannot be written.
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
        log.warning("rolled back to the index %s, which will serve in place of %s", previous.name, serving.name)
        return previous
