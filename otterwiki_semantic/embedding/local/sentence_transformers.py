"""Models for sentence-transformers, from a model hub or a directory, on a CPU or a GPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.content.chunking import WordTokenCounter
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError, causes
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.bundled import ESTIMATING_COUNTER, SPECIAL_TOKENS
from otterwiki_semantic.embedding.local.model_files import files_digest
from otterwiki_semantic.embedding.local.onnx_session import BackgroundThreads
from otterwiki_semantic.embedding.model_info import UNKNOWN_WINDOW, check_known, check_not_reserved, model_options

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

_RESERVED = ("modules", "prompts", "model_card_data", "token", "use_auth_token", "similarity_fn_name", "default_prompt_name")
_BATCH, _GPU_BATCH = 8, 32
"""Batch sizes on a CPU and on a GPU; a query waits for one batch at most."""
_NO_LIMIT = 1_000_000


class SentenceTransformerEncoder:
    """An `Encoder`. Queries and passages take turns, because the library is not thread-safe."""

    word_counter: WordTokenCounter | None = None

    def __init__(self, settings: Settings) -> None:
        self._name = settings.model.partition(":")[2]
        self._prompts = {True: settings.query_prompt, False: settings.passage_prompt}
        self._model = _load(self._name, settings)
        self.device = self._model.device.type
        self._batch = _BATCH if self.device == "cpu" else _GPU_BATCH
        self._turn = threading.Lock()
        self._background = BackgroundThreads(1)
        self._tokenizer = _own_tokenizer(self._model)
        self.special_tokens = self._tokenizer.num_special_tokens_to_add(False) if self._tokenizer else SPECIAL_TOKENS
        self.window = self._window(settings.model_window)
        self.digest = self._digest()
        self.dimension = len(self._encode_batch(["a text"], is_query=False)[0])

    def prompt(self, *, is_query: bool) -> str:
        configured = self._prompts[is_query]
        if configured is not None:
            return configured
        names = ("query",) if is_query else ("document", "passage", "corpus")
        own = self._model.prompts
        return str(next((own[name] for name in (*names, self._model.default_prompt_name) if own.get(name)), ""))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return token counts; estimates for the few models with an uncommon kind of tokenizer."""
        if self._tokenizer is None:
            return ESTIMATING_COUNTER.count_tokens(texts)
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def encode(self, texts: Sequence[str], *, is_query: bool) -> list[Any]:
        """Embed texts of similar length together."""
        if is_query:
            return list(self._encode_batch(texts, is_query=True))
        return self._background.map(lambda batch: self._encode_batch(batch, is_query=False), texts, self._batch)

    def _encode_batch(self, texts: Sequence[str], *, is_query: bool) -> Any:
        encode = self._model.encode_query if is_query else self._model.encode_document
        with self._turn:
            try:
                return encode(list(texts), prompt=self._prompts[is_query], show_progress_bar=False, convert_to_numpy=True)
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                raise ModelError(f"sentence-transformers cannot embed with {self._name}: {error}") from error

    def _window(self, configured: int | None) -> int:
        own = self._model.max_seq_length
        if not configured:
            return own if own and own < _NO_LIMIT else UNKNOWN_WINDOW
        with suppress(AttributeError):  # a model without a length limit
            self._model.max_seq_length = configured
        return configured

    def _digest(self) -> str:
        directory = Path(self._name)
        if directory.is_dir():
            return files_digest(directory, (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".md"))
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        return str(getattr(config, "_commit_hash", None) or "unversioned")


def _load(name: str, settings: Settings) -> SentenceTransformer:
    if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
        raise ModelError(
            f"{name} is no directory; SEMANTIC_MODEL=sentence-transformers: wants an absolute path, or a hub's name"
        )
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    except ImportError:
        raise ModelError(
            f"sentence-transformers is not installed; install it with: {pip_install('sentence-transformers')}"
        ) from None
    options = model_options(settings)
    check_not_reserved(options, _RESERVED)
    parameters = set(signature(SentenceTransformer.__init__).parameters)
    check_known(options, parameters - {"self", "model_name_or_path", *_RESERVED}, "it")
    if settings.device == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            f"SEMANTIC_DEVICE is 'cuda', but PyTorch {torch.__version__} has none; install the driver, and PyTorch with CUDA "
            "(https://pytorch.org/get-started/locally), or set SEMANTIC_DEVICE=cpu"
        )
    if settings.device != "auto":
        options.setdefault("device", settings.device)
    disable_progress_bar()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    try:
        return SentenceTransformer(name, token=settings.model_key, **options)
    except Exception as error:  # noqa: BLE001 - the libraries below raise many kinds of errors, which may contain the key
        raise _not_loaded(name, error, settings.model_key) from None


def _not_loaded(name: str, error: Exception, key: str | None) -> ModelError:
    import httpx

    reason = redact(f"{type(error).__name__}: {error}", (key,))
    if Path(name).is_dir():
        return ModelError(f"the model in {name} cannot be loaded: {reason}")
    text = (
        f"{name} cannot be loaded ({reason}); if the model hub cannot be reached from here, save the model elsewhere with "
        f"SentenceTransformer({name!r}).save(directory), copy the directory to this machine, and name it in SEMANTIC_MODEL"
    )
    is_of_connection = any(
        isinstance(cause, httpx.TransportError | ConnectionError) or "connect" in str(cause)[:200] for cause in causes(error)
    )
    return ModelUnreachableError(text) if is_of_connection else ModelError(text)


def _own_tokenizer(model: SentenceTransformer) -> Tokenizer | None:
    """Return a copy of the model's tokenizer, which is not thread-safe; the copy neither truncates nor pads."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(backend, Tokenizer):
        return None
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
