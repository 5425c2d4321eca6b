"""Text to unit vectors: the bundled model, other local models, and providers over HTTP."""

from otterwiki_semantic.embedding.base import Embedder as Embedder
from otterwiki_semantic.embedding.base import Matrix as Matrix
from otterwiki_semantic.embedding.factory import model_config as model_config
from otterwiki_semantic.embedding.factory import open_embedder as open_embedder
from otterwiki_semantic.embedding.local.bundled import BundledModel as BundledModel
from otterwiki_semantic.embedding.local.bundled import is_common_word as is_common_word
from otterwiki_semantic.embedding.query_embedder import CachedEmbedder as CachedEmbedder
from otterwiki_semantic.embedding.query_embedder import QueryEmbedder as QueryEmbedder
from otterwiki_semantic.embedding.query_embedder import mean_vector as mean_vector
from otterwiki_semantic.embedding.vectors import WORDS_ONLY as WORDS_ONLY
from otterwiki_semantic.embedding.vectors import embed_passages as embed_passages
from otterwiki_semantic.embedding.vectors import heading_path as heading_path
from otterwiki_semantic.embedding.vectors import is_words_only as is_words_only
from otterwiki_semantic.embedding.vectors import profile_for as profile_for
from otterwiki_semantic.embedding.vectors import vector_fingerprint as vector_fingerprint
from otterwiki_semantic.embedding.vectors import vector_id as vector_id
from otterwiki_semantic.embedding.vectors import words_only_id as words_only_id
