"""Reorder the best chunks with a reranking model."""

from otterwiki_semantic.search.reranking.base import open_reranker
from otterwiki_semantic.search.reranking.bounded import BoundedReranker
from otterwiki_semantic.search.reranking.stage import NONE_CONFIGURED, RerankStage

__all__ = ["NONE_CONFIGURED", "BoundedReranker", "RerankStage", "open_reranker"]
