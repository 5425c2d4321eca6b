"""Write answers from sources; every sentence is checked before it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from otterwiki_semantic.content.analysis import detect_language
from otterwiki_semantic.core.errors import ChatModelError, SemanticError
from otterwiki_semantic.core.records import Exchange, SourceConflict
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import CachedEmbedder
from otterwiki_semantic.search.answering.chat import open_chat_model
from otterwiki_semantic.search.answering.grounding import Similarity, says_nothing_found, unsupported_reason
from otterwiki_semantic.search.answering.prompt import NO_ANSWER, fit_sources, prompt, rewriting_prompt
from otterwiki_semantic.search.answering.sources import Source, queries_in
from otterwiki_semantic.search.answering.statements import Statement, parsed_statements

_LONGEST_REWRITES = 2_000
"""Characters after which a model that rewords a question is stopped."""


class Answerer:
    """Write answers with the model of `SEMANTIC_ANSWERS`, if one is configured."""

    def __init__(self, settings: Settings, embedder: CachedEmbedder, languages: Sequence[str]) -> None:
        self._model = open_chat_model(settings)
        self._embedder = embedder
        self._languages = languages

    @property
    def is_extractive(self) -> bool:
        """Whether answers are quoted with `extract_answer` instead of written by a model."""
        return self._model is None

    def fitting(self, sources: Sequence[Source], question: str, history: Sequence[Exchange]) -> list[Source]:
        """Return the sources that fit into the model's window."""
        assert self._model is not None
        return fit_sources(sources, question, history, self._model.window)

    def rewrites(
        self, question: str, history: Sequence[Exchange], seconds: float, is_cancelled: Callable[[], bool]
    ) -> list[str]:
        """Return up to three rewordings of a question, or none without a model. Errors: `ChatModelError`."""
        if self._model is None:
            return []
        written = ""
        for text in self._model.stream(rewriting_prompt(question, history, self._model.window), seconds, is_cancelled):
            written += text
            if len(written) > _LONGEST_REWRITES:
                break
        return queries_in(written)

    def statements(
        self,
        question: str,
        history: Sequence[Exchange],
        sources: Sequence[Source],
        conflicts: Sequence[SourceConflict],
        seconds: float,
        is_cancelled: Callable[[], bool],
    ) -> Iterator[tuple[Statement, str | None]]:
        """Yield the statements of an answer as they are written, each with why its sources do not support it, for people.

        Yields none if no source answers. Errors: `ChatModelError`.
        """
        if not sources:
            raise ChatModelError("no source fits next to the question; ask a shorter one, or raise SEMANTIC_ANSWERS_WINDOW")
        assert self._model is not None
        similarity = self._similarity(question)
        language = detect_language([source.text for source in sources], self._languages)
        messages = prompt(question, sources, history, [each.text for each in conflicts], self._model.window)
        for statement in parsed_statements(self._model.stream(messages, seconds, is_cancelled), len(sources)):
            if NO_ANSWER in statement.text.upper():
                return
            if says_nothing_found(statement.text):
                continue  # about a part of the question
            yield statement, unsupported_reason(statement, sources, language, similarity)

    def close(self) -> None:
        """Release the model's resources for good."""
        if self._model is not None:
            self._model.close()

    def _similarity(self, question: str) -> Similarity | None:
        """Return a function that compares sentences, or None if that needs a server or the model fails."""
        if self._embedder.model.asks_server:
            return None
        try:
            self._embedder.embed([question])
        except SemanticError:
            return None

        def similarity(text: str, others: Sequence[str]) -> list[float]:
            first, *rest = self._embedder.embed([text, *others])
            return [float(first @ each) for each in rest]

        return similarity
