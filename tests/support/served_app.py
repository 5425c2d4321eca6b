"""The wiki as `test_servers` has it served: an answer names the worker that gave it. `WITHOUT_PLUGIN` leaves the plugin out."""

from __future__ import annotations

import os

from flask import Response
from otterwiki.plugins import plugin_manager

if os.environ.get("WITHOUT_PLUGIN"):
    plugin_manager.unregister(name="semantic")

from otterwiki.server import app


@app.after_request  # type: ignore[untyped-decorator]
def name_worker(response: Response) -> Response:
    response.headers["X-Worker"] = str(os.getpid())
    return response
