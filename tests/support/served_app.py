"""The wiki as `test_servers` has it served: an answer names the worker that gave it. `WITHOUT_PLUGIN` leaves the plugin out.

An answer has the Content-Security-Policy that the cookie `policy` asks for, as if the wiki's proxy had sent it.
"""

from __future__ import annotations

import os
from urllib.parse import unquote

from flask import Response, request
from otterwiki.plugins import plugin_manager

if os.environ.get("WITHOUT_PLUGIN"):
    plugin_manager.unregister(name="semantic")

from otterwiki.server import app


@app.after_request  # type: ignore[untyped-decorator]
def add_headers(response: Response) -> Response:
    response.headers["X-Worker"] = str(os.getpid())
    if policy := request.cookies.get("policy"):
        response.headers["Content-Security-Policy"] = unquote(policy)
    return response
