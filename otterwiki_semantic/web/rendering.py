"""Markdown as the wiki renders it, in a process with limits: nothing else stops a parser that a page keeps busy."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from flask import current_app
from markupsafe import Markup

from otterwiki_semantic.core.errors import LimitExceededError
from otterwiki_semantic.core.worker_process import WorkerProcess, restart_clock

_SECONDS = 1.0
"""CPU seconds per page."""
_START_SECONDS = 10.0
"""CPU seconds for loading the wiki's renderer."""
_WAIT_SECONDS = 0.3
"""How long a page waits for another one to be rendered, which may take up to the limit; most take less than 0.1 s."""
_IDLE_SECONDS = 60.0
_RUNS = tuple(1_000 * sign for sign in "[](){}<>*_~`!|\\#=^$ \t")
"""Texts with such a run are not rendered at all: nobody writes them, and most take the renderer longer than its limit."""
_SIMPLE = (str, int, float, bool, type(None), list, tuple, dict)
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "DATABASE_URI", "GIT_REMOTE")
_MAX_REMEMBERED = 1_000
_SOURCE = Markup(
    '<p><em>This takes too long to render. Its source is shown instead.</em></p><div class="semantic-code">{}</div>'
)

log = logging.getLogger(__name__)


class PageRenderer:
    """Render parts of pages. Thread-safe: one thread waits for its page, others soon return to the wiki's pages."""

    def __init__(self) -> None:
        self._worker = WorkerProcess(_IDLE_SECONDS)
        self._waiting = Lock()
        self._refused: dict[int, None] = {}
        """Hashes of texts that took too long, oldest first."""

    def prepare(self) -> None:
        """Start the process in the background for an expected request."""
        config = _config()

        def start() -> None:
            with suppress(Exception):  # reported when a page is rendered
                self._worker.call(_START_SECONDS, render, config, "")

        Thread(target=start, name="prepare-renderer", daemon=True).start()

    def html(self, markdown: str) -> Markup:
        """Return the wiki's HTML of Markdown, which it sanitises; the Markdown if that takes too long."""
        is_refused = hash(markdown) in self._refused or any(run in markdown for run in _RUNS)
        if not is_refused and self._waiting.acquire(timeout=_WAIT_SECONDS):
            try:
                return Markup(self._worker.call(_START_SECONDS, render, _config(), markdown))
            except LimitExceededError:
                while len(self._refused) >= _MAX_REMEMBERED:
                    self._refused.pop(next(iter(self._refused)), None)
                self._refused[hash(markdown)] = None
            except Exception:  # of the wiki, or of a plugin that needs more than its own code
                log.exception("the wiki's renderer failed")
            finally:
                self._waiting.release()
        return _SOURCE.format(markdown)


def _config() -> dict[str, Any]:
    """Return the settings of the current wiki that its renderer may use, without secrets."""
    return {
        name: value
        for name, value in current_app.config.items()
        if isinstance(value, _SIMPLE) and not any(part in name for part in _SECRET)
    }


_renderers: list[tuple[Mapping[str, Any], Any]] = []


def render(config: Mapping[str, Any], markdown: str) -> str:
    """Return the HTML of Markdown in a wiki with this configuration. Runs in a separate process."""
    if not _renderers or _renderers[0][0] != config:
        from otterwiki.renderer import OtterwikiRenderer

        _renderers[:] = [(config, OtterwikiRenderer(config=config))]
    restart_clock(_SECONDS)
    return str(_renderers[0][1].markdown(markdown)[0])
