"""Divide a page into chunks: the passages that are embedded, searched and shown."""

from otterwiki_semantic.content.analysis.sentences import sentence_ranges as sentence_ranges
from otterwiki_semantic.content.chunking.chunker import chunk_document as chunk_document
from otterwiki_semantic.content.chunking.chunker import shorten_heading as shorten_heading
from otterwiki_semantic.content.chunking.sizes import ByteCounter as ByteCounter
from otterwiki_semantic.content.chunking.sizes import TokenCounter as TokenCounter
from otterwiki_semantic.content.chunking.sizes import count_words as count_words
from otterwiki_semantic.content.chunking.word_counts import WordTokenCounter as WordTokenCounter
from otterwiki_semantic.content.chunking.word_counts import word_counter_of as word_counter_of
from otterwiki_semantic.core.chunk_profiles import Profile as Profile
from otterwiki_semantic.core.chunk_profiles import profile_named as profile_named
