"""Answers from sources, sentence by sentence, each checked before anybody reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from otterwiki_semantic.content.analysis import detect_language, function_words, words
from otterwiki_semantic.core.errors import ChatModelError, SemanticError
from otterwiki_semantic.core.records import Exchange
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import CachedEmbedder
from otterwiki_semantic.search.answering.chat import open_chat_model
from otterwiki_semantic.search.answering.conflicts import Conflict
from otterwiki_semantic.search.answering.extractive import Score, extract_statements
from otterwiki_semantic.search.answering.prompt import (
    NO_ANSWER,
    fit_sources,
    prompt,
    rewriting_prompt,
    tokens_besides_sources,
)
from otterwiki_semantic.search.answering.retrieval import queries_in
from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementParser
from otterwiki_semantic.search.answering.support import says_nothing_found, unsupported_reason

Similarity = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns how near in meaning each of the texts is to the first."""
_LONGEST_REWRITES = 2_000
"""Characters after which a model that rewords a question is told to stop."""
_COVERAGE_WEIGHT = 0.3
"""The similarity that all telling words of a question are worth."""


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement, and whether its sources support it."""

    statement: Statement
    reason: str | None
    """Why they do not, for people; None if they do."""


class Answerer:
    """Writes answers with the model of `SEMANTIC_ANSWERS`, or with the sources' own sentences."""

    def __init__(self, settings: Settings, embedder: CachedEmbedder, languages: Sequence[str]) -> None:
        self._model = open_chat_model(settings)
        self._embedder = embedder
        self._languages = languages

    def fitting(self, sources: Sequence[Source], question: str, history: Sequence[Exchange]) -> list[Source]:
        """Return the sources that the model can read together."""
        if self._model is None:
            return list(sources)
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
        similarity = self._similarity(question)
        language = detect_language([source.text for source in sources], self._languages)
        if self._model is None:
            extracted = extract_statements(sources, _scorer(question, language, similarity), language)
            yield from (CheckedStatement(each, None) for each in extracted)  # they stand there
            return
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


def _scorer(question: str, language: str, similarity: Similarity | None) -> Score:
    """Return what scores sentences by how well they answer a question: their similarity to it, and its words in them."""
    asked = _stems(question, language) - _stems(" ".join(function_words(language)), language)

    def score(texts: Sequence[str]) -> list[float]:
        near = similarity(question, texts) if similarity else [0.0] * len(texts)
        shares = (len(asked & _stems(text, language)) / len(asked) if asked else 0.0 for text in texts)
        return [value + _COVERAGE_WEIGHT * share for value, share in zip(near, shares, strict=True)]

    return score


def _parsed(chunks: Iterable[str], sources: int) -> Iterator[Statement]:
    """Yield the statements that a model writes."""
    parser = StatementParser(sources)
    for chunk in chunks:
        yield from parser.feed(chunk)
    yield from parser.finish()


def _stems(text: str, language: str) -> set[str]:
    return {part for word in words(text, language) for part in word.parts}
