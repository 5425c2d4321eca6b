"""Tokens that are counted word by word are those that the tokenizer finds in the whole text."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking import WordTokenCounter, word_counter_of
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import open_embedder
from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, ESTIMATING_COUNTER, BundledModel
from otterwiki_semantic.embedding.local.model import LocalModel
from tests.support.tiny_models import write_graph, write_onnx

MODEL = BundledModel()
PIECES = (
    *("otter", "Otters", "TargetWords", "x" * 120, "10.0.0.5", "[SEP]", "[CLS", "C++", "don't", "…", "Ärger", "日本語"),
    *("İ", "ΣΑΣ", "🦦", " ", "  ", "\n", "\t", "\r", "\v", "\f", "\x1c", "\x85", "\xa0", "\u3000", "\u200b", "\u0301"),
    *("\ufeff", "\ufffd", "\0"),
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join))


@given(st.lists(TEXTS, max_size=5))
def test_words_have_as_many_tokens_as_their_text(texts: list[str]) -> None:
    assert MODEL.word_counter.count_tokens(texts) == MODEL.count_tokens(texts)
    sizes = [len(text.encode("utf-8", errors="replace")) for text in texts]
    estimates = [max(tokens, -(-size // 4)) for tokens, size in zip(MODEL.count_tokens(texts), sizes, strict=True)]
    assert ESTIMATING_COUNTER.count_tokens(texts) == estimates


def test_a_counter_can_be_sent_to_another_process() -> None:
    counter = pickle.loads(pickle.dumps(MODEL.word_counter))
    assert counter.count_tokens(["otter pup", ""]) == MODEL.count_tokens(["otter pup", ""])


def word_counter(directory: Path) -> WordTokenCounter | None:
    """Return the counter of the model in a directory."""
    model = open_embedder(Settings(directory, directory, model=f"onnx:{directory}"))
    assert isinstance(model, LocalModel)
    return model.word_counter


def test_any_model_with_a_tokenizer_of_bert_has_a_counter(tmp_path: Path) -> None:
    assert word_counter(write_onnx(tmp_path / "other")) is None
    directory = write_onnx(tmp_path / "bert")
    shutil.copy(BUNDLED_MODEL / "tokenizer.json", directory)
    write_graph(directory, np.ones((30_522, 8), dtype=np.float32))
    counter = word_counter(directory)
    assert counter is not None
    assert counter.count_tokens(["Otter pups don't swim."]) == MODEL.count_tokens(["Otter pups don't swim."])


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"normalizer": null}', '{"normalizer": 1, "model": "x"}'])
def test_a_file_that_describes_no_tokenizer_of_bert_has_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content)
    assert word_counter_of(tmp_path / "tokenizer.json") is None
    assert word_counter_of(tmp_path / "missing.json") is None
