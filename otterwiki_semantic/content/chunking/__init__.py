"""Divide a page into chunks: the passages that are embedded, indexed and shown."""

from otterwiki_semantic.content.chunking.chunker import BytesAsTokens, TokenCounter, count_words, shortened
from otterwiki_semantic.content.chunking.profiles import PROFILES, Profile, profile_named

__all__ = ["PROFILES", "BytesAsTokens", "Profile", "TokenCounter", "count_words", "profile_named", "shortened"]
