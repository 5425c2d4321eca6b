"""Turn files of the repository into pages to index, whatever they contain: parsing has limits, and falls back to plain text."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path

from otterwiki_semantic.content import PageFile, Repository
from otterwiki_semantic.content.analysis import detect_language, language_code
from otterwiki_semantic.content.chunking import ByteCounter, Profile
from otterwiki_semantic.content.markdown import parse_plain_text, parse_seconds, parse_within_limits, read_front_matter
from otterwiki_semantic.content.pages import make_page, page_indexing
from otterwiki_semantic.core.errors import LimitExceededError, ModelError
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.records import Document, Indexed, Page
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.indexing.crash_log import CrashLog

MAX_CHUNKS = 2_000
"""Chunks of a page that are indexed."""
_MAX_CRASHES = 3

log = logging.getLogger(__name__)


class PageLoader:
    """Reads, parses and chunks pages. They are parsed in a process of its own, which is ended if a page takes too long."""

    def __init__(
        self,
        repository: Repository,
        embedder: Embedder,
        max_bytes: int = MAX_PAGE_BYTES,
        data_dir: Path | None = None,
        languages: Sequence[str] = (ENGLISH,),
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._crash_log = CrashLog(data_dir / "reading") if data_dir else None
        self._worker = WorkerProcess()
        self._languages = languages
        self.max_bytes = max_bytes

    def with_model(self, embedder: Embedder, languages: Sequence[str]) -> PageLoader:
        """Return one for another model and languages; both share the process that parses."""
        other = copy(self)
        other._embedder, other._languages = embedder, languages
        return other

    def load(self, files: Sequence[PageFile], profile: Profile) -> Iterator[Page]:
        """Yield the page of each file. Its `problem` says what of it is not indexed as it should be. Errors: those of git."""
        contents = self._repository.read_blobs((file.blob for file in files), self.max_bytes)
        for file, content in zip(files, contents, strict=True):
            with self._crash_log.reading(file) if self._crash_log else nullcontext():
                page = self._page(file, content, profile)
            yield page

    def close(self) -> None:
        """End the process that parses."""
        self._worker.close()

    def _page(self, file: PageFile, content: bytes, profile: Profile) -> Page:
        problems = []
        if file.size > len(content):
            content = content[: content.rfind(b"\n") + 1] or content
            problems.append(f"only its first {len(content):,} of {file.size:,} bytes are indexed")
        text = content.decode("utf-8", errors="replace")
        document, failure = self._parse(file, text)
        if page_indexing(document.front_matter) is Indexed.NOT:
            return Page(file.path, file.blob, file.path, None, (), 0, (), indexed=Indexed.NOT)
        page, failure = self._chunked(file, document, text, profile, failure)
        if failure:
            problems.insert(0, f"it is indexed as plain text, because {failure}")
        if len(page.chunks) > MAX_CHUNKS:
            page = replace(page, chunks=page.chunks[:MAX_CHUNKS])
            problems.append(f"only its first {MAX_CHUNKS:,} passages are indexed")
        return replace(page, problem="; ".join(problems) or None, language=self._language(page))

    def _language(self, page: Page) -> str:
        declared = language_code(page.declared_language, self._languages)
        return declared or detect_language((chunk.text for chunk in page.chunks), self._languages)

    def _parse(self, file: PageFile, text: str) -> tuple[Document, str]:
        """Return a page's document, and why it is plain text if the parser failed, or had better not be asked again."""
        crashes = self._crash_log.crashes(file) if self._crash_log else 0
        if crashes >= _MAX_CRASHES:
            return self._plain_text(text), f"the index daemon ended {crashes} times in a row while it read the page"
        try:
            return self._worker.call(parse_seconds(len(text)), parse_within_limits, text), ""
        except LimitExceededError as error:
            return self._plain_text(text), f"parsing it {error}"
        except Exception as error:
            log.exception("the page %s cannot be parsed", file.path)
            return self._plain_text(text), f"the parser failed: {error}"

    def _plain_text(self, text: str) -> Document:
        """Return a page as plain text, with its front matter; if not even that can be read, no model gets the text."""
        try:
            front_matter = self._worker.call(parse_seconds(0), read_front_matter, text)
        except Exception:  # noqa: BLE001 - whatever it is, the page is found
            front_matter = {"search": Indexed.WORDS_ONLY}
        return replace(parse_plain_text(text), front_matter=front_matter)

    def _chunked(self, file: PageFile, document: Document, text: str, profile: Profile, failure: str) -> tuple[Page, str]:
        try:
            return make_page(file.path, file.blob, document, self._embedder, profile), failure
        except ModelError:  # the embedding stage reports the failure; here we only lack the tokenizer
            return make_page(file.path, file.blob, document, ByteCounter(), profile), failure
        except Exception as error:
            log.exception("the page %s cannot be divided", file.path)
            page = make_page(file.path, file.blob, parse_plain_text(text), ByteCounter(), profile)
            return replace(page, indexed=page_indexing(document.front_matter)), f"it cannot be divided: {error}"
