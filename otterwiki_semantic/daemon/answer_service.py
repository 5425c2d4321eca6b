"""Answer questions, each in its own thread; the wiki polls for the sentences."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence

from msgspec import structs

from otterwiki_semantic.core.errors import (
    AnswersDisabledError,
    AskNotFoundError,
    ChatModelError,
    RateLimitError,
    SemanticError,
)
from otterwiki_semantic.core.records import (
    NO_URLS,
    Answer,
    AnswerSentence,
    AskProgress,
    AskRequest,
    GroundedAnswer,
    PageUrls,
    SearchOptions,
    SourceConflict,
    UnsupportedSentence,
)
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import CachedEmbedder
from otterwiki_semantic.search.answering import (
    Answerer,
    Extract,
    Statement,
    extract_answer,
    find_conflicts,
    follow_ups,
    interleaved,
    search_queries,
    sources_of,
    without_repeats,
)

NO_ANSWER = "Nothing here answers this."
_NOT_DIRECTLY = "Nothing here answers this directly; the closest passages follow."
ABANDONED = "The answer was not finished: nobody fetched it for a while."
_SECTION_WORDS = 400
"""Words of the largest section to which a source is extended."""
_PASSAGES_PER_PAGE = 3
_UNITS = 6
"""Units per passage that may answer without a model."""
_MAX_RUNNING = 4
"""Answers that are written at the same time."""
_MAX_KEPT = 32
"""Answers that can be fetched, including running ones."""
_ABANDONED_SECONDS = 5.0
"""A running answer that is not fetched for this long is cancelled."""
_WAIT_SECONDS = 1.0
_HOUR = 3_600

log = logging.getLogger(__name__)


class AnswerService:
    """Answer questions from the passages that a search finds."""

    def __init__(self, settings: Settings, search: Callable[..., Sequence[Answer]], embedder: CachedEmbedder) -> None:
        """`search` is that of `SearchService`."""
        self._model = settings.answers
        self._seconds = settings.answers_seconds
        self._may_rewrite = settings.may_rewrite_questions
        self._limit = RateLimit(settings.answers_per_hour)
        self._answerer = Answerer(settings, embedder, settings.languages)
        self._search = search
        self._languages = settings.languages
        self._running: dict[str, _RunningAnswer] = {}
        """Includes finished answers until they expire. Oldest first."""
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(_MAX_RUNNING)
        """Held from the question to the end of its thread, which may outlive its answer."""

    def ask(self, request: AskRequest, urls: PageUrls = NO_URLS) -> AskProgress:
        """Return the sources of an answer, and start writing it. Also raises errors of the search."""
        if self._model is None:
            raise AnswersDisabledError("nothing writes answers: the wiki's administrator can set SEMANTIC_ANSWERS")
        start = time.monotonic()
        if not self._slots.acquire(blocking=False):
            raise RateLimitError(f"{_MAX_RUNNING} answers are being written; ask again in a moment")
        is_written = False
        try:
            self._limit.count(request.asker)
            opening = self._found(request, search_queries(request.question, request.history), urls)
            is_searchable = opening.message is None
            extracts: list[Extract] = []
            if self._answerer.is_extractive and (
                extracts := extract_answer(request.question, opening.sources, self._languages)
            ):
                opening = structs.replace(opening, sources=tuple(each.source for each in extracts))
            running = _RunningAnswer(opening, start, start + self._seconds, is_strict=request.strict)
            self._add(running)
            if self._answerer.is_extractive:
                message = _NOT_DIRECTLY if opening.confident else NO_ANSWER
                running.extract(extracts)
                running.end(None if extracts or not is_searchable else message)
            elif opening.confident or (self._may_rewrite and is_searchable):
                threading.Thread(target=self._write, args=(running, request, urls), name="answer", daemon=True).start()
                is_written = True
            else:
                running.end(NO_ANSWER if is_searchable else None)
        finally:
            if not is_written:
                self._slots.release()
        return AskProgress(running.id, result=opening)

    def progress(self, id_: str, seen: int | None) -> AskProgress:
        """Return the news of an answer: see `IndexService.ask_progress`."""
        with self._lock:
            running = self._running.get(id_)
        if running is None:
            raise AskNotFoundError("the answer was cancelled, or lost when the index was restarted; ask again")
        return running.so_far() if seen is None else running.wait(seen, _WAIT_SECONDS)

    def cancel(self, id_: str) -> None:
        """Stop writing an answer and delete it."""
        with self._lock:
            running = self._running.pop(id_, None)
        if running is not None:
            running.end("cancelled")

    def close(self) -> None:
        """Stop writing all answers."""
        for id_ in list(self._running):
            self.cancel(id_)
        self._answerer.close()

    def _found(self, request: AskRequest, queries: Sequence[str], urls: PageUrls) -> GroundedAnswer:
        assert self._model is not None
        is_extractive = self._answerer.is_extractive
        options = SearchOptions(
            n=2 * request.limit,
            max_chunks_per_page=_PASSAGES_PER_PAGE,
            filters=request.filters,
            units=_UNITS if is_extractive else 0,
            markdown=True,
        )
        answers = self._search(queries, options, urls, section_words=0 if is_extractive else _SECTION_WORDS)
        confident = [each for each in answers if each.confident]
        hits = interleaved(confident or answers)
        relevant = [hit for hit in hits if hit.relevant]
        found = relevant or hits
        sources = tuple((found if is_extractive else without_repeats(found))[: request.limit])
        return GroundedAnswer(
            question=request.question,
            answer=(),
            sources=sources,
            confident=bool(confident),
            unsupported=(),
            index=answers[0].index,
            model=self._model,
            follow_ups=follow_ups(sources, hits),
            message=answers[0].message,
            degraded=answers[0].degraded,
        )

    def _add(self, running: _RunningAnswer) -> None:
        with self._lock:
            ended = [id_ for id_, each in self._running.items() if each.is_done]
            for id_ in ended[: max(0, len(self._running) + 1 - _MAX_KEPT)]:
                del self._running[id_]
            self._running[running.id] = running

    def _write(self, running: _RunningAnswer, request: AskRequest, urls: PageUrls) -> None:
        message = None
        try:
            if not running.opening.confident:
                self._search_again(running, request, urls)
            if running.opening.confident:
                self._write_sentences(running, request)
            message = None if running.sentences or running.unsupported else NO_ANSWER
            message = ABANDONED if running.is_over else message
        except ChatModelError as error:
            message = str(error)
        except SemanticError as error:
            message = f"The answer could not be written: {error}"
        except Exception:
            log.exception("an answer failed")
            message = "The answer could not be written; the log of the index says why."
        finally:
            self._slots.release()
        running.end(message)

    def _search_again(self, running: _RunningAnswer, request: AskRequest, urls: PageUrls) -> None:
        asked = request.question, request.history
        if queries := self._answerer.rewrites(*asked, running.seconds_left, lambda: running.is_over):
            found = self._found(request, queries, urls)
            if found.confident:
                running.begin_again(structs.replace(found, rewrites=tuple(queries)))

    def _write_sentences(self, running: _RunningAnswer, request: AskRequest) -> None:
        sources = self._answerer.fitting(sources_of(running.opening.sources), request.question, request.history)
        conflicts = find_conflicts(sources, self._languages[0])
        running.conflicts = tuple(conflicts)
        asked = request.question, request.history, sources, conflicts
        for statement, reason in self._answerer.statements(*asked, running.seconds_left, lambda: running.is_over):
            running.add(statement, reason)


class RateLimit:
    """Limit the questions per user and hour; 0 for no limit."""

    def __init__(self, per_hour: int) -> None:
        self._per_hour = per_hour
        self._asked: dict[str, list[float]] = {}
        """The times of each user's questions in the last hour."""
        self._lock = threading.Lock()

    def count(self, asker: str) -> None:
        """Count a question, unless the asker's name is empty. Raise `RateLimitError` above the limit."""
        if not asker or not self._per_hour:
            return
        now = time.monotonic()
        with self._lock:
            recent = {name: [at for at in times if at > now - _HOUR] for name, times in self._asked.items()}
            self._asked = {name: times for name, times in recent.items() if times}
            times = self._asked.setdefault(asker, [])
            if len(times) >= self._per_hour:
                minutes = max(1, round((times[0] + _HOUR - now) / 60))
                raise RateLimitError(f"{self._per_hour} questions an hour are answered; ask again in {minutes} min")
            times.append(now)


