"""The sentence of a passage that answers best, in the demo wiki."""

from __future__ import annotations

from otterwiki_semantic.core.records import Answer, Mode, SearchOptions, SuggestRequest
from otterwiki_semantic.daemon.engine import IndexEngine

_ASKED = SearchOptions(n=8, best_sentence=True)


def best(answer: Answer) -> list[str | None]:
    return [each.snippet[slice(*each.best_sentence)] if each.best_sentence else None for each in answer.results]


def test_where_no_word_matches_it_is_the_nearest_in_meaning(demo: IndexEngine) -> None:
    answer = demo.search(["protect plumbing from freezing"], _ASKED)[0]
    hit = answer.results[0]
    assert all(start < hit.prefix_length for start, _ in hit.highlights)
    assert (best(answer)[0] or "").startswith("If frost is announced while we are away, set the plan to frost guard")


def test_where_words_match_it_has_the_most_of_them(demo: IndexEngine) -> None:
    assert best(demo.search(["alarm shuts the main valve"], _ASKED)[0])[0] == "An alarm shuts the main valve."


def test_a_heading_is_no_sentence(demo: IndexEngine) -> None:
    answer = demo.search(["backup"], _ASKED)[0]
    found = [text for text in best(answer) if text]
    assert found
    assert not {heading for hit in answer.results for heading in hit.headings} & set(found)


def test_it_is_only_named_when_asked_for(demo: IndexEngine) -> None:
    assert best(demo.search(["protect plumbing from freezing"], SearchOptions())[0]) == [None] * 5


def test_a_keyword_search_names_sentences_with_its_words(demo: IndexEngine) -> None:
    answer = demo.search(["valve"], SearchOptions(mode=Mode.KEYWORD, best_sentence=True))[0]
    with_words = [hit for hit in answer.results if any(start >= hit.prefix_length for start, _ in hit.highlights)]
    assert with_words
    for hit in with_words:
        assert hit.best_sentence
        assert "valve" in hit.snippet[slice(*hit.best_sentence)].casefold()


def test_a_repeated_search_marks_the_same(demo: IndexEngine) -> None:
    first, second = (best(demo.search(["no heat in the rooms"], _ASKED)[0]) for _ in range(2))
    assert first == second
    assert any(first)


def test_tags_are_suggested_by_their_beginning(demo: IndexEngine) -> None:
    found = demo.suggest(SuggestRequest("Res")).tags
    assert [each.tag for each in found] == ["restic"]
    assert found[0].pages == 1
    assert demo.suggest(SuggestRequest("r")).tags == ()
