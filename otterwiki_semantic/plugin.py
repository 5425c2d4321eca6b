"""The wiki's hooks: routes when it starts, a wake-up call whenever the repository may have changed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pluggy

from otterwiki_semantic.config import read_settings
from otterwiki_semantic.errors import OwnerUnavailableError
from otterwiki_semantic.remote_index import RemoteIndex
from otterwiki_semantic.web.api import make_blueprint

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Flask

    from otterwiki_semantic.config import Settings

NAME = "Semantic search"
_EXTENSION = "otterwiki_semantic"

hookimpl = pluggy.HookimplMarker("otterwiki")
log = logging.getLogger(__name__)


class SemanticSearchPlugin:
    """What An Otter Wiki loads through the entry point group ``otterwiki``.

    A hook runs inside the user's save: it sends one line to the process that owns the index, and neither waits nor raises.
    """

    def __init__(self) -> None:
        self._index: RemoteIndex | None = None

    @hookimpl
    def setup(self, app: Flask, storage: Any) -> None:
        """Register the routes and see that the index has an owner. Errors: `ConfigError`, before the wiki serves anything."""
        settings = _settings(app, storage.path)
        index = RemoteIndex(settings)
        blueprint = make_blueprint(index, settings)
        app.register_blueprint(blueprint)
        app.extensions["csrf"].exempt(blueprint)
        app.extensions[_EXTENSION] = self._index = index
        if settings.api_key is None:
            app.logger.warning("semantic search: OTTERWIKI_API_KEY is not set, so only logged-in sessions may use the API")
        try:
            index.start()
        except OwnerUnavailableError as error:
            app.logger.error("semantic search: %s", error)

    @hookimpl
    def page_saved(self) -> None:
        """Wake the index."""
        self._wake()

    @hookimpl
    def page_deleted(self) -> None:
        """Wake the index."""
        self._wake()

    @hookimpl
    def page_renamed(self) -> None:
        """Wake the index."""
        self._wake()

    @hookimpl
    def repository_changed(self) -> None:
        """Wake the index: this one comes after a push, too."""
        self._wake()

    @hookimpl
    def info(self) -> tuple[str, str, str]:
        """Name, description and category, for the wiki's help."""
        return (NAME, "Finds passages by meaning, through /api/v1/semantic-search.", "search")

    def _wake(self) -> None:
        if self._index is not None:
            self._index.notify()


def _settings(app: Flask, repository: Path | str) -> Settings:
    from pathlib import Path

    return read_settings(app.config, repository=Path(repository))


plugin = SemanticSearchPlugin()
