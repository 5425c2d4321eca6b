"""One index on disk: a SQLite catalog with its keyword index, and the vectors in memory and in ChromaDB."""

from otterwiki_semantic.storage.catalog import Catalog, Counts
from otterwiki_semantic.storage.catalog_reader import PinnedQuestion
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.export import export_collection
from otterwiki_semantic.storage.data_directory import claim_data_directory
from otterwiki_semantic.storage.exact_index import ChunkRef, ExactIndex, PageRows
from otterwiki_semantic.storage.filters import Filter, FilterMask, page_filter
from otterwiki_semantic.storage.generation import Generation, GenerationStore, index_fingerprint, open_generations
from otterwiki_semantic.storage.keyword_index import KeywordIndex, Vocabulary
from otterwiki_semantic.storage.labels import LabelId, LabelTable, SectionLabel, with_key, with_words
from otterwiki_semantic.storage.page_names import HeadingWords, PageNames
from otterwiki_semantic.storage.page_table import PageFacts
from otterwiki_semantic.storage.schema import iso_time
from otterwiki_semantic.storage.sqlite import SqliteFile
from otterwiki_semantic.storage.vector_rows import Rows
from otterwiki_semantic.storage.vector_store import StoredVector, VectorStore
from otterwiki_semantic.storage.wiki_links import resolve_wiki_links
