"""The wiki as a search engine of the browser: its description, and suggestions for the address bar.

Format: https://github.com/dewitt/opensearch, with its suggestions extension.
"""

from __future__ import annotations

from urllib.parse import urljoin

from flask import Response, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.records import SuggestRequest, query_text
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, page_url, pages, render_part

_SUGGESTIONS = 8
_MAX_NAME = 16
"""Characters of the short name that the format allows."""


@pages.get("/opensearch.xml")
@guarded("READ")
def opensearch() -> ResponseReturnValue:
    """Return the OpenSearch description."""
    name = str(current_app.config.get("SITE_NAME") or "Wiki")
    content = render_part("opensearch.xml", name=name, short_name=name[:_MAX_NAME])
    return Response(content, content_type="application/opensearchdescription+xml; charset=utf-8")


@pages.get("/suggestions")
@guarded("READ")
def suggestions() -> ResponseReturnValue:
    """Return the query, and titles, paths and addresses of suggested pages and headings."""
    query = request.args.get("q", "").strip()
    try:
        found = extension().index.suggest(SuggestRequest(query_text(query), _SUGGESTIONS)).suggestions if query else ()
    except SemanticError:
        found = ()
    shown = [(each, url) for each in found if (url := page_url(each.path, each.anchor))]
    labels = [each.title if each.kind == "page" else f"{each.title} › {each.section}" for each, _ in shown]
    addresses = [urljoin(request.host_url, url) for _, url in shown]
    reply = jsonify([query, labels, [each.path for each, _ in shown], addresses])
    reply.content_type = "application/x-suggestions+json"
    return reply
