"""The bundled model: all-MiniLM-L6-v2 (Reimers & Gurevych, 2019; Wang et al., 2020), quantised to int8 for ONNX Runtime."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from otterwiki_semantic.content.chunking import WordTokenCounter
from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.onnx_session import BackgroundThreads, OpenedGraph, open_graph

BUNDLED_MODEL = Path(__file__).parent / "minilm"
SPECIAL_TOKENS = 2
_MODEL, _TOKENIZER = "model.onnx", "tokenizer.json"
ESTIMATING_COUNTER = WordTokenCounter(BUNDLED_MODEL / _TOKENIZER, bytes_per_token=4)
"""Estimates the tokens of a text for a model without a local tokenizer; rarely too low."""


class BundledModel:
    """The quantised encoder in a directory, read on first use; `threads` texts are embedded at a time. Errors: `ModelError`."""

    name = "all-MiniLM-L6-v2"
    is_calibrated = True
    asks_server = False
    device = "cpu"  # no GPU has the 8-bit operations of its graph
    overhead = SPECIAL_TOKENS

    def __init__(self, directory: Path = BUNDLED_MODEL, threads: int | None = None) -> None:
        self._directory = directory
        self._provenance = _read_provenance(directory / "provenance.json")
        self.dimension = int(self._provenance["dimension"])
        self.window = int(self._provenance["max_tokens"])
        self._lock = threading.Lock()
        self._opened: OpenedGraph | None = None
        self._background = BackgroundThreads(threads)

    @property
    def fingerprint(self) -> str:
        files = self._provenance["files"]
        return f"{self.name}/{files[_MODEL]}/{files[_TOKENIZER]}/{self.window}"

    def prepare(self) -> None:
        """Do nothing: the provenance describes the model."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Truncate texts that exceed the context window; chunks are sized to fit."""
        vectors = self._background.map(lambda batch: [self._run(ids) for ids in batch], self._encode(texts), batch=1)
        return np.array(vectors, dtype=np.float32).reshape(len(texts), self.dimension)

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:  # noqa: ARG002 - it is never slow
        """Run on the calling thread, at its priority."""
        return np.array([self._run(ids) for ids in self._encode(texts)], dtype=np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encodings = self.open().tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) + sum(len(rest.ids) for rest in encoding.overflowing) for encoding in encodings]

    @property
    def word_counter(self) -> WordTokenCounter:
        """A counter of the same tokens, for any process and much faster."""
        return WordTokenCounter(self._directory / _TOKENIZER)

    def input_tokens(self, texts: Sequence[str]) -> list[int]:
        return [count + SPECIAL_TOKENS for count in self.count_tokens(texts)]

    def open(self) -> OpenedGraph:
        """Return the opened model; the first call verifies and reads its files."""
        with self._lock:
            if self._opened is None:
                for name, digest in self._provenance["files"].items():
                    _verify(self._directory / name, digest)
                self._opened = open_graph(self._directory / _MODEL, self._directory / _TOKENIZER, is_optimised=True)
                self._opened.tokenizer.enable_truncation(self.window)
            return self._opened

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self.open().tokenizer.encode_batch_fast(list(texts))]

    def _run(self, ids: Sequence[int]) -> Any:
        return self.open().session.run(["embedding"], {"input_ids": np.array([ids], dtype=np.int64)})[0][0]


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


def is_common_word(word: str) -> bool:
    """Whether a lower-case word is one of the 30,000 most common English words and word parts."""
    return ESTIMATING_COUNTER.has_token(word)
