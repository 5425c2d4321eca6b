"""For programs that open the wiki's ChromaDB collection; importing this registers its embedding function.

See docs/chroma.md.
"""

from otterwiki_semantic.embedding.chroma_function import WikiEmbeddingFunction

__all__ = ["WikiEmbeddingFunction"]
