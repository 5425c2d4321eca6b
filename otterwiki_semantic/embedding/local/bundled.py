"""The bundled model: all-MiniLM-L6-v2 (Reimers & Gurevych, 2019; Wang et al., 2020), quantised to int8 for ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.onnx_runtime import BackgroundThreads, OpenedGraph, open_graph

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

BUNDLED_MODEL = Path(__file__).parent / "minilm"
SPECIAL_TOKENS = 2
_MODEL, _TOKENIZER, _PROVENANCE = "model.onnx", "tokenizer.json", "provenance.json"
_BYTES_PER_TOKEN = 4


class BundledModel:
    """The quantised sentence encoder in a model directory.

    The directory's provenance is read at once, the model itself on first use. `threads` is the number of texts embedded at a
    time for the index (default: the processors this process may use). Errors: `ModelError` if a file is missing or damaged, or
    is not the one that the provenance names.
    """

    name = "all-MiniLM-L6-v2"
    is_calibrated = True
    asks_server = False
    overhead = SPECIAL_TOKENS

    def __init__(self, directory: Path = BUNDLED_MODEL, threads: int | None = None) -> None:
        self._directory = directory
        self._provenance = _read_provenance(directory / _PROVENANCE)
        self.dimension = int(self._provenance["dimension"])
        self.window = int(self._provenance["max_tokens"])
        self._lock = threading.Lock()
        self._opened: OpenedGraph | None = None
        self._background = BackgroundThreads(threads)

    @property
    def fingerprint(self) -> str:
        """The digests of model and tokenizer, and the context window: whatever changes them changes vectors."""
        files = self._provenance["files"]
        return f"{self.name}/{files[_MODEL]}/{files[_TOKENIZER]}/{self.window}"

    def prepare(self) -> None:
        """Do nothing: the provenance says what the model is."""

    def open(self) -> None:
        """Read the model now rather than on first use."""
        self._open()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Texts longer than the context window are cut off; chunks are made to fit."""
        opened = self._open()
        encodings = [encoding.ids for encoding in opened.tokenizer.encode_batch_fast(list(texts))]
        vectors = self._background.map(lambda ids: _run(opened.session, ids), encodings, len)
        return np.array(vectors, dtype=np.float32).reshape(len(texts), self.dimension)

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:  # noqa: ARG002 - it is never slow
        """Runs on the calling thread, at its priority."""
        opened = self._open()
        encodings = opened.tokenizer.encode_batch_fast(list(texts))
        return np.array([_run(opened.session, encoding.ids) for encoding in encodings], dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        tokenizer = self._open().tokenizer
        encodings = tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) + sum(len(rest.ids) for rest in encoding.overflowing) for encoding in encodings]

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        special = self._open().tokenizer.num_special_tokens_to_add(is_pair=False)
        return [count + special for count in self.count_tokens(texts)]

    def _open(self) -> OpenedGraph:
        with self._lock:
            if self._opened is None:
                self._opened = self._read()
            return self._opened

    def _read(self) -> OpenedGraph:
        for name, digest in self._provenance["files"].items():
            _verify(self._directory / name, digest)
        opened = open_graph(self._directory / _MODEL, self._directory / _TOKENIZER, is_optimised=True)
        opened.tokenizer.enable_truncation(self.window)
        return opened


def _read_provenance(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not {_MODEL, _TOKENIZER} <= record["files"].keys() or not int(record["dimension"]) or not int(record["max_tokens"]):
            raise ValueError("it names no model")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} does not describe a model ({error}); install otterwiki-semantic again") from error
    return record


def _verify(path: Path, expected: str) -> None:
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"the model file {path} cannot be read ({error}); install otterwiki-semantic again") from error
    if digest != expected:
        raise ModelError(
            f"the model file {path} is damaged: its sha256 is {digest}, expected {expected}; install otterwiki-semantic again"
        )


def _run(session: InferenceSession, ids: Sequence[int]) -> Any:
    return session.run(["embedding"], {"input_ids": np.array([ids], dtype=np.int64)})[0][0]


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Return about how many tokens each text has for a model whose tokenizer is elsewhere; rarely too few.

    Of the bundled tokenizer's count and a quarter of the text's bytes it is the larger one.
    """
    encodings = _tokenizer().encode_batch_fast(list(texts), add_special_tokens=False)
    sizes = [len(text.encode("utf-8", errors="replace")) for text in texts]
    return [max(len(encoding.ids), -(-size // _BYTES_PER_TOKEN)) for encoding, size in zip(encodings, sizes, strict=True)]


@cache
def _tokenizer() -> Tokenizer:
    """Return the bundled tokenizer, without the model's truncation."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(BUNDLED_MODEL / _TOKENIZER))
