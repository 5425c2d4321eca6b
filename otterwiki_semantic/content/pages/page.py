"""From the bytes of a file in the repository to a page of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from otterwiki_semantic.content.analysis.trigrams import nearest_names
from otterwiki_semantic.content.chunking.chunker import chunk_document, shorten_heading
from otterwiki_semantic.content.chunking.profiles import Profile
from otterwiki_semantic.content.chunking.sizes import TokenCounter
from otterwiki_semantic.content.markdown.front_matter import tags_field, text_field
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.links import linked_pages
from otterwiki_semantic.content.pages.outline import section_word_count
from otterwiki_semantic.core.errors import PageNotFoundError
from otterwiki_semantic.core.records import Document, Page

_NEAREST, _LEAST_LIKENESS = 5, 0.35


def page_name(path: str) -> str:
    """Give the last part of a page's path."""
    return path.rsplit("/", 1)[-1]


def page_not_found(whose: str, path: str, paths: Iterable[str]) -> PageNotFoundError:
    """Give the error that tells that there is no such page, with those that are spelled like it."""
    names: dict[str, str] = {}
    for other in paths:
        names.setdefault(other, other)
        names.setdefault(page_name(other), other)
    nearest = nearest_names(path, names, _NEAREST, _LEAST_LIKENESS)
    if not nearest:
        nearest = nearest_names(page_name(path), names, _NEAREST, _LEAST_LIKENESS)
    hint = f"; perhaps: {'; '.join(nearest)}" if nearest else ""
    return PageNotFoundError(f"{whose} has no page {path!r}{hint}", nearest)


def page_title(path: str, document: Document) -> str:
    """Give the title: that of the front matter, else the page's first heading if it is of level 1, else the page's name."""
    title = text_field(document.front_matter, "title")
    first = next((section for section in document.sections if section.level), None)
    heading = first.heading if first is not None and first.level == 1 else None
    return shorten_heading(title or heading or page_name(path))


def page_word_count(document: Document) -> int:
    """Give the number of words of a page as a reader sees it, headings included."""
    return sum(map(section_word_count, document.sections))


def read_page(
    path: str,
    blob: str,
    content: bytes,
    counter: TokenCounter,
    profile: Profile,
    parse: Callable[[str], Document] = parse_markdown,
) -> Page:
    """Parse and chunk a page. Bytes that are not UTF-8 become the replacement character; no content raises."""
    document = parse(content.decode("utf-8", errors="replace"))
    title = page_title(path, document)
    return Page(
        path=path,
        blob=blob,
        title=title,
        category=text_field(document.front_matter, "category"),
        tags=tags_field(document.front_matter),
        word_count=page_word_count(document),
        chunks=chunk_document(document, title, counter, profile),
        links_to=linked_pages(document.links, path),
    )
