"""Vectors in ChromaDB: embedded, or on a server."""
