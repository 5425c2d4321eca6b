"""Bring an index to git's HEAD and keep it there: syncs, rebuilds, promotion."""

from otterwiki_semantic.indexing.manager import IndexManager
from otterwiki_semantic.indexing.page_loader import PageLoader
from otterwiki_semantic.indexing.progress import now
from otterwiki_semantic.indexing.promotion import QualityGate, estimate
from otterwiki_semantic.indexing.recipe import IndexRecipe, ModelStatus
from otterwiki_semantic.indexing.sync import Stopped
