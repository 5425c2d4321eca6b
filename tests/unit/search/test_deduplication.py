from __future__ import annotations

from collections.abc import Sequence

from otterwiki_semantic.content.analysis.minhash import minhash_signature, read_signatures
from otterwiki_semantic.search.candidates import Candidate, Tier
from otterwiki_semantic.search.selection import Deduplicator
from otterwiki_semantic.storage import ChunkRef

BOILERPLATE = " ".join(f"word{number}" for number in range(60))


def deduplicator(texts: dict[str, str], read: list[int], *, ranks_pages: bool = False, **tiers: Tier) -> Deduplicator:
    """One chunk of each text, on the page that is named before the dot."""
    ranked = [
        Candidate(ChunkRef(number, name, name.partition(".")[0], 0), tier=tiers.get(name, Tier.SCORE))
        for number, name in enumerate(texts)
    ]
    bodies = list(texts.values())

    def words_of(chunks: Sequence[int]) -> dict[int, tuple[str, str]]:
        read.extend(chunks)
        return {chunk: ("", bodies[chunk]) for chunk in chunks}

    return Deduplicator(
        ranked, read_signatures([minhash_signature(body) for body in bodies]), words_of, ranks_pages=ranks_pages
    )


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
    assert [each.chunk.vector for each in deduplicator(texts, []).distinct()] == ["a.1", "c.1", "b.2"]
    ranking = deduplicator(texts, [], ranks_pages=True)
    assert [each.chunk.vector for each in ranking.distinct()] == ["a.1", "b.2", "c.1"]
