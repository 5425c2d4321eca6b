"""The plugin's state in a Flask application. One process can serve several wikis, and each has its own."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Flask, current_app

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.records import Notation
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexClient
from otterwiki_semantic.daemon.page_reader import PageReader
from otterwiki_semantic.web.oauth_grants import ConnectionStore
from otterwiki_semantic.web.rendering import PageRenderer

EXTENSION = "otterwiki_semantic"
_PAUSE_SECONDS = 30.0
_PAGE_FIRST = ("LINKTITLE", "PAGENAMETITLE")
"""Values of the wiki's WIKILINK_STYLE, without underscores, for ``[[page|text]]``."""


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


def extension() -> Extension:
    """Return the extension of the wiki of the current request."""
    found: Extension = current_app.extensions[EXTENSION]
    return found
