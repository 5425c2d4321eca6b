"""Bring an index to git's HEAD and keep it there: syncs, rebuilds, promotion."""

from otterwiki_semantic.indexing.manager import IndexManager
from otterwiki_semantic.indexing.progress import now
from otterwiki_semantic.indexing.promotion import RecallGate, estimate
from otterwiki_semantic.indexing.recipe import IndexRecipe, ModelStatus
from otterwiki_semantic.indexing.sync_history import SyncHistory

__all__ = ["IndexManager", "IndexRecipe", "ModelStatus", "RecallGate", "SyncHistory", "estimate", "now"]
