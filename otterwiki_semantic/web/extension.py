"""The plugin's state in a Flask application. One process can serve several wikis, and each has its own."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus

from flask import Flask, Response, current_app, request

from otterwiki_semantic.content import Repository, write_notation
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.records import Notation
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import DisabledIndex, IndexClient
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.web.oauth_grants import ConnectionStore
from otterwiki_semantic.web.rendering import PageRenderer

EXTENSION = "otterwiki_semantic"
_PAUSE_SECONDS = 30.0
_PAGE_FIRST = ("LINKTITLE", "PAGENAMETITLE")
"""Values of the wiki's WIKILINK_STYLE, without underscores, for ``[[page|text]]``."""
_PREFERENCES = "admin_content_and_editing"
"""The wiki's endpoint where administrators change WIKILINK_STYLE."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Extension:
    """The plugin's parts for a wiki."""

    index: IndexClient
    settings: Settings
    pages: PageReader
    renderer: PageRenderer
    connections: ConnectionStore
    suggestions_pause: Cooldown
    """Active after the index daemon did not answer; suggestions are then skipped at once."""

    @classmethod
    def of(cls, index: IndexClient, settings: Settings) -> Extension:
        """Return the extension of a wiki with this index and these settings."""
        pages = PageReader(index, Repository.of(settings))
        return cls(index, settings, pages, PageRenderer(), ConnectionStore(settings.data_dir), Cooldown(_PAUSE_SECONDS))


def wiki_notation(app: Flask) -> Notation:
    """Return the syntax of links in an application's pages, which its administrators can change at any time."""
    style = str(app.config.get("WIKILINK_STYLE", "")).upper().replace("_", "").strip()
    return Notation.WIKI_PAGE_FIRST if style in _PAGE_FIRST else Notation.WIKI


def note_notation(app: Flask) -> None:
    """Write the syntax of an application's links where the index daemon reads it."""
    found: Extension = app.extensions[EXTENSION]
    if isinstance(found.index, DisabledIndex):
        return
    try:
        if write_notation(found.settings.data_dir, wiki_notation(app)):
            found.index.notify()
    except OSError as error:
        log.warning("the order of wikilinks could not be written: %s", error)


def follow_preferences(response: Response) -> Response:
    """Tell the index if an administrator has saved the preference for the order of the wiki's links.

    Other workers of the wiki still have the old configuration, and must not tell it.
    """
    if request.method == "POST" and request.endpoint == _PREFERENCES and response.status_code < HTTPStatus.BAD_REQUEST:
        note_notation(current_app)
    return response


def extension() -> Extension:
    """Return the extension of the wiki of the current request."""
    found: Extension = current_app.extensions[EXTENSION]
    return found
