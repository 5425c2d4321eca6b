"""Support for programs that open the wiki's ChromaDB collection; importing it registers the embedding function.

See docs/chroma.md.
"""

from otterwiki_semantic.embedding.chroma_function import WikiEmbeddingFunction

__all__ = ["WikiEmbeddingFunction"]
