"""Pages pinned to questions: they come first when the question is asked, even in other words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import numpy as np

from otterwiki_semantic.content.analysis import name_key
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search.query import Query
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Generation, PinnedQuestion

_SAME_QUESTION = 0.8
"""The least similarity, on the bundled model's scale, of two wordings of a question."""


class PinnedAnswers:
    """Find the pages that are pinned to a query; `embed` returns the vector of a question."""

    def __init__(self, embed: Callable[[str], Matrix]) -> None:
        self._embed = embed
        self._vectors: dict[str, Matrix] = {}

    def refresh(self, questions: Iterable[PinnedQuestion]) -> None:
        """Embed questions. Raises errors of `embed`.

        Until it succeeds, and if questions may not be embedded, only the same words match.
        """
        self._vectors = {each.text: self._embed(each.text) for each in questions if each.may_be_embedded}

    @property
    def fingerprint(self) -> str:
        """A hash of the questions that are matched by meaning."""
        return hashlib.sha256("\n".join(sorted(self._vectors)).encode()).hexdigest()[:16]

    def paths(self, query: Query, vector: Callable[[], Matrix | None], generation: Generation, scale: Scale) -> tuple[str, ...]:
        """Return the pages that are pinned to a query. Raises errors of the catalog."""
        answers = generation.catalog.reader.answers() if generation.catalog.is_current else ()
        if not answers:
            return ()
        asked, names = vector(), {each.name for each in query.all}
        return tuple(each.path for each in answers if name_key(each.text) in names or self._is_same(each.text, asked, scale))

    def _is_same(self, question: str, asked: Matrix | None, scale: Scale) -> bool:
        known = self._vectors.get(question)
        if known is None or asked is None or known.shape != asked.shape:
            return False
        return scale.to_bundled(float(np.dot(known, asked))) >= _SAME_QUESTION
