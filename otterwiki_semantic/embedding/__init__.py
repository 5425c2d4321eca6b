"""Text to unit vectors: the bundled model, other local models, and providers over HTTP."""

from otterwiki_semantic.embedding.base import Embedder, Matrix
from otterwiki_semantic.embedding.factory import model_config, open_embedder
from otterwiki_semantic.embedding.local.bundled import BundledModel, is_common_word
from otterwiki_semantic.embedding.query_embedder import CachedEmbedder, QueryEmbedder, mean_vector
from otterwiki_semantic.embedding.vectors import (
    WORDS_ONLY,
    embed_passages,
    heading_path,
    is_words_only,
    profile_for,
    vector_fingerprint,
    vector_id,
    words_only_id,
)
