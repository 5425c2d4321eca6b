"""Answers from sources, sentence by sentence, each checked before anybody reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from otterwiki_semantic.content.analysis import detect_language
from otterwiki_semantic.core.errors import ChatModelError, SemanticError
from otterwiki_semantic.core.records import Exchange
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import CachedEmbedder
from otterwiki_semantic.search.answering.chat import open_chat_model
from otterwiki_semantic.search.answering.conflicts import Conflict
from otterwiki_semantic.search.answering.grounding import says_nothing_found, unsupported_reason
from otterwiki_semantic.search.answering.prompt import (
    NO_ANSWER,
    fit_sources,
    prompt,
    rewriting_prompt,
    tokens_besides_sources,
)
from otterwiki_semantic.search.answering.sources import Source, queries_in
from otterwiki_semantic.search.answering.statements import Statement, StatementParser

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns how near in meaning each of the texts is to the first."""
_LONGEST_REWRITES = 2_000
"""Characters after which a model that rewords a question is told to stop."""


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement, and whether its sources support it."""

    statement: Statement
    reason: str | None
    """Why they do not, for people; None if they do."""


class Answerer:
    """Writes answers with the model of `SEMANTIC_ANSWERS`, if there is one."""

    def __init__(self, settings: Settings, embedder: CachedEmbedder, languages: Sequence[str]) -> None:
        self._model = open_chat_model(settings)
        self._embedder = embedder
        self._languages = languages

    @property
    def is_extractive(self) -> bool:
        """Whether no model writes: `extract_answer` finds the sentences."""
        return self._model is None

    def fitting(self, sources: Sequence[Source], question: str, history: Sequence[Exchange]) -> list[Source]:
        """Return the sources that the model can read together."""
        assert self._model is not None
        window = self._model.window
        return fit_sources(sources, window, tokens_besides_sources(question, history, window))

    def rewrites(
        self, question: str, history: Sequence[Exchange], seconds: float, is_cancelled: Callable[[], bool]
    ) -> list[str]:
        """Return up to three other wordings of a question, if there is a model that knows any. Errors: `ChatModelError`."""
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
        conflicts: Sequence[Conflict],
        seconds: float,
        is_cancelled: Callable[[], bool],
    ) -> Iterator[CheckedStatement]:
        """Yield the statements of an answer as they are written; none if no source answers. Errors: `ChatModelError`."""
        if not sources:
            raise ChatModelError("no source fits next to the question; ask a shorter one, or raise SEMANTIC_ANSWERS_WINDOW")
        assert self._model is not None
        similarity = self._similarity(question)
        language = detect_language([source.text for source in sources], self._languages)
        messages = prompt(question, sources, history, [each.describe() for each in conflicts], self._model.window)
        for statement in _parsed(self._model.stream(messages, seconds, is_cancelled), len(sources)):
            if NO_ANSWER in statement.text.upper():
                return
            if says_nothing_found(statement.text):
                continue  # of a part of the question
            yield CheckedStatement(statement, unsupported_reason(statement, sources, language, similarity))

    def close(self) -> None:
        """Release what the model holds, for good."""
        if self._model is not None:
            self._model.close()

    def _similarity(self, question: str) -> Similarity | None:
        """Return what compares a sentence with others; None if a server would have to be asked, or the model fails."""
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


def _parsed(chunks: Iterable[str], sources: int) -> Iterator[Statement]:
    """Yield the statements that a model writes."""
    parser = StatementParser(sources)
    for chunk in chunks:
        yield from parser.feed(chunk)
    yield from parser.finish()
