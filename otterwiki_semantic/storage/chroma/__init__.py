"""Vectors in ChromaDB: embedded or on a server, as a mirror of the catalog."""
