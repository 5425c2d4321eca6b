"""The model that SEMANTIC_MODEL names."""

from __future__ import annotations

from collections.abc import Callable

from otterwiki_semantic.config import BUNDLED, Settings
from otterwiki_semantic.embedding import Embedder
from otterwiki_semantic.embedding.asking import Pace
from otterwiki_semantic.embedding.chroma_service import ChromaService
from otterwiki_semantic.embedding.local_model import Encoder, LocalModel
from otterwiki_semantic.embedding.minilm_model import MiniLM
from otterwiki_semantic.embedding.ollama_api import OllamaService
from otterwiki_semantic.embedding.onnx_model import OnnxEncoder
from otterwiki_semantic.embedding.openai_api import OpenAIService
from otterwiki_semantic.embedding.sentence_transformer_model import SentenceTransformerEncoder
from otterwiki_semantic.embedding.served import ServedModel, Service

_LOCAL: dict[str, Callable[[Settings], Encoder]] = {
    "onnx": OnnxEncoder,
    "sentence-transformers": SentenceTransformerEncoder,
}
_SERVED: dict[str, Callable[[Settings], Service]] = {"ollama": OllamaService, "openai": OpenAIService}


def open_embedder(settings: Settings, pace: Pace | None = None) -> Embedder:
    """Give the model of settings; nobody is asked and nothing large read before it is used.

    `pace` is the clock and the chance of the pauses between two attempts to reach a server.
    """
    if settings.model == BUNDLED:
        return MiniLM(threads=settings.threads or None)
    provider = settings.model.partition(":")[0]
    if provider in _LOCAL:
        return LocalModel(settings, _LOCAL[provider])
    return ServedModel(settings, _SERVED.get(provider, ChromaService)(settings), pace or Pace())
