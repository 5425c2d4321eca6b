"""Index engines in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from otterwiki_semantic.core.records import IndexStatus
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.storage import Generation
from tests.support.live_wiki import commit, eventually, is_settled


def opened(settings: Settings) -> IndexEngine:
    index = IndexEngine(settings)
    index.start()
    wait_until_equal(index)
    return index


def generation_of(index: IndexEngine) -> Generation:
    """Return the generation that serves."""
    generation = index._manager.serving
    assert generation is not None
    return generation


def wait_until_equal(index: IndexEngine) -> IndexStatus:
    def equal() -> IndexStatus | None:
        status = index.status()
        return status if is_settled(status) and status.index.commit == status.index.head else None

    return eventually(equal)


def follow(index: IndexEngine, settings: Settings, files: Mapping[str, str | bytes | None]) -> None:
    """Commit files (None: remove them), and wait until they are indexed."""
    commit(settings.repository, files)
    index.notify()
    wait_until_equal(index)


@contextmanager
def restarting(settings: Settings) -> Iterator[Callable[..., IndexEngine]]:
    """Yield a function that restarts the index with some settings changed, and waits until it equals HEAD."""
    made: list[IndexEngine] = []

    def restart(**changes: Any) -> IndexEngine:
        close()
        made.append(opened(replace(settings, **changes)))
        return made[0]

    def close() -> None:
        while made:
            made.pop().close()

    yield restart
    close()
