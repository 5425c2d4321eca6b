"""One index on disk: a SQLite catalog with its keyword index, and the vectors in memory and in ChromaDB."""

from otterwiki_semantic.storage.catalog import Catalog as Catalog
from otterwiki_semantic.storage.catalog import Counts as Counts
from otterwiki_semantic.storage.catalog_reader import PinnedQuestion as PinnedQuestion
from otterwiki_semantic.storage.chroma.connection import ChromaServer as ChromaServer
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore as EmbeddedChromaStore
from otterwiki_semantic.storage.chroma.mirror import MirrorState as MirrorState
from otterwiki_semantic.storage.chroma.mirror import OpenStore as OpenStore
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership as CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerStore as ChromaServerStore
from otterwiki_semantic.storage.data_directory import claim_data_directory as claim_data_directory
from otterwiki_semantic.storage.exact_index import ChunkRef as ChunkRef
from otterwiki_semantic.storage.exact_index import ExactIndex as ExactIndex
from otterwiki_semantic.storage.filters import Filter as Filter
from otterwiki_semantic.storage.filters import FilterMask as FilterMask
from otterwiki_semantic.storage.filters import page_filter as page_filter
from otterwiki_semantic.storage.generation import Generation as Generation
from otterwiki_semantic.storage.generation import GenerationStore as GenerationStore
from otterwiki_semantic.storage.generation import index_fingerprint as index_fingerprint
from otterwiki_semantic.storage.keyword_index import KeywordIndex as KeywordIndex
from otterwiki_semantic.storage.page_names import PageNames as PageNames
from otterwiki_semantic.storage.page_names import name_words as name_words
from otterwiki_semantic.storage.schema import UNFINISHED as UNFINISHED
from otterwiki_semantic.storage.schema import iso_time as iso_time
from otterwiki_semantic.storage.sqlite import SqliteFile as SqliteFile
from otterwiki_semantic.storage.vector_store import StoredVector as StoredVector
from otterwiki_semantic.storage.vector_store import VectorStore as VectorStore
