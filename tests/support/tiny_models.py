"""Directories with tiny models: each of a few words is a token with a vector of its own."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

WORDS = ["boiler", "radiator", "warm", "room", "tomato", "plant", "garden", "may", "the", "in", "query", "passage"]
TABLE = np.random.default_rng(7).standard_normal((len(WORDS) + 1, 8)).astype(np.float32)
"""Vectors by token; the first one is that of all other words."""


def write_tokenizer(directory: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    vocabulary = {word: number for number, word in enumerate(["[UNK]", *WORDS])}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(directory / "tokenizer.json"))


def write_onnx(directory: Path, output: str = "last_hidden_state", inputs: tuple[str, ...] = ("attention_mask",)) -> Path:
    """Write an encoder whose graph looks up the vectors of tokens; it wants `inputs`, and does not use them."""
    directory.mkdir(parents=True, exist_ok=True)
    write_tokenizer(directory)
    write_graph(directory, TABLE, output, inputs)
    return directory


def write_graph(
    directory: Path,
    table: npt.NDArray[np.float32],
    output: str = "last_hidden_state",
    inputs: tuple[str, ...] = ("attention_mask",),
) -> None:
    """Write the graph of an encoder that looks up tokens in a table of vectors; it wants `inputs`, and does not use them."""
    weights = _ints(1, *table.shape) + _int(2, 1) + _text(8, "table") + _bytes(9, table.tobytes())
    node = _text(1, "table") + _text(1, "input_ids") + _text(2, output) + _text(4, "Gather")
    graph = _bytes(1, node) + _text(2, "tiny") + _bytes(5, weights)
    for name in ("input_ids", *inputs):
        graph += _bytes(11, _value(name, 7, 2))
    graph += _bytes(12, _value(output, 1, 3))
    (directory / "model.onnx").write_bytes(_int(1, 8) + _bytes(7, graph) + _bytes(8, _int(2, 17)))


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def write_sentence_transformer(directory: Path) -> Path:
    """Write a model of sentence-transformers with the same vectors, and prompts of one word."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    directory.mkdir(parents=True, exist_ok=True)
    write_tokenizer(directory)
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    (directory / "tokenizer.json").unlink()
    module = StaticEmbedding(tokenizer, embedding_weights=torch.from_numpy(TABLE))
    prompts = {"query": "query ", "document": "passage "}
    SentenceTransformer(modules=[module], prompts=prompts, device="cpu").save(str(directory))
    return directory


def _value(name: str, kind: int, rank: int) -> bytes:
    """Describe an input or output: its element type, and `rank` unnamed dimensions."""
    shape = b"".join(_bytes(1, _text(2, f"{name}_{number}")) for number in range(rank))
    return _text(1, name) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, shape)))


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return struct.pack("B", low | 128) + _varint(rest) if rest else struct.pack("B", low)


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _ints(field: int, *numbers: int) -> bytes:
    return b"".join(_int(field, number) for number in numbers)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _text(field: int, content: str) -> bytes:
    return _bytes(field, content.encode())
