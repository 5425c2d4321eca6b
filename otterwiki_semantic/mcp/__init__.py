"""The MCP server, for agents."""

from otterwiki_semantic.mcp.http_auth import http_access
from otterwiki_semantic.mcp.local_backend import LocalBackend
from otterwiki_semantic.mcp.rest_backend import RestBackend
from otterwiki_semantic.mcp.run import serve

__all__ = ["LocalBackend", "RestBackend", "http_access", "serve"]
