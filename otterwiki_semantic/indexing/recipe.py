"""A way of indexing: the model, how pages are divided, and what judges the result."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.embedding import Calibration, Embedder, profile_for, vector_fingerprint
from otterwiki_semantic.indexing.promotion import VectorOf, noted_recalls, recalls
from otterwiki_semantic.indexing.sync import LEFT_ALONE_SECONDS
from otterwiki_semantic.search import noted_scale
from otterwiki_semantic.search.evaluation import JudgedQuery
from otterwiki_semantic.storage import Generation, index_fingerprint

_OTHER_MODEL = "the index was made with another model and is built again; until then the answer is by words alone"
_UNKNOWN_MODEL = "the embedding model was never reached, the answer is by words alone"

log = logging.getLogger(__name__)


@dataclass(slots=True)
class IndexRecipe:
    """A way of indexing; it changes when the model turns out to be another one than it was taken for.

    `chunks` names the chunk profile. `questions` gives what a new generation is judged with (nothing: it is not), `vector_of`
    the vector of a question. `error` is why the model could not be reached when it was last to be prepared.
    """

    embedder: Embedder
    chunks: str
    questions: Callable[[], Sequence[JudgedQuery]]
    vector_of: VectorOf
    error: ModelError | None = field(default=None, init=False)
    _not_before: float = field(default=0.0, init=False)

    @property
    def profile(self) -> Profile:
        """How pages are divided for this model."""
        return profile_for(self.embedder, self.chunks)

    @property
    def fingerprint(self) -> str:
        """Tells it from other ways."""
        return index_fingerprint(self.embedder, self.profile)

    @property
    def recipe(self) -> str:
        """Tells its vectors from others."""
        return vector_fingerprint(self.embedder, self.profile.heading_weight)

    def prepare(self) -> None:
        """See that the model is there, and what it is; if it cannot be told, that is noted and logged once.

        One that was not there is left alone for half a minute, so that HEAD is followed meanwhile.
        """
        if time.monotonic() < self._not_before:
            return
        try:
            self.embedder.prepare()
        except Exception as error:  # noqa: BLE001 - whatever a model's library raises, words are indexed
            if self.error is None:
                log.warning("the embedding model is not ready: %s", error)
            self.error = error if isinstance(error, ModelError) else ModelError(f"{self.embedder.name}: {error}")
            self._not_before = time.monotonic() + LEFT_ALONE_SECONDS
        else:
            self.error = None

    def embeds_for(self, generation: Generation) -> bool:
        """Whether a generation's vectors are of this model; if not, only its words can be asked."""
        return self.embedder.dimension > 0 and generation.vector_fingerprint == self.recipe

    def why_words_alone(self, generation: Generation) -> str | None:
        """Tell why only a generation's words can be asked; None if its vectors can, too."""
        if self.embeds_for(generation):
            return None
        if self.embedder.dimension:
            return _OTHER_MODEL
        return f"{_UNKNOWN_MODEL}: {self.error}" if self.error else _UNKNOWN_MODEL

    def calibration(self, generation: Generation) -> Calibration:
        """Give what tells from how near a passage of a generation is whether it is about a question."""
        calibration = self.embedder.calibration
        return calibration if self.embedder.is_calibrated else replace(calibration, scale=noted_scale(generation))

    def recalls(self, generation: Generation, questions: Sequence[JudgedQuery]) -> list[float]:
        """Give the recall@10 of each question that a generation reaches, or once reached: see `acceptance.recalls`."""
        vector_of = self.vector_of if self.embeds_for(generation) else None
        return recalls(generation, questions, vector_of, self.calibration(generation))

    def judge(self, generation: Generation) -> None:
        """Note what a generation reaches with the judged questions, unless that was noted, or its model is another one."""
        questions = self.questions()
        if questions and self.embeds_for(generation) and noted_recalls(generation, questions) is None:
            self.recalls(generation, questions)
