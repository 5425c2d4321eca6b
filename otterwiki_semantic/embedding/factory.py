"""Opens the model that SEMANTIC_MODEL names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from otterwiki_semantic.core.settings import BUNDLED, Settings
from otterwiki_semantic.embedding.base import Embedder
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.embedding.local.model import Encoder, LocalModel
from otterwiki_semantic.embedding.local.onnx import OnnxEncoder
from otterwiki_semantic.embedding.local.sentence_transformers import SentenceTransformerEncoder
from otterwiki_semantic.embedding.remote.chroma_functions import ChromaFunctionProvider
from otterwiki_semantic.embedding.remote.model import RemoteModel
from otterwiki_semantic.embedding.remote.ollama import OllamaProvider
from otterwiki_semantic.embedding.remote.openai import OpenAIProvider
from otterwiki_semantic.embedding.remote.provider import EmbeddingProvider

_LOCAL: dict[str, Callable[[Settings], Encoder]] = {"onnx": OnnxEncoder, "sentence-transformers": SentenceTransformerEncoder}
_REMOTE: dict[str, Callable[[Settings], EmbeddingProvider]] = {"ollama": OllamaProvider, "openai": OpenAIProvider}

MODEL_CONFIG = ("model", "model_window", "query_prompt", "passage_prompt")


def model_config(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of `core.settings.index_settings` that identify the model: no address, key or options."""
    return {name: settings[name] for name in MODEL_CONFIG if name in settings}


def open_embedder(settings: Settings) -> Embedder:
    """Return the configured model. Contacts no server and reads no large file before it is used."""
    if settings.model == BUNDLED:
        return BundledModel(threads=settings.threads or None)
    provider = settings.model.partition(":")[0]
    if provider in _LOCAL:
        return LocalModel(settings, _LOCAL[provider])
    return RemoteModel(settings, _REMOTE.get(provider, ChromaFunctionProvider)(settings))
