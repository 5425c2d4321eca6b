"""Index engines in this process."""

from __future__ import annotations

from otterwiki_semantic.core.records import IndexStatus
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.live_wiki import eventually, is_settled


def opened(settings: Settings) -> IndexEngine:
    index = IndexEngine(settings)
    index.start()
    wait_until_equal(index)
    return index


def wait_until_equal(index: IndexEngine) -> IndexStatus:
    def equal() -> IndexStatus | None:
        status = index.status()
        return status if is_settled(status) and status.index.commit == status.index.head else None

    status = eventually(equal)
    assert status is not None
    return status
