"""Text to unit vectors: the bundled model, other local models, and providers over HTTP."""

from otterwiki_semantic.embedding.base import Embedder, Matrix
from otterwiki_semantic.embedding.factory import open_embedder
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.embedding.passages import embed_passages, profile_for, vector_fingerprint, vector_id
from otterwiki_semantic.embedding.queries import QueryEmbedder, vector_or_none

__all__ = [
    "BundledModel",
    "Embedder",
    "Matrix",
    "QueryEmbedder",
    "embed_passages",
    "open_embedder",
    "profile_for",
    "vector_fingerprint",
    "vector_id",
    "vector_or_none",
]
