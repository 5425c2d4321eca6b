"""One index on disk: a SQLite catalog with its keyword index, and the vectors in memory and in ChromaDB."""

from otterwiki_semantic.storage.catalog import Catalog, Counts
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.chroma.mirror import MirrorState, OpenStore
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerStore
from otterwiki_semantic.storage.exact_index import ChunkRef, ExactIndex
from otterwiki_semantic.storage.filters import Filter, FilterMask, page_filter
from otterwiki_semantic.storage.generation import Generation, GenerationStore, index_fingerprint
from otterwiki_semantic.storage.keyword_index import KeywordIndex
from otterwiki_semantic.storage.schema import UNFINISHED, iso_time
from otterwiki_semantic.storage.sqlite import SqliteFile
from otterwiki_semantic.storage.vector_store import StoredVector, VectorStore

__all__ = [
    "UNFINISHED",
    "Catalog",
    "ChromaServer",
    "ChromaServerStore",
    "ChunkRef",
    "CollectionOwnership",
    "Counts",
    "EmbeddedChromaStore",
    "ExactIndex",
    "Filter",
    "FilterMask",
    "Generation",
    "GenerationStore",
    "KeywordIndex",
    "MirrorState",
    "OpenStore",
    "SqliteFile",
    "StoredVector",
    "VectorStore",
    "index_fingerprint",
    "iso_time",
    "page_filter",
]
