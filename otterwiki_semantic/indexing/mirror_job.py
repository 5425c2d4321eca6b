"""Fill ChromaDB from the serving generation, independently of syncs, and then remove the generation that it replaced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from otterwiki_semantic.core.backoff import Backoff
from otterwiki_semantic.core.errors import CatalogCorruptError, SemanticError
from otterwiki_semantic.indexing.scheduler import Scheduler
from otterwiki_semantic.indexing.serving_index import ServingIndex
from otterwiki_semantic.indexing.sync import Stopped
from otterwiki_semantic.storage import Generation

_QUIET_SECONDS, _LONGEST_SECONDS = 1.0, 30.0
"""How long after a change ChromaDB is filled, and how long further changes may delay this."""
_TURN_SECONDS, _PAUSE_SECONDS = 0.25, 0.1
"""How long ChromaDB is filled at a time, during which a sync must wait, and the pause between two turns."""
_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0
_SLOT = "mirror"

log = logging.getLogger(__name__)


class MirrorJob:
    """Fill ChromaDB in small steps until it equals the catalog. A failing store is retried automatically."""

    def __init__(
        self,
        index: ServingIndex,
        scheduler: Scheduler,
        tidy: Callable[[Generation], None],
        mark_corrupt: Callable[[Generation], None],
    ) -> None:
        """`tidy` is called after each turn, while the serving generation is neither synced nor replaced."""
        self._index = index
        self._scheduler = scheduler
        self._tidy = tidy
        self._mark_corrupt = mark_corrupt
        self._waits_since: float | None = None
        """When the oldest change that is not mirrored was made."""
        self._requested: tuple[str, str | None] | None = None
        self._backoff = Backoff(_RETRY_SECONDS, _MAX_RETRY_SECONDS)

    def request(self, generation: Generation) -> None:
        """Fill ChromaDB after the generation has been unchanged for a moment."""
        now, state = time.monotonic(), (generation.name, generation.catalog.meta("revision"))
        if state == self._requested:
            self._scheduler.run_within(_QUIET_SECONDS, _SLOT, self._run)
            return
        self._requested = state
        if self._waits_since is None:
            self._waits_since = now
        left = max(0.0, self._waits_since + _LONGEST_SECONDS - now)
        self._scheduler.run_in(min(_QUIET_SECONDS, left), _SLOT, self._run)

    def _run(self) -> None:
        try:
            with self._index.changing:
                generation = self._index.generation
                if generation is None or self._index.is_stopping or not self._is_settled(generation):
                    return
                self._waits_since = None
                generation.mirror.push(_TURN_SECONDS, self._index.check_stop)
                self._tidy(generation)
                if generation.mirror.is_whole:
                    generation.mirror.compact()
                pause = None if generation.mirror.is_whole else generation.mirror.retry_in + _PAUSE_SECONDS
            self._backoff.reset()
        except Stopped:
            return
        except SemanticError as error:
            if self._index.is_stopping:
                return
            log.warning("ChromaDB was not filled: %s", error)
            if isinstance(error, CatalogCorruptError) and generation is not None:
                self._mark_corrupt(generation)
                return
            pause = self._backoff.failed()
        if pause is not None:
            self._scheduler.run_within(pause, _SLOT, self._run)

    def _is_settled(self, generation: Generation) -> bool:
        catalog = generation.catalog
        return catalog.is_current and catalog.is_in_place and not (catalog.is_changing or self._index.left_to_rebuild)
