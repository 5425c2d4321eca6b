"""The recipe of an index, and the availability of its model."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.embedding import Embedder, profile_for, vector_fingerprint
from otterwiki_semantic.search import Scale, noted_scale
from otterwiki_semantic.storage import Generation, index_fingerprint

MODEL_COOLDOWN_SECONDS = 30.0
"""How long a model that cannot be reached is not used."""
_OTHER_MODEL = "the index was made with another model and is built again; until then the answer is by words alone"
_UNKNOWN_MODEL = "the embedding model was never reached, the answer is by words alone"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexRecipe:
    """The recipe of an index. Its fingerprints change if the model's server replaces the model."""

    embedder: Embedder
    chunks: str
    """The name of the chunk profile."""
    languages: tuple[str, ...] = (ENGLISH,)

    @property
    def profile(self) -> Profile:
        """The chunk profile for this model."""
        return profile_for(self.embedder, self.chunks)

    @property
    def fingerprint(self) -> str:
        """The hash that identifies the recipe."""
        return index_fingerprint(self.embedder, self.profile, self.languages)

    @property
    def vector_fingerprint(self) -> str:
        """The hash that identifies the vectors of this recipe."""
        return vector_fingerprint(self.embedder, self.profile.heading_weight)

    def matches(self, generation: Generation) -> bool:
        """Whether a generation was built with this recipe."""
        return generation.fingerprint == self.fingerprint

    def matches_vectors(self, generation: Generation) -> bool:
        """Whether this model computed the vectors of a generation; otherwise only its keywords can be searched."""
        return self.embedder.dimension > 0 and generation.vector_fingerprint == self.vector_fingerprint

    def scale(self, generation: Generation) -> Scale:
        """Return the similarity scale of a generation."""
        return Scale() if self.embedder.is_calibrated else noted_scale(generation) or Scale()


class ModelStatus:
    """The availability of a recipe's model."""

    def __init__(self, recipe: IndexRecipe) -> None:
        self.recipe = recipe
        self._cooldown = Cooldown(MODEL_COOLDOWN_SECONDS)
        self.error: ModelError | None = None
        """Why the model was not available when it was last prepared."""

    def refresh(self) -> None:
        """Prepare the model, unless it failed within the last half minute; the first failure is logged."""
        if self._cooldown.is_active:
            return
        embedder = self.recipe.embedder
        try:
            embedder.prepare()
        except Exception as error:  # noqa: BLE001 - whatever a model's library raises, keywords are indexed
            if self.error is None:
                log.warning("the embedding model is not ready: %s", error)
            self.error = error if isinstance(error, ModelError) else ModelError(f"{embedder.name}: {error}")
            self._cooldown.start()
        else:
            self.error = None

    def retry(self) -> None:
        """Have the next `refresh` prepare the model even if it has just failed."""
        self._cooldown.stop()

    def why_keywords_only(self, generation: Generation) -> str | None:
        """Return why only the keywords of a generation can be searched; None if its vectors can be, too."""
        if self.recipe.matches_vectors(generation):
            return None
        if self.recipe.embedder.dimension:
            return _OTHER_MODEL
        return f"{_UNKNOWN_MODEL}: {self.error}" if self.error else _UNKNOWN_MODEL
