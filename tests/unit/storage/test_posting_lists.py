"""BM25 scores from memory: those of FTS5, while pages change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import CatalogCorruptError
from otterwiki_semantic.storage.filters import FilterMask
from tests.support.small_index import SmallIndex

WORDS = ("boiler", "pump", "valve", "roof", "hull", "sail")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallIndex]:
    made = SmallIndex(tmp_path / "index")
    chance = random.Random(5)
    for page in range(40):
        texts = (" ".join(chance.choices((*WORDS, "filling", "words"), k=chance.choice((2, 9, 30, 200)))) for _ in range(3))
        made.put(f"page {page}", *((f"{text} {page}", None) for text in texts), section=chance.choice(WORDS))
    yield made
    made.generation.close()


def expression(words: tuple[str, ...]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def scores(small: SmallIndex, words: tuple[str, ...], limit: int, mask: FilterMask | None = None) -> dict[int, float]:
    index = small.catalog.reader.exact_index()
    return small.catalog.keywords.word_scores(words, expression(words), index, limit, mask)


def scores_of_fts5(small: SmallIndex, words: tuple[str, ...], limit: int, mask: FilterMask | None = None) -> dict[int, float]:
    return small.catalog.keywords.scores(expression(words), limit, mask)


@pytest.mark.parametrize("limit", [1, 7, 1000])
@pytest.mark.parametrize("words", [("pump",), ("hull", "roof"), WORDS, ("nowhere",), ("pump", "nowhere")])
def test_scores_are_those_of_fts5(small: SmallIndex, words: tuple[str, ...], limit: int) -> None:
    found = scores(small, words, limit)
    assert found == pytest.approx(scores_of_fts5(small, words, limit), rel=1e-4)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_pages_that_change_are_found_as_they_are(small: SmallIndex) -> None:
    scores(small, WORDS, 10)
    small.catalog.remove_pages([f"page {page}" for page in range(5)])
    small.put("page 7", ("pump pump pump", None))
    small.put("new", ("a pump and a valve", None), ("another roof", None))
    found = scores(small, ("pump", "valve"), 1000)
    expected = scores_of_fts5(small, ("pump", "valve"), 1000)
    assert found == pytest.approx(expected, rel=0.05), "the mean length is that of the known chunks"
    paths = {chunk.path for chunk in small.catalog.reader.chunks(list(found)).values()}
    assert {"page 7", "new"} <= paths
    assert "page 3" not in paths


def test_lists_are_read_again_after_many_changes(small: SmallIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.posting_lists._MAX_NEW", 3)
    scores(small, WORDS, 10)
    for page in range(6):
        small.put(f"later {page}", (f"pump and valve number {page}", None))
    assert scores(small, WORDS, 1000) == pytest.approx(scores_of_fts5(small, WORDS, 1000), rel=1e-4)


def test_only_so_many_postings_are_kept(small: SmallIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.posting_lists._MAX_POSTINGS", 150)
    for word in WORDS * 2:
        assert scores(small, (word,), 10) == pytest.approx(scores_of_fts5(small, (word,), 10), rel=1e-4)
        lists = small.catalog.keywords._lists
        assert lists is not None
        kept = sum(len(each.ids) for each in lists._lists.values())
        assert kept == lists._postings
        assert kept <= 150 or len(lists._lists) == 1
    monkeypatch.setattr("otterwiki_semantic.storage.posting_lists._MAX_POSTINGS", 1000)
    scores(small, WORDS, 10)
    scores(small, WORDS[:1], 10)
    assert lists._lists.keys() == set(WORDS), "all that fit are kept"


def test_a_filter_holds(small: SmallIndex) -> None:
    index = small.catalog.reader.exact_index()
    numbers = [row[0] for row in small.catalog.select("SELECT number FROM pages WHERE path IN ('page 3', 'page 9', 'page 30')")]
    mask = FilterMask.of(index, index.mask_of_pages(numbers))
    found = scores(small, WORDS, 1000, mask)
    assert found == pytest.approx(scores_of_fts5(small, WORDS, 1000, mask), rel=1e-4)
    assert {chunk.path for chunk in small.catalog.reader.chunks(list(found)).values()} <= {"page 3", "page 9", "page 30"}


def test_a_damaged_keyword_index_is_an_error(small: SmallIndex) -> None:
    small.break_keywords()
    with pytest.raises(CatalogCorruptError):
        scores(small, ("pump",), 10)


@pytest.mark.parametrize("in_names", [False, True])
def test_word_sets_say_which_words_each_chunk_has_while_pages_change(small: SmallIndex, in_names: bool) -> None:
    words, keywords = ["roof", "boiler", "nowhere"], small.catalog.keywords

    def check() -> list[int]:
        index = small.catalog.reader.exact_index()
        ids = index.columns.ids[index.live].tolist()
        texts = [" ".join(keywords.stored_words([chunk])[chunk][: 1 if in_names else 2]).split() for chunk in ids]
        found: list[int] = keywords.word_sets(words, index, index.find(ids), in_names=in_names).tolist()
        assert found == [sum(1 << bit for bit, word in enumerate(words) if word in text) for text in texts]
        return found

    assert {0, 1, 2, 3} >= set(check()) >= {0, 1}
    small.put("new", ("a boiler below the roof", None), ("nothing of them", None))
    small.put("newer", ("below the roof", None), section="boiler")
    small.catalog.remove_pages(["page 3"])
    assert check()[-3:] == ([0, 0, 2] if in_names else [3, 0, 3])
