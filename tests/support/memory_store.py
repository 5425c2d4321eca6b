"""A vector store without ChromaDB, which compares all vectors with each other."""

from __future__ import annotations

from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from tests.support.light_parts import open_in_memory


class MemoryStore(EmbeddedChromaStore):
    _open = open_in_memory
