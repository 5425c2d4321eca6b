"""The model of a collection as a ChromaDB embedding function, so that other programs can query the collection by text."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
from chromadb.utils.embedding_functions import register_embedding_function

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.settings import Settings, read_setting
from otterwiki_semantic.embedding.base import Embedder
from otterwiki_semantic.embedding.factory import MODEL_CONFIG, open_embedder

_FROM_ENVIRONMENT = ("model_key", "model_url", "model_options", "device", "threads")


@register_embedding_function
class WikiEmbeddingFunction(EmbeddingFunction[Documents]):
    """Embeds texts with the model that a wiki's collection was built with.

    The address of a model server, and its key, are read from the environment (`SEMANTIC_MODEL_URL`, `SEMANTIC_MODEL_KEY`,
    `SEMANTIC_MODEL_OPTIONS`): a collection must not choose who gets a key. Nothing is loaded or requested before the first
    text. Errors: `ConfigError` for an invalid setting; `ModelError` if the model cannot be used.
    """

    def __init__(self, **config: Any) -> None:
        self._config: Mapping[str, Any] = config
        if unknown := config.keys() - MODEL_CONFIG:
            raise ConfigError(f"an embedding function of a wiki has no {', '.join(sorted(unknown))}")

    def __call__(self, input: Documents) -> Embeddings:  # noqa: A002 - ChromaDB's name
        return list(self._embedder.embed(list(input)))

    def embed_query(self, input: Documents) -> Embeddings:  # noqa: A002 - ChromaDB's name
        return list(self._embedder.embed_queries(list(input), interactive=False))

    @cached_property
    def _embedder(self) -> Embedder:
        directory = Path(mkdtemp(prefix="otterwiki-semantic-"))  # for what the model's server reports about itself
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        given = {name: value for name in _FROM_ENVIRONMENT if (value := read_setting(name, os.environ)) is not None}
        embedder = open_embedder(Settings(repository=directory, data_dir=directory, **{**self._config, **given}))
        embedder.prepare()
        return embedder

    @staticmethod
    def name() -> str:
        return "otterwiki-semantic"

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> WikiEmbeddingFunction:
        return WikiEmbeddingFunction(**config)

    def get_config(self) -> dict[str, Any]:
        return dict(self._config)

    def default_space(self) -> Space:
        return "cosine"
