"""Answers of a model need sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import ChatModelError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding import CachedEmbedder, open_embedder
from otterwiki_semantic.search.answering import Answerer


def test_without_a_source_there_is_no_answer(tmp_path: Path) -> None:
    settings = Settings(tmp_path, tmp_path, answers="ollama:small")
    answerer = Answerer(settings, CachedEmbedder(open_embedder(settings)), ["en"])
    with pytest.raises(ChatModelError, match="SEMANTIC_ANSWERS_WINDOW"):
        list(answerer.statements("How long are nightly backups kept?", (), (), (), 5, lambda: False))
