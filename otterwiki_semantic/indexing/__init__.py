"""Bring an index to git's HEAD and keep it there: syncs, rebuilds, promotion."""

from otterwiki_semantic.indexing.manager import IndexManager as IndexManager
from otterwiki_semantic.indexing.page_loader import PageLoader as PageLoader
from otterwiki_semantic.indexing.progress import now as now
from otterwiki_semantic.indexing.promotion import QualityGate as QualityGate
from otterwiki_semantic.indexing.promotion import estimate as estimate
from otterwiki_semantic.indexing.recipe import IndexRecipe as IndexRecipe
from otterwiki_semantic.indexing.recipe import ModelStatus as ModelStatus
from otterwiki_semantic.indexing.sync import Stopped as Stopped