class _RunningAnswer:
    """An answer that is being written, and its final form."""

    def __init__(self, opening: GroundedAnswer, start: float, deadline: float, *, is_strict: bool) -> None:
        self.id = secrets.token_urlsafe(16)
        self.opening = opening
        self.deadline = deadline
        self.is_done = False
        self._is_strict = is_strict
        self._start = self._ended = start
        self._fetched = time.monotonic()
        self.sentences: list[AnswerSentence] = []
        self.unsupported: list[UnsupportedSentence] = []
        self.conflicts: tuple[SourceConflict, ...] = ()
        self._message = opening.message
        self._has_new_sources = False
        self._changed = threading.Condition()

    @property
    def is_over(self) -> bool:
        """Whether it is finished or abandoned."""
        return self.is_done or time.monotonic() - self._fetched > _ABANDONED_SECONDS

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def begin_again(self, opening: GroundedAnswer) -> None:
        with self._changed:
            if not self.is_done:
                self.opening = opening
                self._has_new_sources = True
                self._changed.notify_all()

    def extract(self, extracts: Sequence[Extract]) -> None:
        for place, extract in enumerate(extracts):
            for text, kind in extract.statements:
                self.add(Statement(text, kind, place, (place + 1,)), None)

    def add(self, statement: Statement, reason: str | None) -> None:
        """Add a sentence; `reason` says why its sources do not support it."""
        sources = tuple(number - 1 for number in statement.cited)
        sentence = AnswerSentence(statement.text, sources, reason is None, statement.kind.value, statement.block)
        with self._changed:
            if self.is_done:
                return
            if reason is not None:
                self.unsupported.append(UnsupportedSentence(statement.text, reason))
            if reason is None or not self._is_strict:
                self.sentences.append(sentence)
            self._changed.notify_all()

    def end(self, message: str | None) -> None:
        with self._changed:
            if not self.is_done:
                self.is_done = True
                self._message = message or self._message
                self._ended = time.monotonic()
                self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> AskProgress:
        """Return what is new after `seen` sentences. New sources are returned on their own, before the first sentence."""
        self._note_fetching()
        with self._changed:
            self._changed.wait_for(lambda: self.is_done or self._has_new_sources or len(self.sentences) > seen, seconds)
        self._note_fetching()
        with self._changed:
            has_new_sources, self._has_new_sources = self._has_new_sources, False
            if has_new_sources:
                return AskProgress(self.id, result=self.opening)
            return AskProgress(self.id, tuple(self.sentences[seen:]), self._result() if self.is_done else None, self.is_done)

    def so_far(self) -> AskProgress:
        self._note_fetching()
        with self._changed:
            return AskProgress(self.id, result=self._result(), done=self.is_done)

    def _note_fetching(self) -> None:
        self._fetched = time.monotonic()
        if self._fetched > self.deadline:
            self.end("The answer took too long; this is how far it came.")

    def _result(self) -> GroundedAnswer:
        return structs.replace(
            self.opening,
            answer=tuple(self.sentences),
            unsupported=tuple(self.unsupported),
            conflicts=self.conflicts,
            message=self._message,
            milliseconds=round(1000 * (self._ended - self._start)),
        )
