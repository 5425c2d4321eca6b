"""Answers are written with what there is: without a working embedding model by words, without a source not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import ChatModelError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import CachedEmbedder, open_embedder
from otterwiki_semantic.search.answering import Answerer
from otterwiki_semantic.search.answering.source import Source

TEXT = "The mill has two wheels. Nightly backups are kept 14 days on the tape. Otters sleep by day."


@pytest.fixture
def answerer(tmp_path: Path) -> Answerer:
    """An answerer whose embedding model cannot be opened."""
    settings = Settings(tmp_path, tmp_path, answers="extractive", model=f"onnx:{tmp_path}/missing")
    return Answerer(settings, CachedEmbedder(open_embedder(settings)), ["en"])


def written(answerer: Answerer, sources: Sequence[Source]) -> list[str]:
    asked = "How long are nightly backups kept?", (), sources, ()
    return [each.statement.text for each in answerer.statements(*asked, 5, lambda: False)]


def test_without_a_working_model_the_words_decide(answerer: Answerer) -> None:
    assert written(answerer, [Source(1, "backups", "Backups", (), TEXT)]) == ["Nightly backups are kept 14 days on the tape."]


def test_without_a_source_there_is_no_answer(answerer: Answerer) -> None:
    with pytest.raises(ChatModelError, match="SEMANTIC_ANSWERS_WINDOW"):
        written(answerer, [])
