"""The MCP server for agents."""

from otterwiki_semantic.mcp.folder_watch import followed as followed
from otterwiki_semantic.mcp.http_auth import http_access as http_access
from otterwiki_semantic.mcp.http_auth import oauth_settings as oauth_settings
from otterwiki_semantic.mcp.local_backend import LocalBackend as LocalBackend
from otterwiki_semantic.mcp.rest_backend import RestBackend as RestBackend
from otterwiki_semantic.mcp.run import serve as serve
