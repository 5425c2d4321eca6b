"""OAuth 2.1 for remote clients, with the SDK's server; logins and consent are the wiki's."""

from otterwiki_semantic.mcp.oauth.app import authorized_app
from otterwiki_semantic.mcp.oauth.provider import current_connection
