"""Divide a page into chunks: the passages that are embedded, searched and shown."""

from otterwiki_semantic.content.chunking.chunker import chunk_document, shorten_heading
from otterwiki_semantic.content.chunking.profiles import PROFILES, Profile, profile_named
from otterwiki_semantic.content.chunking.sizes import ByteCounter, TokenCounter, count_words

__all__ = [
    "PROFILES",
    "ByteCounter",
    "Profile",
    "TokenCounter",
    "chunk_document",
    "count_words",
    "profile_named",
    "shorten_heading",
]
