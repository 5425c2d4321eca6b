"""How words are stored and found: folded, stemmed, in parts and whole."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otterwiki_semantic.content.analysis.tokenizer import (
    _ASCII_WORD,
    _WORD,
    WordMatcher,
    _spellings,
    fold,
    indexed_text,
    name_key,
    stem_beginnings,
    words,
)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("max_chunks_per_page", "max chunk per page maxchunksperpag"),
        ("TargetWords", "target word targetword"),
        ("ERR-4012", "err 4012 err4012"),
        ("10.0.0.5", "10 0 0 5 10005"),
        ("HTTPServer2", "http server2 httpserver2"),
        ("snake_Case-and.more", "snake case and more snakecaseandmor"),
        ("C++ and C#, not c", "c++ and c# not c"),
        ("Łódź Ångström straße ﬁne", "lodz angstrom strass fine"),
        ("The runner's running RUNS", "the runner run run"),
        ("東京タワー", "東京 京タ タワ ワー ー"),
        ("한국어 검색", "한국 국어 어 검색 색"),
        ("ไทยที่นี่", "ไท ทย ยที่ ที่นี่ นี่"),
        ("data数据库abc", "data 数据 据库 库 abc"),
        ("हिन्दी عربى", "हिन्दी عربى"),
        ("___ - # ++ 🦦", ""),
    ],
)
def test_a_text_is_stored_folded_stemmed_in_parts_and_whole(text: str, stored: str) -> None:
    assert indexed_text(text) == stored


def test_a_word_knows_its_place_in_the_text() -> None:
    text = "See  TargetWords, 数据库."
    assert [text[word.start : word.end] for word in words(text)] == ["See", "TargetWords", "数据", "据库", "库"]


@pytest.mark.parametrize("spelling", ["Backup-Plan_2 (old)", "backup plan 2 OLD", "BackupPlan2old", "`backup_plan_2_old`?"])
def test_spellings_of_a_name_have_the_same_key(spelling: str) -> None:
    assert name_key(spelling) == "backupplan2old"


def test_names_of_other_things_have_other_keys() -> None:
    assert len({name_key("C"), name_key("C++"), name_key("C#")}) == 3


@example("\u0300")
@example("\ufe70")
@given(st.text(max_size=300))
def test_every_word_lies_within_its_text_and_no_text_raises(text: str) -> None:
    found = list(words(text))
    assert all(0 <= word.start < word.end <= len(text) for word in found)
    assert [word.start for word in found] == sorted(word.start for word in found)
    assert all(part and " " not in part for word in found for part in (*word.parts, word.whole))


@given(st.text("aZ09_-+#.' ’\n(", max_size=40) | st.text(st.characters(max_codepoint=127), max_size=100))
def test_the_pattern_for_ascii_finds_the_same_words(text: str) -> None:
    text = text.encode("ascii", "replace").decode("ascii")
    assert [match.span() for match in _ASCII_WORD.finditer(text)] == [match.span() for match in _WORD.finditer(text)]


@given(
    st.lists(
        st.text("abcdefgyABCY", min_size=1, max_size=9)
        | st.sampled_from(["dying", "Dyed", "VYING", "oing", "skies", "C++", "e-mail", "fooBar"])
    )
)
def test_a_matcher_that_looks_at_beginnings_first_misses_nothing(spellings: list[str]) -> None:
    text = " ".join(spellings)
    for part in {part for word in words(text) for part in word.parts}:

        def is_wanted(parts: Sequence[str], whole: str, part: str = part) -> bool:
            return part in parts or part == whole

        expected = list(WordMatcher(is_wanted).spans(text))
        assert list(WordMatcher(is_wanted, stem_beginnings([part])).spans(text)) == expected != []


@given(st.text(max_size=100))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=100) | st.text("aB9é日_-. '+#́", max_size=40))
def test_words_are_found_where_they_begin(text: str) -> None:
    _, spellings, starts = _spellings(text)
    found = (_ASCII_WORD if text.isascii() else _WORD).finditer(text)
    assert list(zip(starts, spellings, strict=True)) == [(match.start(), match[0]) for match in found]
