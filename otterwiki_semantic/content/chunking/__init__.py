"""Divide a page into chunks: the passages that are embedded, searched and shown."""

from otterwiki_semantic.content.chunking.chunker import chunk_document, shorten_heading
from otterwiki_semantic.content.chunking.sizes import ByteCounter, TokenCounter, count_words
from otterwiki_semantic.content.chunking.word_counts import WordTokenCounter, word_counter_of
from otterwiki_semantic.core.chunk_profiles import Profile, profile_named
