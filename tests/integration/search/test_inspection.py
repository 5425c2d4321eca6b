"""How search sees a page: what is told of its passages is what the catalog, the tokenizer and an exact search say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from tokenizers import Tokenizer

from otterwiki_semantic.core.errors import PageNotFoundError
from otterwiki_semantic.core.records import ChunkInspection
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, BundledModel
from otterwiki_semantic.search import inspection
from otterwiki_semantic.storage import vector_rows
from tests.support.engines import follow, generation_of, opened
from tests.support.live_wiki import commit

LONG = "Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"Sentence number {n} about topic {n * n}. " * 20 for n in range(12))


@pytest.fixture
def index(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexEngine]:
    """An index of seven pages, compared in parts of five passages."""
    monkeypatch.setattr(vector_rows, "BLOCK", 5)
    copy = {
        "copy.md": (settings.repository / "garden.md").read_text(),
        "long.md": f"# {LONG}",
        "empty.md": "---\ntitle: None\n---",
    }
    commit(settings.repository, copy)
    made = opened(settings)
    yield made
    made.close()


def paths(index: IndexEngine) -> list[str]:
    return sorted(generation_of(index).catalog.pages.blobs())


def without_neighbours(chunk: ChunkInspection) -> ChunkInspection:
    return structs.replace(chunk, neighbours=(), tokens=0)


def test_the_passages_of_a_page_are_those_of_the_catalog(index: IndexEngine) -> None:
    for path in paths(index):
        seen = index.inspect_page(path)
        hits = generation_of(index).catalog.reader.page_range(path, 0, 1_000)
        assert [without_neighbours(chunk) for chunk in seen.chunks] == [
            ChunkInspection(
                hit.text,
                hit.prefix_length,
                hit.overlap_length,
                hit.section_path,
                hit.anchor,
                hit.start_line,
                hit.end_line,
                tokens=0,
                has_vector=True,
                neighbours=(),
            )
            for hit in hits
        ]
        assert (seen.path, seen.total_chunks) == (path, len(hits))
        assert seen.index == index.status().index
        assert {seen.title} == {hit.title for hit in hits} or path == "empty"
    assert index.inspect_page("long").total_chunks >= 12


def test_tokens_are_those_of_the_models_own_tokenizer(index: IndexEngine) -> None:
    tokenizer = Tokenizer.from_file(str(BUNDLED_MODEL / "tokenizer.json"))
    tokenizer.no_truncation()
    for path in paths(index):
        seen = index.inspect_page(path)
        assert seen.window == 256
        for chunk in seen.chunks:
            assert chunk.tokens == len(tokenizer.encode(chunk.text).ids)
            assert chunk.tokens <= seen.window


def test_neighbours_are_what_an_exact_search_of_the_other_pages_finds(index: IndexEngine) -> None:
    reader = generation_of(index).catalog.reader
    vectors = reader.page_vectors(paths(index))
    for path, (_, own) in vectors.items():
        others = [(other, row) for other, (_, matrix) in vectors.items() if other != path for row in range(len(matrix))]
        elsewhere = np.array([vectors[other][1][row] for other, row in others])
        for chunk, vector in zip(index.inspect_page(path).chunks, own, strict=True):
            cosines = elsewhere @ vector
            assert [near.similarity for near in chunk.neighbours] == pytest.approx(sorted(cosines, reverse=True)[:3], abs=1e-5)
            for near in chunk.neighbours:
                places = [cosines[place] for place, (other, _) in enumerate(others) if other == near.path]
                assert any(near.similarity == pytest.approx(cosine, abs=1e-5) for cosine in places)


def test_the_nearest_passage_of_a_copied_page_is_its_original(index: IndexEngine) -> None:
    (chunk,) = index.inspect_page("copy").chunks
    nearest = chunk.neighbours[0]
    assert (nearest.path, nearest.title, nearest.section, nearest.anchor) == ("garden", "Garden", "Tomatoes", "tomatoes")
    assert nearest.similarity == pytest.approx(1, abs=1e-3)
    assert len(chunk.neighbours) == 3


def test_a_page_that_has_gone_is_no_neighbour_any_more(settings: Settings, index: IndexEngine) -> None:
    assert index.inspect_page("garden").chunks[0].neighbours[0].path == "copy"
    follow(index, settings, {"copy.md": None})
    (chunk,) = index.inspect_page("garden").chunks
    assert "copy" not in {near.path for near in chunk.neighbours}
    assert len(chunk.neighbours) == 3


def test_of_a_long_page_the_first_passages_are_shown(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = index.inspect_page("long")
    monkeypatch.setattr(inspection, "MOST_CHUNKS", 4)
    seen = index.inspect_page("long")
    assert seen.total_chunks == whole.total_chunks > 4
    assert seen.chunks == whole.chunks[:4]


def test_a_page_without_text_has_no_passages(index: IndexEngine) -> None:
    seen = index.inspect_page("empty")
    assert (seen.title, seen.chunks, seen.total_chunks) == ("None", (), 0)


def test_a_page_is_found_in_any_case_and_an_unknown_one_has_likely_names(index: IndexEngine) -> None:
    assert index.inspect_page("House/HEATING").path == "house/heating"
    with pytest.raises(PageNotFoundError, match="the index has no page 'hetaing'") as error:
        index.inspect_page("hetaing")
    assert "house/heating" in error.value.nearest


def test_a_passage_the_model_fails_on_has_no_vector_or_neighbours(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    embed = BundledModel.embed

    def failing(self: BundledModel, texts: list[str]) -> object:
        if any("siren" in text for text in texts):
            raise RuntimeError("no")
        return embed(self, texts)

    monkeypatch.setattr(BundledModel, "embed", failing)
    index = opened(settings)
    (chunk,) = index.inspect_page("house/alarm").chunks
    assert (chunk.has_vector, chunk.neighbours) == (False, ())
    assert chunk.tokens > 2
    for path in ("garden", "home"):
        neighbours = index.inspect_page(path).chunks[0].neighbours
        assert len(neighbours) == 3
        assert "house/alarm" not in {near.path for near in neighbours}
    index.close()


def test_the_only_page_of_a_wiki_has_no_neighbours(settings: Settings) -> None:
    others: list[Path] = [path for path in settings.repository.rglob("*.md") if path.name != "garden.md"]
    commit(settings.repository, {str(path.relative_to(settings.repository)): None for path in others})
    index = opened(settings)
    (chunk,) = index.inspect_page("garden").chunks
    assert (chunk.has_vector, chunk.neighbours) == (True, ())
    index.close()
