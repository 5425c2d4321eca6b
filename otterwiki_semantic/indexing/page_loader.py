"""Load files of the repository as pages to index, whatever they contain: within limits, and as plain text if parsing fails."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from itertools import compress, islice
from pathlib import Path
from queue import SimpleQueue

from otterwiki_semantic.content import PageFile, Repository
from otterwiki_semantic.content.attachments import MAX_FILE_BYTES, AttachmentText, file_to_markdown
from otterwiki_semantic.content.chunking import ByteCounter, Profile, TokenCounter
from otterwiki_semantic.content.markdown import parse_plain_text, parse_seconds, read_front_matter
from otterwiki_semantic.content.pages import PageSettings, divide_page, page_indexing, parse_source, prepare_page
from otterwiki_semantic.core.errors import AttachmentError, LimitExceededError, ModelError
from otterwiki_semantic.core.files import open_private
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.records import Document, FileKind, Indexed, Page
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.embedding import Embedder

_MAX_CRASHES = 3
_MANY_PAGES, _MANY_FILES = 200, 8
"""The numbers of pages, and of attached files, from which several processes read them."""
_FILE_SECONDS = 60.0
_MAX_PROCESSES = 8
_IDLE_SECONDS, _NICENESS = 10.0, 10
"""The processes that read many pages: seconds until an idle one exits, and the niceness that favours searches and the wiki."""
_PAGES_AHEAD, _BYTES_AHEAD = 192, 4 << 20
"""How much is read ahead: enough to occupy all processes while a batch is stored."""

log = logging.getLogger(__name__)


class CrashLog:
    """Records in a small file which page is being read, for the next process if this one is killed.

    A page that ended several processes in a row is read more carefully. Pages are also read without the file.
    """

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        self._attempts: dict[str, int] = {}
        if path is not None:
            with suppress(OSError):
                self._file = open_private(path)
                blob, _, attempts = os.read(self._file, 100).decode("ascii", errors="replace").partition(" ")
                self._attempts = {blob: int(attempts)} if attempts.isdecimal() else {}

    def crashes(self, file: PageFile) -> int:
        """Return how many processes in a row have ended while reading this page."""
        return self._attempts.get(file.blob, 0)

    @contextmanager
    def reading(self, file: PageFile) -> Iterator[None]:
        """Record that the block reads a page."""
        self._write(f"{file.blob} {self.crashes(file) + 1}")
        yield
        self._write("")

    def _write(self, line: str) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, os.pwrite(self._file, line.encode("ascii"), 0))


class PageLoader:
    """Read, parse, chunk and analyse pages in separate processes, which are killed if a page takes too long.

    One process reads the pages of edits. Many pages are read by one more per CPU, which exit afterwards to free their memory.
    """

    def __init__(
        self,
        repository: Repository,
        embedder: Embedder,
        data_dir: Path | None = None,
        languages: Sequence[str] = (ENGLISH,),
        processes: int | None = None,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._crash_log = CrashLog(data_dir and data_dir / "reading")
        processes = min(processes or len(os.sched_getaffinity(0)), _MAX_PROCESSES)
        self._worker = WorkerProcess()
        self._others = [WorkerProcess(_IDLE_SECONDS, _NICENESS) for _ in range(processes if processes > 1 else 0)]
        self._languages = languages

    def with_model(self, embedder: Embedder, languages: Sequence[str]) -> PageLoader:
        """Return a loader for another model and other languages that shares the reading processes."""
        other = copy(self)
        other._embedder, other._languages = embedder, languages
        return other

    def load(self, files: Sequence[PageFile], profile: Profile) -> Iterator[Page]:
        """Yield the page of each file; the files are all pages, or all attached files.

        A page's `problem` says what is not indexed completely. Raises errors of git.
        """
        reader = _PageReader(self._embedder, profile, self._languages, self._repository)
        contents = self._contents(files)
        for file, content in islice(contents, self._read_singly(files)):
            with self._crash_log.reading(file):
                page = reader.read(file, content, self._worker, self._crash_log.crashes(file))
            yield page
        yield from self._load_at_once(contents, reader)

    def _contents(self, files: Sequence[PageFile]) -> Iterator[tuple[PageFile, bytes]]:
        """Yield files with their contents; empty for an attached file that is too large, or whose text is known."""
        known = self._repository.file_text
        unread = [not file.kind or (file.size <= MAX_FILE_BYTES and known(file.blob, file.kind) is None) for file in files]
        max_bytes = MAX_FILE_BYTES if any(file.kind for file in files) else MAX_PAGE_BYTES
        blobs = self._repository.read_blobs((file.blob for file in compress(files, unread)), max_bytes)
        for file, is_unread in zip(files, unread, strict=True):
            yield file, next(blobs) if is_unread else b""

    def _load_at_once(self, contents: Iterator[tuple[PageFile, bytes]], reader: _PageReader) -> Iterator[Page]:
        idle: SimpleQueue[WorkerProcess] = SimpleQueue()
        for other in self._others:
            idle.put(other)

        def read(file: PageFile, content: bytes) -> Page:
            worker = idle.get()
            try:
                return reader.read(file, content, worker, 0)
            finally:
                idle.put(worker)

        waiting: deque[tuple[PageFile, int, Future[Page]]] = deque()
        size = 0
        executor = ThreadPoolExecutor(len(self._others) or 1, "page-reading")
        try:
            for file, content in contents:
                waiting.append((file, len(content), executor.submit(read, file, content)))
                size += len(content)
                while len(waiting) > _PAGES_AHEAD or (size > _BYTES_AHEAD and len(waiting) > len(self._others)):
                    size -= waiting[0][1]
                    yield self._result(*waiting.popleft())
            while waiting:
                yield self._result(*waiting.popleft())
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _result(self, file: PageFile, _size: int, future: Future[Page]) -> Page:
        with self._crash_log.reading(file):
            return future.result()

    def _read_singly(self, files: Sequence[PageFile]) -> int:
        """Return how many of the first files to read one by one: all of a few, and of many up to those that may crash.

        The first of many warms up the process for edits.
        """
        many = _MANY_FILES if any(file.kind for file in files) else _MANY_PAGES
        if len(files) < many or not self._others:
            return len(files)
        suspect = next((place for place, file in enumerate(files) if self._crash_log.crashes(file)), None)
        return 1 if suspect is None else suspect + 1 + _PAGES_AHEAD

    def close(self) -> None:
        """Stop the processes."""
        for worker in (self._worker, *self._others):
            worker.close()


class _PageReader:
    """Read pages for one model and its profile. Thread-safe; each thread has its own process."""

    def __init__(self, embedder: Embedder, profile: Profile, languages: Sequence[str], repository: Repository) -> None:
        self._repository = repository
        try:
            embedder.count_tokens([""])
            portable: TokenCounter | None = getattr(embedder, "word_counter", None)
        except ModelError:  # reported by the embedding stage; only the tokenizer is missing here
            portable = ByteCounter()
        self._is_portable = portable is not None  # otherwise another process can parse pages, but not count tokens
        self._settings = PageSettings(portable or embedder, profile, tuple(languages), repository.notation)

    def read(self, file: PageFile, content: bytes, worker: WorkerProcess, crashes: int) -> Page:
        problems = []
        if file.kind:
            text, problem = self._attachment_text(file, file.kind, content, worker, crashes)
            problems += [problem] if problem else []
        else:
            if file.size > len(content):
                content = content[: content.rfind(b"\n") + 1] or content
                problems.append(f"only its first {len(content):,} of {file.size:,} bytes are indexed")
            text = content.decode("utf-8", errors="replace")
        page, failure = self._prepared(file, text, worker, crashes)
        if page.indexed is Indexed.NOT:
            return page
        if failure:
            problems.insert(0, f"it is indexed as plain text, because {failure}")
        if page.problem:
            problems.append(page.problem)
        return replace(page, problem="; ".join(problems) or None)

    def _attachment_text(
        self, file: PageFile, kind: FileKind, content: bytes, worker: WorkerProcess, crashes: int
    ) -> AttachmentText:
        if file.size > MAX_FILE_BYTES:
            return AttachmentText("", f"it has {file.size >> 20:,} MB; files of up to {MAX_FILE_BYTES >> 20} MB are read")
        if known := self._repository.file_text(file.blob, kind):
            return known
        if crashes >= _MAX_CRASHES:
            return AttachmentText("", f"the index daemon ended {crashes} times in a row while it read the file")
        try:
            ocr = self._repository.attachments.ocr
            text = AttachmentText(*worker.call(_FILE_SECONDS, file_to_markdown, file.path, kind, content, ocr))
        except AttachmentError as error:
            text = AttachmentText("", f"it {error}")
        except LimitExceededError as error:  # may succeed next time
            return AttachmentText("", f"reading it {error}")
        if self._repository.texts:
            self._repository.texts.put(file.blob, kind, text)
        return text

    def _prepared(self, file: PageFile, text: str, worker: WorkerProcess, crashes: int) -> tuple[Page, str]:
        seconds, failure = parse_seconds(len(text)), ""
        if crashes >= _MAX_CRASHES:
            failure = f"the index daemon ended {crashes} times in a row while it read the page"
        elif self._is_portable:
            try:
                return worker.call(seconds, prepare_page, file.path, file.blob, text, self._settings, seconds, file.kind), ""
            except LimitExceededError as error:
                failure = f"parsing it {error}"
            except Exception:  # noqa: BLE001 - it is raised again below, where parser and chunker can be told apart
                log.debug("the page %s is divided in this process", file.path)
        if failure:
            return self._divided(file, self._plain_text(file, text, worker), text, failure)
        try:
            document = worker.call(seconds, parse_source, file.path, text, self._settings.notation, file.kind)
        except LimitExceededError as error:
            document, failure = self._plain_text(file, text, worker), f"parsing it {error}"
        except Exception as error:
            log.exception("the page %s cannot be parsed", file.path)
            document, failure = self._plain_text(file, text, worker), f"the parser failed: {error}"
        return self._divided(file, document, text, failure)

    def _plain_text(self, file: PageFile, text: str, worker: WorkerProcess) -> Document:
        """Return a page as plain text, with its front matter; if even that cannot be read, no model gets the text."""
        if file.kind:
            return parse_plain_text(text)
        try:
            front_matter = worker.call(parse_seconds(0), read_front_matter, text)
        except Exception:  # noqa: BLE001 - whatever it is, the page is found
            front_matter = {"search": Indexed.WORDS_ONLY}
        return replace(parse_plain_text(text), front_matter=front_matter)

    def _divided(self, file: PageFile, document: Document, text: str, failure: str) -> tuple[Page, str]:
        settings = self._settings
        try:
            return divide_page(file.path, file.blob, document, settings, file.kind), failure
        except ModelError:  # the tokenizer is missing
            pass
        except Exception as error:
            log.exception("the page %s cannot be divided", file.path)
            document = replace(parse_plain_text(text), front_matter={"search": page_indexing(document.front_matter)})
            failure = f"it cannot be divided: {error}"
        return divide_page(file.path, file.blob, document, replace(settings, counter=ByteCounter()), file.kind), failure
