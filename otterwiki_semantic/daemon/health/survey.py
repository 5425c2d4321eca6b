"""The data for the health checks: a snapshot of the index, read in small steps."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.attachments import file_kind
from otterwiki_semantic.content.pages import as_wiki_text, page_key, page_name
from otterwiki_semantic.core.records import Finding, FindingKind, Hit, Notation, PlaceInPage, StoredChunk
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search import Scale
from otterwiki_semantic.storage import ExactIndex, Generation, PageFacts

MAX_FINDINGS = 500
"""The most findings of a kind. Orphans, which are only names, are not limited."""
MAX_PAGES = 20
"""Pages listed in a finding."""
_SLICE_SECONDS, _REST_FACTOR = 0.02, 4
"""CPU time of a slice, and the rest after it as a multiple: at most a fifth of one core."""
_MAX_BYTES = 200_000
_NEIGHBOURS = 3
_BLOCK = 64
"""Pages per batch that are compared with all others."""


@dataclass
class Survey:
    """A snapshot of an index, read in parts, without a long transaction, so that parts may differ in time."""

    generation: Generation
    repository: Repository
    scale: Scale
    pause: Callable[[float], None]
    """Sleeps for some seconds; raises if the work must stop."""
    is_dismissed: Callable[[str], bool]
    private_id: Callable[[str], str]
    """Returns an opaque id of a finding, which nobody else can resolve."""
    _slice_start: float = field(default_factory=time.thread_time)

    def rest(self) -> None:
        """Rest if the slice of work is over, so that searches need not wait; call it every few milliseconds."""
        used = time.thread_time() - self._slice_start
        if used >= _SLICE_SECONDS:
            self.pause(_REST_FACTOR * used)
            self._slice_start = time.thread_time()

    @cached_property
    def by_path(self) -> dict[str, PageFacts]:
        """The pages by path, in this order."""
        return {page.path: page for page in self.generation.catalog.pages.facts()}

    @cached_property
    def links(self) -> list[tuple[str, str]]:
        """The links between pages: the path of the source, and the key of the target."""
        return self.generation.catalog.pages.all_links()

    @cached_property
    def files(self) -> frozenset[str]:
        """The keys of all files and folders of the commit, pages without extension. Raises errors of `Repository`."""
        commit = self.generation.catalog.commit or self.repository.head()
        found: set[str] = set()
        for name in self.repository.file_names(commit) if commit else ():
            found.add(page_key(name.removesuffix(".md")))
            folder = page_key(name).rpartition("/")[0]
            while folder and folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)

    @cached_property
    def notation(self) -> Notation:
        """The syntax of links in the pages."""
        return self.repository.notation

    @cached_property
    def index(self) -> ExactIndex:
        """The chunks in memory."""
        return self.generation.catalog.reader.exact_index()

    @cached_property
    def _means(self) -> tuple[list[str], Matrix]:
        """The paths of the pages that have vectors, and their mean vectors (pages, dimensions)."""
        found, means = self.index.page_means()
        known = [row for row, path in enumerate(found) if path in self.by_path]
        return [found[row] for row in known], means[known]

    def nearest(self, paths: Sequence[str]) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        """Yield each page that has vectors with the three pages whose mean vectors are nearest, and their similarities."""
        pages, means = self._means
        wanted = set(paths)
        rows = [row for row, path in enumerate(pages) if path in wanted]
        count = min(_NEIGHBOURS + 1, len(pages))
        for first in range(0, len(rows), _BLOCK):
            block = rows[first : first + _BLOCK]
            similarities = means[block] @ means.T
            near = np.argpartition(-similarities, count - 1, axis=1)[:, :count]
            for row, of_row, others in zip(block, similarities, near, strict=True):
                ranked = sorted((other for other in others if other != row), key=lambda other: -of_row[other])
                yield pages[row], [(pages[other], float(of_row[other])) for other in ranked[:_NEIGHBOURS]]
                self.rest()

    def sources(self, paths: Sequence[str]) -> Iterable[tuple[str, str]]:
        """Yield pages with their Markdown from git. Raises errors of `Repository`."""
        contents = self.repository.read_blobs((self.by_path[path].blob for path in paths), _MAX_BYTES)
        for path, content in zip(paths, contents, strict=True):
            text = content.decode("utf-8", errors="replace").replace("\r\n", "\n")
            yield path, as_wiki_text(text, self.notation)
            self.rest()

    def page(self, path: str) -> PlaceInPage:
        """Return a page or an attached file as a whole."""
        if path in self.by_path:
            return PlaceInPage(path, self.by_path[path].title)
        return PlaceInPage(path, page_name(path), kind=file_kind(path))

    def section(self, path: str, line: int) -> PlaceInPage:
        """Return the section of a page that contains a line."""
        chunks = self.generation.catalog.reader.page_range(path, 0, len(self.index))
        near = [(chunk, unit.section) for chunk in chunks for unit in chunk.units if unit.start_line <= line]
        if not near:
            return self.page(path)
        chunk, number = near[-1]
        section = chunk.sections[number]
        return place_of(replace(chunk, section=section.heading, anchor=section.anchor))


def place_of(chunk: StoredChunk | Hit, excerpt: str = "") -> PlaceInPage:
    """Return the section of a passage."""
    section = "" if chunk.section == chunk.title else chunk.section
    return PlaceInPage(chunk.path, chunk.title, section, chunk.anchor, excerpt, kind=chunk.kind)


def finding_id(kind: FindingKind, *about: str) -> str:
    """Return the id of a finding from its kind and its subject."""
    return hashlib.sha256("\n".join((kind, *about)).encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def new_finding(kind: FindingKind, *about: str, pages: Sequence[PlaceInPage], **facts: Any) -> Finding:
    """Return a finding with the id of what it is `about`."""
    facts = {"total_pages": len(pages), **facts}
    return Finding(id=finding_id(kind, *about), kind=kind, is_dismissed=False, pages=tuple(pages), **facts)


Findings = Sequence[Finding]
Check = Callable[[Survey], Findings]
