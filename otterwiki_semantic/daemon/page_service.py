"""Answer calls about pages: names, neighbours, links, lists, and the map."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from otterwiki_semantic.content.pages import page_excluded
from otterwiki_semantic.core.errors import IndexUnavailableError, ModelError
from otterwiki_semantic.core.records import (
    FIRST_BUILD,
    NO_URLS,
    DraftLinks,
    DraftRequest,
    PageInspection,
    PageLinks,
    PageList,
    PageListRequest,
    PageUrls,
    ReindexStarted,
    RelatedPage,
    RelatedPages,
    Suggestions,
    SuggestRequest,
    WikiMap,
)
from otterwiki_semantic.core.settings import EXCLUDE, Settings
from otterwiki_semantic.daemon.serving_reader import ServingReader
from otterwiki_semantic.daemon.wiki_map.builder import WikiMapBuilder, switched_off
from otterwiki_semantic.embedding import CachedEmbedder
from otterwiki_semantic.indexing import IndexManager
from otterwiki_semantic.search import (
    find_mentions,
    inspect_page,
    likely_duplicates,
    pages_about,
    related_pages,
    suggest,
    suggest_tags,
)
from otterwiki_semantic.storage import Generation


class PageService:
    """Answer the calls of `IndexService` about pages."""

    def __init__(self, settings: Settings, manager: IndexManager, reader: ServingReader, paragraphs: CachedEmbedder) -> None:
        self._manager = manager
        self._reader = reader
        self._model = manager.model
        self._recipe = manager.model.recipe
        self._paragraphs = paragraphs
        self.map_builder = WikiMapBuilder(settings.data_dir / "map.json", manager) if "map" in settings.pages else None

    def suggest(self, request: SuggestRequest, urls: PageUrls = NO_URLS) -> Suggestions:
        def suggested(generation: Generation) -> Suggestions:
            found = suggest(generation.catalog, request, urls)
            tags = suggest_tags(generation.catalog, request)
            return Suggestions(request.query, found, self._reader.freshness(generation), tags)

        return self._reader.ask(suggested) or Suggestions(request.query, (), self._reader.freshness(None))

    def related(self, path: str, n: int, urls: PageUrls = NO_URLS) -> RelatedPages:
        def nearest(generation: Generation) -> RelatedPages:
            known = self._reader.known_path(generation, path)
            self._manager.syncs.indexer.opened.append(known)
            pages = related_pages(generation, known, n, self._recipe.scale(generation), urls)
            return RelatedPages(known, pages, len(pages), self._reader.freshness(generation))

        return self._reader.ask_for_page(path, nearest)

    def draft_links(self, request: DraftRequest, urls: PageUrls = NO_URLS) -> DraftLinks:
        def linked(generation: Generation) -> DraftLinks:
            catalog, text, path = generation.catalog, request.text, request.path
            mentions = find_mentions(catalog, text, path, generation.languages, urls)
            pages, problem = self._pages_about(generation, request, urls)
            is_there = catalog.pages.find_path(path) is not None
            scale = self._recipe.scale(generation)
            duplicates = () if is_there else likely_duplicates(catalog, text, path, pages, scale, urls)
            return DraftLinks(mentions, pages, duplicates, self._reader.freshness(generation), problem)

        return self._reader.ask(linked) or DraftLinks((), (), (), self._reader.freshness(None), FIRST_BUILD)

    def _pages_about(
        self, generation: Generation, request: DraftRequest, urls: PageUrls
    ) -> tuple[tuple[RelatedPage, ...], str | None]:
        """Return the pages about the subject of a text, and why there are none if the model was not asked or failed."""
        if self._recipe.embedder.asks_server:
            return (), "texts that are not saved are not sent to the model's server"
        if not self._recipe.matches_vectors(generation):
            return (), self._model.why_keywords_only(generation) or "the index has no vectors of this model"
        scale = self._recipe.scale(generation)
        asked = generation, request.text, request.cursor, request.path, request.n
        try:
            return pages_about(*asked, self._paragraphs.embed, scale, urls), None
        except ModelError as error:
            return (), f"the embedding model failed: {error}"

    def inspect_page(self, path: str, urls: PageUrls = NO_URLS) -> PageInspection:
        def inspected(generation: Generation) -> PageInspection:
            known = self._reader.known_path(generation, path)
            return inspect_page(generation, self._recipe.embedder, known, self._reader.freshness(generation), urls)

        return self._reader.ask_for_page(path, inspected)

    def pages(self, request: PageListRequest, urls: PageUrls = NO_URLS) -> PageList:
        def listed(generation: Generation) -> PageList:
            found, total = generation.catalog.pages.select(request.filters, request.limit, request.offset, request.sort)
            addressed = (
                tuple(structs.replace(page, url=urls.of(page.path, kind=page.kind)) for page in found) if urls.prefix else found
            )
            return PageList(addressed, total, self._reader.freshness(generation))

        return self._reader.ask(listed) or PageList((), 0, self._reader.freshness(None))

    def refresh(self, paths: Sequence[str]) -> ReindexStarted:
        def known(generation: Generation) -> tuple[str, ...]:
            return tuple(self._reader.known_path(generation, path) for path in paths)

        found = self._reader.ask(known)
        if found is None:
            raise IndexUnavailableError("the index is being built, and reads every page anyway")
        return ReindexStarted("started", pages=found, job=self._manager.refresh_pages(found).job)

    def links(self, path: str) -> PageLinks:
        def linked(generation: Generation) -> PageLinks:
            excluded = self._manager.index.excluded_pages(generation)
            if excluded.get(path) == EXCLUDE:  # the page reader checks its front matter
                raise page_excluded(path, EXCLUDE)
            return generation.catalog.pages.links(path)

        return self._reader.ask(linked) or PageLinks((), ())

    def map(self, urls: PageUrls = NO_URLS) -> WikiMap:
        def mapped(generation: Generation | None) -> WikiMap:
            index = self._reader.freshness(generation)
            return self.map_builder.answer(generation, index, urls) if self.map_builder else switched_off(index)

        return self._reader.ask(mapped) or mapped(None)
