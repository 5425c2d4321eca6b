"""Pages, a token counter that needs no model, and the parts of a chunk."""

from __future__ import annotations

import re
from collections.abc import Sequence

from otterwiki_semantic.content.chunking import TokenCounter, chunk_document
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.preparation import PageSettings, divide_page
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.core.records import Chunk, Document, Page

MINILM = Profile()
_WORD = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]|[^\W_]+|[^\w\s]|_")
_LETTERS_PER_TOKEN = 5
_LONGEST_KNOWN_WORD = 100


class WordPieceCounter:
    """Counts about as many tokens as WordPiece makes: one for a few letters, a sign, or a word that is too long to be known."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [sum(_tokens(word) for word in _WORD.findall(text)) for text in texts]


def _tokens(word: str) -> int:
    return 1 if len(word) > _LONGEST_KNOWN_WORD else -(-len(word) // _LETTERS_PER_TOKEN)


WORD_PIECES = WordPieceCounter()


def chunks_of(
    source: str, title: str = "Title", profile: Profile = MINILM, counter: TokenCounter = WORD_PIECES
) -> tuple[Chunk, ...]:
    return chunk_document(parse_markdown(source), title, counter, profile)


def read_page(path: str, blob: str, content: bytes, counter: TokenCounter, profile: Profile) -> Page:
    """Parse, divide and analyse a page as the index does, with English as the only language."""
    document = parse_markdown(content.decode("utf-8", errors="replace"))
    return divide_page(path, blob, document, PageSettings(counter, profile, (ENGLISH,)))


def body(chunk: Chunk) -> str:
    return chunk.text[chunk.prefix_length :]


def new_text(chunk: Chunk) -> str:
    return body(chunk)[chunk.overlap_length :]


def shown_path(chunk: Chunk) -> str:
    return chunk.text[: chunk.prefix_length].strip()[1:-1]


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
