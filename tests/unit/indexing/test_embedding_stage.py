"""What happens when the model fails, with the bundled model's numbers replaced by random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.records import Chunk
from otterwiki_semantic.core.telemetry import NO_TELEMETRY
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.embedding.vectors import vector_fingerprint
from otterwiki_semantic.indexing.embedding_stage import EmbeddingStage
from otterwiki_semantic.indexing.sync import Stopped

WEIGHT = 0.2


class Model(BundledModel):
    """Embeds nothing, and fails on the texts that `fails` raises for."""

    def __init__(self, fails: Callable[[str], None] = lambda _text: None) -> None:
        super().__init__()
        self.fails = fails
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.asked.append(list(texts))
        for text in texts:
            self.fails(text)
        rows = np.random.default_rng(1).normal(size=(len(texts), 4)).astype(np.float32)
        unit: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit


def failing_on(word: str, error: Exception) -> Callable[[str], None]:
    def fail(text: str) -> None:
        if word in text:
            raise error

    return fail


def chunks(*texts: str) -> dict[str, tuple[str, Chunk]]:
    return {f"id of {text}": (f"page of {text}", Chunk(text, 0, 0, "", (), (), "", 1, 1)) for text in texts}


def stage_of(model: Model, check_stop: Callable[[], None] = lambda: None) -> EmbeddingStage:
    stage = EmbeddingStage(model, check_stop, NO_TELEMETRY)
    stage.begin(WEIGHT, vector_fingerprint(model, WEIGHT))
    return stage


def embedded(stage: EmbeddingStage, *texts: str) -> list[str]:
    return [vector.id.removeprefix("id of ") for vector in stage.embed(chunks(*texts))]


def test_chunks_are_embedded_together_and_counted() -> None:
    model = Model()
    stage = stage_of(model)
    assert embedded(stage, "one", "two") == ["one", "two"]
    assert (len(model.asked), stage.texts, stage.error) == (1, 2, None)
    assert stage.seconds > 0


def test_a_chunk_that_the_model_fails_on_stops_no_other() -> None:
    stage = stage_of(Model(failing_on("bad", ModelError("it chokes"))))
    assert embedded(stage, "one", "bad", "two") == ["one", "two"]
    assert stage.error == "page of bad: it chokes"
    assert embedded(stage, "three") == ["three"]


def test_after_three_failures_in_a_row_the_model_is_left_alone_until_the_next_sync(caplog: pytest.LogCaptureFixture) -> None:
    model = Model(failing_on("bad", RuntimeError("a node failed")))
    stage = stage_of(model)
    assert embedded(stage, "bad 1", "bad 2", "fine", "bad 3", "bad 4", "bad 5", "never asked") == ["fine"]
    assert "the model fails; the pages left are indexed by their words alone" in caplog.text
    asked = len(model.asked)
    assert embedded(stage, "one") == []
    assert len(model.asked) == asked
    stage.begin(WEIGHT, vector_fingerprint(model, WEIGHT))
    assert stage.error is None
    assert embedded(stage, "one") == ["one"]


def test_a_model_that_cannot_be_reached_is_left_alone_for_a_while() -> None:
    now = 0.0
    model = Model(failing_on("", ModelUnreachableError("it is down")))
    stage = stage_of(model)
    stage._unreachable = Cooldown(30.0, lambda: now)
    assert embedded(stage, "one", "two") == []
    assert (len(model.asked), stage.is_resting, stage.error) == (1, True, "it is down")
    stage.begin(WEIGHT, vector_fingerprint(model, WEIGHT))
    assert embedded(stage, "one") == []
    assert (len(model.asked), stage.error) == (1, "it is down")
    now, model.fails = 31.0, lambda _text: None
    stage.begin(WEIGHT, vector_fingerprint(model, WEIGHT))
    assert embedded(stage, "one") == ["one"]
    assert not stage.is_resting


def test_vectors_of_another_model_than_the_index_has_are_refused() -> None:
    stage = stage_of(Model())
    stage.begin(WEIGHT, "another model")
    assert embedded(stage, "one") == []
    assert "another model than this index is made with" in str(stage.error)


def test_a_stop_is_no_failure_of_the_model() -> None:
    def stop() -> None:
        raise Stopped

    stage = stage_of(Model(), stop)
    with pytest.raises(Stopped):
        embedded(stage, "one")
    assert stage.error is None
