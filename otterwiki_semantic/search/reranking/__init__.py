"""Reorder the best chunks with a reranking model."""

from otterwiki_semantic.search.reranking.stage import NONE_CONFIGURED as NONE_CONFIGURED
from otterwiki_semantic.search.reranking.stage import RerankStage as RerankStage
from otterwiki_semantic.search.reranking.stage import open_reranker as open_reranker
