"""A mirror of the catalog's vectors in ChromaDB, embedded or on a server."""
