"""Who may see the plugin's pages in the wiki: the same as see the wiki's own, which are answered in the same way."""

from __future__ import annotations

from flask import abort, redirect, request, url_for
from flask_login import current_user
from werkzeug.wrappers import Response

from otterwiki_semantic.web.access import has_permission


def refuse_unless(permission: str) -> Response | None:
    """Let those pass who have a permission (None); send who is not logged in to the login, and stop the others with a 403."""
    if not has_permission(permission):
        if current_user.is_authenticated:
            abort(403)
        return redirect(url_for("login", next=request.full_path))
    return None
