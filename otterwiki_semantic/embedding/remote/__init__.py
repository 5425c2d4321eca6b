"""Models on a server."""
