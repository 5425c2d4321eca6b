"""One index on disk: a SQLite catalog with its keyword index, and the vectors in memory and in ChromaDB."""

from otterwiki_semantic.storage.catalog import UNFINISHED, Catalog, Counts, StoredVector
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerVectors
from otterwiki_semantic.storage.exact import Candidate, ExactIndex
from otterwiki_semantic.storage.filters import Condition, Scope, page_conditions
from otterwiki_semantic.storage.generation import Generation, OpenStore
from otterwiki_semantic.storage.generations import GenerationStore, index_fingerprint
from otterwiki_semantic.storage.reader import Allowed, CatalogReader, iso_time
from otterwiki_semantic.storage.sqlite import SqliteFile
from otterwiki_semantic.storage.vector_store import ChromaVectors, VectorStore

__all__ = [
    "UNFINISHED",
    "Allowed",
    "Candidate",
    "Catalog",
    "CatalogReader",
    "ChromaServer",
    "ChromaServerVectors",
    "ChromaVectors",
    "CollectionOwnership",
    "Condition",
    "Counts",
    "ExactIndex",
    "Generation",
    "GenerationStore",
    "OpenStore",
    "Scope",
    "SqliteFile",
    "StoredVector",
    "VectorStore",
    "index_fingerprint",
    "iso_time",
    "page_conditions",
]
