"""Divide a page into chunks: the passages that are embedded, indexed and shown."""

from otterwiki_semantic.content.chunking.chunker import ByteCounter, TokenCounter, count_words, shorten_heading
from otterwiki_semantic.content.chunking.profiles import PROFILES, Profile, profile_named

__all__ = ["PROFILES", "ByteCounter", "Profile", "TokenCounter", "count_words", "profile_named", "shorten_heading"]
