"""Brings an index to HEAD as the manager does."""

from __future__ import annotations

from typing import Any

from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.sync import Indexer, SyncResult
from otterwiki_semantic.storage.generation import Generation


def sync(indexer: Indexer, generation: Generation, tracker: ProgressTracker | None = None, **options: Any) -> SyncResult | None:
    """Return what was done; None if the index equalled HEAD. For the options see `Indexer.plan`."""
    plan = indexer.plan(generation.catalog, **options)
    return None if plan is None else indexer.sync(generation, plan, tracker or ProgressTracker())
