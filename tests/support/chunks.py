"""Pages as chunks, and what their chunks are made of."""

from __future__ import annotations

from collections.abc import Sequence

from otterwiki_semantic.content.chunking.chunker import chunk_document
from otterwiki_semantic.content.chunking.profiles import Profile
from otterwiki_semantic.content.markdown.parser import parse
from otterwiki_semantic.core.records import Chunk, Document
from otterwiki_semantic.embedding.local.bundled import BundledModel

PROFILE = Profile()


def chunks_of(source: str, model: BundledModel, title: str = "Title", profile: Profile = PROFILE) -> tuple[Chunk, ...]:
    return chunk_document(parse(source), title, model, profile)


def body(chunk: Chunk) -> str:
    return chunk.text[chunk.prefix_length :]


def new_text(chunk: Chunk) -> str:
    return body(chunk)[chunk.overlap_length :]


def page_words(document: Document) -> list[str]:
    """Every word of a page in order: headings and the lines of their sections."""
    return [
        word
        for section in document.sections
        for text in (section.heading, *(line.text for block in section.blocks for line in block.lines))
        for word in text.split()
    ]


def is_subsequence(parts: Sequence[str], whole: Sequence[str]) -> bool:
    remaining = iter(whole)
    return all(part in remaining for part in parts)


def sentences(count: int, word: str = "word") -> str:
    return " ".join(f"{word.capitalize()} number {i} stands in a sentence of ten words here." for i in range(count))
