"""Dropping duplicates and limiting each page's share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.analysis.minhash import minhash_signature, read_signatures
from otterwiki_semantic.search.scoring import Candidate, Tier
from otterwiki_semantic.search.selection import Deduplicator, mmr_order

BOILERPLATE = " ".join(f"word{number}" for number in range(60))


def deduplicator(texts: dict[str, str], read: list[int], *, ranks_pages: bool = False, **tiers: Tier) -> Deduplicator:
    """One chunk of each text, on the page that is named before the dot."""
    ranked = [Candidate(at, name, name.partition(".")[0], 0, tier=tiers.get(name, Tier.SCORE)) for at, name in enumerate(texts)]
    bodies = list(texts.values())

    def words_of(chunks: Sequence[int]) -> dict[int, tuple[str, str]]:
        read.extend(chunks)
        return {chunk: ("", bodies[chunk]) for chunk in chunks}

    signatures = read_signatures([minhash_signature(body) for body in bodies])
    return Deduplicator(ranked, signatures, words_of, ranks_pages=ranks_pages)


def test_a_passage_is_kept_once_and_knows_the_pages_that_repeat_it() -> None:
    read: list[int] = []
    texts = {"a": BOILERPLATE, "b": "something else", "c": BOILERPLATE.replace("word59", "other"), "d": BOILERPLATE}
    found = deduplicator(texts, read)
    assert [each.path for each in found.distinct()] == ["a", "b"]
    assert found.also_on == {0: {"c", "d"}}
    assert 1 not in read, "what is like no other is not read"


def test_the_very_same_text_comes_before_one_that_is_nearly_the_same() -> None:
    texts = {"a": BOILERPLATE.replace("word59", "other"), "b": BOILERPLATE, "c": BOILERPLATE}
    found = deduplicator(texts, [], b=Tier.EXACT_TITLE)
    assert [each.path for each in found.distinct()] == ["a", "b"], "what the query names stays"
    assert found.also_on[1] == {"c"}


def test_a_page_whose_best_passage_is_a_duplicate_keeps_its_rank_with_its_next_best() -> None:
    texts = {"a.1": BOILERPLATE, "b.1": BOILERPLATE, "c.1": "a third thing", "b.2": "quite another thing"}
    assert [each.vector for each in deduplicator(texts, []).distinct()] == ["a.1", "c.1", "b.2"]
    assert [each.vector for each in deduplicator(texts, [], ranks_pages=True).distinct()] == ["a.1", "b.2", "c.1"]


VECTORS = np.array([[1, 0], [0.995, 0.0999], [0, 1]], dtype=np.float32)
SCORES = [3.0, 2.9, 1.0]


def order(diversity: float, n: int = 3, pages: str = "abc", max_per_page: int = 5) -> list[int]:
    return mmr_order(SCORES, VECTORS, list(pages), diversity, n, max_per_page)


def test_without_diversity_the_best_come_first() -> None:
    assert order(0.0) == [0, 1, 2]


def test_with_diversity_the_same_again_comes_last() -> None:
    assert order(0.7) == [0, 2, 1]
    assert order(1.0) == [0, 2, 1]


def test_a_page_has_its_share_and_the_end_is_kept() -> None:
    assert order(0.0, pages="aac", max_per_page=1) == [0, 2]
    assert order(0.7, n=2) == [0, 2]
    assert mmr_order([], VECTORS[:0], [], 0.5, 5, 1) == []


@given(st.integers(0, 10_000), st.integers(2, 60), st.sampled_from([0.0, 0.3, 1.0]), st.integers(1, 3))
def test_more_results_begin_with_the_same_and_the_pinned(seed: int, count: int, diversity: float, max_per_page: int) -> None:
    numbers = np.random.default_rng(seed)
    vectors = numbers.normal(size=(count, 4)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = sorted(numbers.random(count).tolist(), reverse=True)
    pages = [str(page) for page in numbers.integers(0, 10, count)]
    whole = mmr_order(scores, vectors, pages, diversity, count, max_per_page)
    assert len(set(whole)) == len(whole)
    for n in range(1, count):
        assert mmr_order(scores, vectors, pages, diversity, n, max_per_page) == whole[:n]
    assert mmr_order(scores, vectors, [str(page) for page in range(count)], diversity, count, 1, count // 2)[
        : count // 2
    ] == list(range(count // 2))
