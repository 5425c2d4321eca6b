"""Everything the index stores of a page that depends only on its text and the settings. Runs in a worker process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from otterwiki_semantic.content.analysis import (
    detect_language,
    indexed_text,
    language_code,
    name_key,
    name_words,
    spelled_words,
)
from otterwiki_semantic.content.attachments.paging import parse_attachment
from otterwiki_semantic.content.chunking.chunker import chunk_document
from otterwiki_semantic.content.chunking.sizes import TokenCounter
from otterwiki_semantic.content.markdown.front_matter import list_field, text_field
from otterwiki_semantic.content.pages.links import linked_pages
from otterwiki_semantic.content.pages.notes import parse_page
from otterwiki_semantic.content.pages.page import page_indexing, page_name, page_title, page_word_count
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.core.records import Document, FileKind, Indexed, Notation, Page, PageWords
from otterwiki_semantic.core.worker_process import restart_clock

MAX_CHUNKS = 2_000


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The settings that determine how a page is divided and analysed. Can be pickled if the counter can."""

    counter: TokenCounter
    profile: Profile
    languages: Sequence[str]
    notation: Notation = Notation.WIKI


def parse_source(path: str, text: str, notation: Notation, kind: FileKind | None) -> Document:
    """Parse a page, or the Markdown of an attached file. Errors: `LimitExceededError`."""
    return parse_attachment(text) if kind else parse_page(path, text, notation)


def prepare_page(path: str, blob: str, text: str, settings: PageSettings, seconds: float, kind: FileKind | None = None) -> Page:
    """Parse, divide and analyse a page; parsing and dividing may each take `seconds` of CPU time."""
    document = parse_source(path, text, settings.notation, kind)
    restart_clock(seconds)
    return divide_page(path, blob, document, settings, kind)


def divide_page(path: str, blob: str, document: Document, settings: PageSettings, kind: FileKind | None = None) -> Page:
    """Divide and analyse a parsed page, or an attached file of a kind. No passage has a file's name: files can be renamed."""
    front_matter, languages = document.front_matter, settings.languages
    indexed = page_indexing(front_matter)
    if indexed is Indexed.NOT:
        return Page(path, blob, path, None, (), 0, (), indexed=indexed)
    title = page_name(path) if kind else page_title(path, document)
    chunks = chunk_document(document, "" if kind else title, settings.counter, settings.profile)
    problem = f"only its first {MAX_CHUNKS:,} passages are indexed" if len(chunks) > MAX_CHUNKS else None
    chunks = chunks[:MAX_CHUNKS]
    declared = language_code(text_field(front_matter, "lang") or text_field(front_matter, "language"), languages)
    page = Page(
        path=path,
        blob=blob,
        title=title,
        category=text_field(front_matter, "category"),
        tags=list_field(front_matter, "tags"),
        aliases=list_field(front_matter, "aliases"),
        answers=list_field(front_matter, "answers", separator=None),
        word_count=page_word_count(document),
        chunks=chunks,
        links_to=linked_pages(document.links, path, by_name=not settings.notation.is_wiki),
        language=declared or detect_language((chunk.text for chunk in chunks), languages),
        problem=problem,
        indexed=indexed,
        kind=kind,
    )
    return replace(page, words=page_words(page))


def page_words(page: Page) -> PageWords:
    """Return the words of a page as the keyword index stores them."""
    title = indexed_text(" ".join((page.title, *page.aliases, page.path.replace("/", " "))), page.language)
    chunks = []
    for chunk in page.chunks:
        headings = dict.fromkeys((*chunk.section_path, *chunk.headings))
        headings.pop(page.title, None)
        body = chunk.text[chunk.prefix_length :]
        chunks.append((indexed_text(" / ".join(headings), page.language), indexed_text(body, page.language)))
    spelled = sorted(spelled_words(*(chunk.text for chunk in page.chunks)))
    of_names = title_and_path_words(page.title, page.path, page.language)
    return PageWords(title, tuple(chunks), tuple(spelled), tuple(_names(page)), of_names)


def title_and_path_words(title: str, path: str, language: str) -> tuple[str, str, str]:
    """Return the distinct words of a page's title, of the last part of its path, and of the whole path."""
    *folders, name = (name_words(part, language) for part in path.split("/"))
    whole = dict.fromkeys(chain(*folders, name))
    return " ".join(name_words(title, language)), " ".join(name), " ".join(whole)


def _names(page: Page) -> Iterator[tuple[str, int]]:
    """Yield the keys of the page's title, aliases, path and name (ordinal -1), and of each heading with its first chunk."""
    keys = set(map(name_key, (page.title, *page.aliases, page_name(page.path), page.path))) - {""}
    yield from ((key, -1) for key in sorted(keys))
    for ordinal, chunk in enumerate(page.chunks):
        for key in dict.fromkeys(map(name_key, chunk.headings)):
            if key and key not in keys:
                keys.add(key)
                yield key, ordinal
