"""Models of sentence-transformers: of a model hub, or in a directory, on a processor or a GPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.redact import quote
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.model_files import digest_of
from otterwiki_semantic.embedding.local.onnx_runtime import BackgroundThreads
from otterwiki_semantic.embedding.local.token_estimate import SPECIAL_TOKENS, estimate_tokens
from otterwiki_semantic.embedding.model_info import UNKNOWN_WINDOW
from otterwiki_semantic.embedding.options import check_free, check_names, options_of

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

_FIXED = ("modules", "prompts", "model_card_data", "token", "use_auth_token", "similarity_fn_name", "default_prompt_name")
_SLICE = 8
"""Texts embedded at a time: a query waits for no more than that."""
_NO_LIMIT = 1_000_000


class SentenceTransformerEncoder:
    """See `Encoder`. A query and the index's texts take turns, as the library is not made for several threads."""

    def __init__(self, settings: Settings) -> None:
        self._name = settings.model.partition(":")[2]
        self._prompts = {True: settings.query_prompt, False: settings.passage_prompt}
        self._model = _load(self._name, settings)
        self._turn = threading.Lock()
        self._background = BackgroundThreads(1)
        self._tokenizer = _own_tokenizer(self._model)
        self.special_tokens = self._tokenizer.num_special_tokens_to_add(False) if self._tokenizer else SPECIAL_TOKENS
        self.window = self._window(settings.model_window)
        self.digest = self._digest()
        self.dimension = len(self._slice(["a text"], is_query=False)[0])

    def prompt(self, *, is_query: bool) -> str:
        """Give the prompt that was set, else the model's own."""
        told = self._prompts[is_query]
        if told is not None:
            return told
        names = ("query",) if is_query else ("document", "passage", "corpus")
        own = self._model.prompts
        return str(next((own[name] for name in (*names, self._model.default_prompt_name) if own.get(name)), ""))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `Encoder`; an estimate for the few models without a tokenizer of the usual kind."""
        if self._tokenizer is None:
            return estimate_tokens(texts)
        return [len(encoding.ids) for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def encode(self, texts: Sequence[str], *, is_query: bool) -> list[Any]:
        """See `Encoder`; texts of like length go together."""
        if is_query:
            return list(self._slice(texts, is_query=True))
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        slices = [order[start : start + _SLICE] for start in range(0, len(order), _SLICE)]

        def embed(indexes: list[int]) -> Any:
            return self._slice([texts[index] for index in indexes], is_query=False)

        found = self._background.each(embed, slices, lambda _: 0)
        by_index = {
            index: vector
            for indexes, vectors in zip(slices, found, strict=True)
            for index, vector in zip(indexes, vectors, strict=True)
        }
        return [by_index[index] for index in range(len(texts))]

    def _slice(self, texts: Sequence[str], *, is_query: bool) -> Any:
        encode = self._model.encode_query if is_query else self._model.encode_document
        with self._turn:
            try:
                return encode(list(texts), prompt=self._prompts[is_query], show_progress_bar=False, convert_to_numpy=True)
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                raise ModelError(f"sentence-transformers cannot embed with {self._name}: {error}") from error

    def _window(self, told: int | None) -> int:
        own = self._model.max_seq_length
        if not told:
            return own if own and own < _NO_LIMIT else UNKNOWN_WINDOW
        with suppress(AttributeError):  # a model that reads texts of any length
            self._model.max_seq_length = told
        return told

    def _digest(self) -> str:
        """Give a digest of the directory's files, or the commit that the hub named."""
        directory = Path(self._name)
        if directory.is_dir():
            return digest_of(directory, (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".md"))
        config = getattr(getattr(self._model[0], "auto_model", None), "config", None)
        return str(getattr(config, "_commit_hash", None) or "unversioned")


def _load(name: str, settings: Settings) -> SentenceTransformer:
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    except ImportError:
        raise ModelError(
            'sentence-transformers is not installed; install it with: pip install "otterwiki-semantic[sentence-transformers]"'
        ) from None
    options = options_of(settings)
    check_free(options, _FIXED)
    check_names(
        options, set(signature(SentenceTransformer.__init__).parameters) - {"self", "model_name_or_path", *_FIXED}, "it"
    )
    if name.startswith(("/", ".", "~")) and not Path(name).is_dir():
        raise ModelError(
            f"{name} is no directory; SEMANTIC_MODEL=sentence-transformers: wants an absolute path, or a hub's name"
        )
    disable_progress_bar()
    if settings.threads:
        torch.set_num_threads(settings.threads)
    try:
        return SentenceTransformer(name, token=settings.model_key, **options)
    except Exception as error:  # noqa: BLE001 - the libraries below raise many kinds, which may hold the key
        raise _not_loaded(name, error, settings.model_key) from None


def _not_loaded(name: str, error: Exception, key: str | None) -> ModelError:
    reason = quote(f"{type(error).__name__}: {error}", (key,))
    if Path(name).is_dir():
        return ModelError(f"the model in {name} cannot be loaded: {reason}")
    text = (
        f"{name} cannot be loaded ({reason}); where the model hub cannot be reached, save the model elsewhere with "
        f"SentenceTransformer({name!r}).save(directory), bring the directory here, and name it in SEMANTIC_MODEL"
    )
    return ModelUnreachableError(text) if _is_of_connection(error) else ModelError(text)


def _is_of_connection(error: BaseException | None) -> bool:
    import httpx

    if error is None:
        return False
    is_it = isinstance(error, httpx.TransportError | ConnectionError) or "connect" in str(error)[:200]
    return is_it or _is_of_connection(error.__cause__ or error.__context__)


def _own_tokenizer(model: SentenceTransformer) -> Tokenizer | None:
    """Give a copy of the model's tokenizer, which cannot be used by two threads at once, that cuts and pads nothing."""
    from tokenizers import Tokenizer

    backend = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(backend, Tokenizer):
        return None
    tokenizer = Tokenizer.from_str(backend.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
