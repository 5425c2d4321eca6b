"""Models whose similarities are of another scale rank and judge as the bundled one does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.search import Scale, noted_scale
from tests.support.live_wiki import demo_pages, eventually, make_repository

QUESTIONS = (
    "protect plumbing from freezing",
    "recover an erased directory",
    "sprinkler schedule for vegetables",
    "how are stars born",
    "price of bitcoin",
)


class NarrowModel(BundledModel):
    """The bundled model with a part that all texts share: every cosine c becomes 0.7 + 0.3 c, as many models have it."""

    name = fingerprint = "narrow"
    is_calibrated = False

    def __init__(self) -> None:
        super().__init__()
        self.dimension += 1
        self.interactive: list[bool] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        return _narrowed(np.stack([self._run(ids) for ids in self._encode(texts)]))

    def embed_queries(self, texts: Sequence[str], *, interactive: bool = True) -> Matrix:
        self.interactive.append(interactive)
        return self.embed(texts)


def _narrowed(vectors: Matrix) -> Matrix:
    shared = np.full((len(vectors), 1), np.sqrt(0.7), dtype=np.float32)
    return np.hstack((np.sqrt(0.3, dtype=np.float32) * vectors, shared))


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    place: Path = tmp_path_factory.mktemp("narrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("otterwiki_semantic.daemon.engine.open_embedder", lambda _settings: NarrowModel())
        for name, number in {"_QUESTIONS": 48, "_PASSAGES": 256}.items():  # as users have it
            patch.setattr(f"otterwiki_semantic.search.similarity_scale.{name}", number)
        index = IndexEngine(Settings(make_repository(place / "repository", demo_pages()), place / "index", pages=()))
        index.start()
        eventually(lambda: index.status().status == "ready" and noted(index) is not None)
    yield index
    index.close()


def noted(index: IndexEngine) -> Scale | None:
    serving = index._manager.serving
    return noted_scale(serving) if serving is not None else None


def test_the_scale_undoes_what_the_model_does_to_similarities(narrow: IndexEngine) -> None:
    scale = noted(narrow)
    assert scale is not None
    for similarity in (0.0, 0.3, 0.6):
        assert scale.to_bundled(0.7 + 0.3 * similarity) == pytest.approx(similarity, abs=0.06)
        assert scale.from_bundled(scale.to_bundled(similarity)) == pytest.approx(similarity)


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_ranks_and_judges_as_the_bundled_model_does(narrow: IndexEngine, demo: IndexEngine, question: str) -> None:
    options = SearchOptions(3, 1)
    ours, theirs = (index.search([question], options)[0] for index in (narrow, demo))
    assert ours.results[0].path == theirs.results[0].path
    assert ours.confident == theirs.confident
    assert ours.degraded is None


def test_similarities_are_shown_as_the_model_gives_them(narrow: IndexEngine) -> None:
    (answer,) = narrow.search([QUESTIONS[3]], SearchOptions())
    assert all(hit.distance is not None and hit.distance < 0.4 for hit in answer.results), "cosines of this model are above 0.6"


def test_related_pages_are_offered_as_with_the_bundled_model(narrow: IndexEngine, demo: IndexEngine) -> None:
    offered = [{page.path for page in one.related("procedures/backup", 20).results if page.relevant} for one in (narrow, demo)]
    assert offered[1]
    assert len(offered[0] ^ offered[1]) <= 2


def test_nobody_waits_for_the_questions_that_it_is_found_with(narrow: IndexEngine) -> None:
    assert isinstance(narrow.embedder, NarrowModel)
    assert False in narrow.embedder.interactive


def test_the_bundled_models_similarities_are_taken_as_they_are(demo: IndexEngine) -> None:
    assert noted(demo) is None
