"""The Markdown of the passages of an answer, from git."""

from __future__ import annotations

import logging
from dataclasses import replace
from itertools import count

from msgspec import structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.markdown import PassageMarkdown, passage_markdown
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.records import Hit
from otterwiki_semantic.core.settings import MAX_PAGE_BYTES
from otterwiki_semantic.search.pipeline import SearchResult
from otterwiki_semantic.storage import Catalog

_WHOLE_SECTIONS = 3
"""Results, from the best one on, that are returned with the rest of a small section."""
_SMALL_SECTION = 120
"""Words of a small section."""

_CHARACTERS_PER_WORD = 8
_MAX_GROWTH, _LONG = 3, 2_000
"""How much longer than the passage its whole blocks may be, and the characters from which on that counts."""

log = logging.getLogger(__name__)


class PassageSources:
    """Reads the Markdown of passages."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def applied_to(self, found: SearchResult, catalog: Catalog, section_words: int = 0) -> SearchResult:
        """Return what a search of a catalog found, with its Markdown unless git fails. Errors: those of the catalog.

        Sections of up to `section_words` words are returned whole; by default small ones, of the best results only.
        """
        blobs = catalog.pages.blobs({hit.path for hit in found.hits})
        try:
            contents = self._repository.read_blobs(blobs.values(), MAX_PAGE_BYTES)
            pages = {path: content.decode("utf-8", "replace") for path, content in zip(blobs, contents, strict=True)}
        except RepositoryError as error:
            log.warning("passages are returned without their Markdown: %s", error)
            return found
        words = (section_words or (_SMALL_SECTION if rank < _WHOLE_SECTIONS else 0) for rank in count())
        hits = (_with_markdown(hit, pages[hit.path], most) for hit, most in zip(found.hits, words, strict=False))
        return replace(found, hits=tuple(hits))


def _with_markdown(hit: Hit, page: str, section_words: int) -> Hit:
    words = section_words if hit.relevant else 0
    source = passage_markdown(page, hit.text_start_line, hit.text_end_line, words)
    own = hit.text.removeprefix(hit.snippet[: hit.prefix_length])
    if len(source.text) > max(_MAX_GROWTH * len(own), _LONG, words * _CHARACTERS_PER_WORD):  # lines as long as pages
        source = PassageMarkdown(own, hit.text_start_line, hit.text_end_line)
    return structs.replace(hit, markdown=source.text, markdown_start_line=source.start_line, markdown_end_line=source.end_line)
