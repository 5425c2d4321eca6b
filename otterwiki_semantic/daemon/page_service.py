"""Answer calls about pages: names, neighbours, links and lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from otterwiki_semantic.content.pages import page_excluded
from otterwiki_semantic.core import records
from otterwiki_semantic.core.errors import IndexUnavailableError, ModelError
from otterwiki_semantic.core.settings import EXCLUDE
from otterwiki_semantic.daemon.serving_reader import ServingReader
from otterwiki_semantic.embedding import CachedEmbedder
from otterwiki_semantic.indexing import IndexManager
from otterwiki_semantic.search import (
    Scale,
    find_mentions,
    inspect_page,
    likely_duplicates,
    pages_about,
    related_pages,
    suggest,
    suggest_tags,
)
from otterwiki_semantic.storage import Generation


@dataclass(frozen=True)
class PageService:
    """Answer the calls of `IndexService` about pages."""

    manager: IndexManager
    reader: ServingReader
    paragraphs: CachedEmbedder

    def suggest(self, request: records.SuggestRequest, urls: records.PageUrls = records.NO_URLS) -> records.Suggestions:
        def suggested(generation: Generation) -> records.Suggestions:
            found = suggest(generation.catalog, request, urls)
            tags = suggest_tags(generation.catalog, request)
            return records.Suggestions(request.query, found, self.reader.freshness(generation), tags)

        found = self.reader.ask(suggested, in_memory=True)
        return found or records.Suggestions(request.query, (), self.reader.freshness(None))

    def related(self, path: str, n: int, urls: records.PageUrls = records.NO_URLS) -> records.RelatedPages:
        def nearest(generation: Generation) -> records.RelatedPages:
            known = self.reader.known_path(generation, path)
            self.manager.syncs.indexer.opened.append(known)
            pages = related_pages(generation, known, n, self.manager.model.recipe.scale(generation), urls)
            return records.RelatedPages(known, pages, len(pages), self.reader.freshness(generation))

        return self.reader.ask_for_page(path, nearest, in_memory=True)

    def draft_links(self, request: records.DraftRequest, urls: records.PageUrls = records.NO_URLS) -> records.DraftLinks:
        def linked(generation: Generation) -> records.DraftLinks:
            catalog, text, path = generation.catalog, request.text, request.path
            mentions = find_mentions(catalog, text, path, generation.languages, urls)
            scale = self.manager.model.recipe.scale(generation)
            pages, problem = self._pages_about(generation, request, scale, urls)
            is_there = catalog.pages.find_path(path) is not None
            duplicates = () if is_there else likely_duplicates(catalog, text, path, pages, scale, urls)
            return records.DraftLinks(mentions, pages, duplicates, self.reader.freshness(generation), problem)

        found = self.reader.ask(linked, in_memory=True)
        return found or records.DraftLinks((), (), (), self.reader.freshness(None), records.FIRST_BUILD)

    def _pages_about(
        self, generation: Generation, request: records.DraftRequest, scale: Scale, urls: records.PageUrls
    ) -> tuple[tuple[records.RelatedPage, ...], str | None]:
        """Return the pages about the subject of a text, and why there are none if the model was not asked or failed."""
        if self.manager.model.recipe.embedder.asks_server:
            return (), "texts that are not saved are not sent to the model's server"
        if why := self.manager.model.why_keywords_only(generation):
            return (), why
        asked = generation, request.text, request.cursor, request.path, request.n
        try:
            return pages_about(*asked, self.paragraphs.embed, scale, urls), None
        except ModelError as error:
            return (), f"the embedding model failed: {error}"

    def inspect_page(self, path: str, urls: records.PageUrls = records.NO_URLS) -> records.PageInspection:
        def inspected(generation: Generation) -> records.PageInspection:
            known = self.reader.known_path(generation, path)
            return inspect_page(generation, self.manager.model.recipe.embedder, known, self.reader.freshness(generation), urls)

        return self.reader.ask_for_page(path, inspected)

    def pages(self, request: records.PageListRequest, urls: records.PageUrls = records.NO_URLS) -> records.PageList:
        def listed(generation: Generation) -> records.PageList:
            found, total = generation.catalog.pages.select(request.filters, request.limit, request.offset, request.sort)
            addressed = tuple(structs.replace(page, url=urls.of(page.path, kind=page.kind)) for page in found)
            return records.PageList(addressed, total, self.reader.freshness(generation))

        return self.reader.ask(listed) or records.PageList((), 0, self.reader.freshness(None))

    def refresh(self, paths: Sequence[str]) -> records.ReindexStarted:
        def known(generation: Generation) -> tuple[str, ...]:
            return tuple(self.reader.known_path(generation, path) for path in paths)

        found = self.reader.ask(known)
        if found is None:
            raise IndexUnavailableError("the index is being built, and reads every page anyway")
        return records.ReindexStarted("started", pages=found, job=self.manager.refresh_pages(found).job)

    def links(self, path: str) -> records.PageLinks:
        def linked(generation: Generation) -> records.PageLinks:
            excluded = self.manager.index.excluded_pages(generation)
            if excluded.get(path) == EXCLUDE:  # the page reader checks its front matter
                raise page_excluded(path, EXCLUDE)
            return generation.catalog.pages.links(path)

        return self.reader.ask(linked) or records.PageLinks((), ())
