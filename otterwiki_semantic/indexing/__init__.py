"""Bring an index to git's HEAD and keep it there: syncs, rebuilds, promotion."""

from otterwiki_semantic.indexing.history import SyncHistory
from otterwiki_semantic.indexing.manager import IndexManager
from otterwiki_semantic.indexing.promotion import estimate
from otterwiki_semantic.indexing.rebuild import now
from otterwiki_semantic.indexing.recipe import IndexRecipe

__all__ = ["IndexManager", "IndexRecipe", "SyncHistory", "estimate", "now"]
