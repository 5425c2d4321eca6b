"""The model that SEMANTIC_MODEL names."""

from __future__ import annotations

from collections.abc import Callable

from otterwiki_semantic.core.settings import BUNDLED, Settings
from otterwiki_semantic.embedding.base import Embedder
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.embedding.local.model import Encoder, LocalModel
from otterwiki_semantic.embedding.local.onnx import OnnxEncoder
from otterwiki_semantic.embedding.local.sentence_transformers import SentenceTransformerEncoder
from otterwiki_semantic.embedding.remote.chroma_functions import ChromaFunctionProvider
from otterwiki_semantic.embedding.remote.model import EmbeddingProvider, RemoteModel
from otterwiki_semantic.embedding.remote.ollama import OllamaProvider
from otterwiki_semantic.embedding.remote.openai import OpenAIProvider
from otterwiki_semantic.embedding.remote.retry import Pace

_LOCAL: dict[str, Callable[[Settings], Encoder]] = {
    "onnx": OnnxEncoder,
    "sentence-transformers": SentenceTransformerEncoder,
}
_SERVED: dict[str, Callable[[Settings], EmbeddingProvider]] = {"ollama": OllamaProvider, "openai": OpenAIProvider}


def open_embedder(settings: Settings, pace: Pace | None = None) -> Embedder:
    """Give the model of settings; nobody is asked and nothing large read before it is used.

    `pace` is the clock and the chance of the pauses between two attempts to reach a server.
    """
    if settings.model == BUNDLED:
        return BundledModel(threads=settings.threads or None)
    provider = settings.model.partition(":")[0]
    if provider in _LOCAL:
        return LocalModel(settings, _LOCAL[provider])
    return RemoteModel(settings, _SERVED.get(provider, ChromaFunctionProvider)(settings), pace or Pace())
