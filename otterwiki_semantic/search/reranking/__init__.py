"""Reorder the best chunks with a reranking model."""

from otterwiki_semantic.search.reranking.stage import NONE_CONFIGURED, RerankStage, open_reranker
