"""The MCP server for agents."""

from otterwiki_semantic.mcp.folder_watch import followed
from otterwiki_semantic.mcp.http_auth import http_access, oauth_settings
from otterwiki_semantic.mcp.local_backend import LocalBackend
from otterwiki_semantic.mcp.rest_backend import RestBackend
from otterwiki_semantic.mcp.run import serve
