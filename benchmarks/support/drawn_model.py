"""A model whose vectors are drawn, for measuring everything but the model: some thousand texts a second on one core.

A token's vector is random, and shorter the more frequent the token is; a text's is their mean. So texts of a topic are near
each other, as they are with a real model. Nothing else is meant by them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL
from tests.support.tiny_models import write_graph

_DIMENSION = 384
_SEED = 31
_HALFWAY = 400
"""The rank from which on a token's vector has more than half of the full length."""


def write_drawn_model(directory: Path) -> Path:
    """Write the model as an ONNX graph with the bundled model's tokenizer."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(BUNDLED_MODEL / "tokenizer.json", directory)
    tokens = len(json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"])
    table = np.random.default_rng(_SEED).standard_normal((tokens, _DIMENSION)).astype(np.float32)
    ranks = np.arange(tokens, dtype=np.float32)[:, np.newaxis]
    write_graph(directory, table * (ranks / (ranks + _HALFWAY)))
    return directory
