"""How a query's text is read, and the FTS5 query it becomes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.analysis.tokenizer import indexed_text
from otterwiki_semantic.search.query import (
    Highlighter,
    Query,
    all_phrases,
    any_of,
    any_pair,
    any_phrase,
    has_phrases,
    parse_query,
)


@pytest.fixture(scope="module")
def table() -> Iterator[sqlite3.Connection]:
    """A keyword index of one text for each of a few lines, numbered from 1."""
    connection = sqlite3.connect(":memory:")
    connection.execute("""CREATE VIRTUAL TABLE keywords USING fts5 (body, tokenize = "ascii tokenchars '#+'")""")
    for line in ("the exact phrase", "a phrase, not exact", "max_chunks_per_page", "数据库 index", "written in C#"):
        connection.execute("INSERT INTO keywords VALUES (?)", (indexed_text(line),))
    yield connection
    connection.close()


def matches(table: sqlite3.Connection, expression: str) -> list[int]:
    return [row[0] for row in table.execute("SELECT rowid FROM keywords WHERE keywords MATCH ? ORDER BY rowid", (expression,))]


def exact(query: Query) -> list[list[str]]:
    return [[part for word in phrase for part in word.exact] for phrase in query.phrases]


def without(query: Query) -> list[list[str]]:
    return [[part for word in phrase for part in word.exact] for phrase in query.without]


def test_phrases_and_exclusions_are_taken_out() -> None:
    query = parse_query('backup "exact phrase" -tape -"magnetic disk" plan')
    assert query.text == "backup exact phrase plan"
    assert exact(query) == [["exact", "phrase"]]
    assert without(query) == [["tape"], ["magnetic", "disk"]]
    assert query.parts == ("backup", "exact", "phrase", "plan")


def test_typographic_quotes_are_quotes() -> None:
    assert exact(parse_query("“exact phrase”")) == exact(parse_query("«exact phrase»")) == [["exact", "phrase"]]


@pytest.mark.parametrize("text", ["rm -rf /tmp", "celsius -40", "--verbose", "well-known", "a - b", '"open', "-only"])
def test_what_only_looks_like_syntax_is_text(text: str) -> None:
    query = parse_query(text)
    assert (query.text, query.phrases, query.without) == (text, (), ())


def test_words_and_pairs_find_their_lines(table: sqlite3.Connection) -> None:
    query = parse_query("chunks per page")
    assert matches(table, any_of(query.parts)) == [3]
    assert matches(table, any_pair(query.pairs)) == [3]
    assert matches(table, any_of([parse_query("MaxChunksPerPage").identifier])) == [3]


def test_a_phrase_finds_its_words_in_their_order(table: sqlite3.Connection) -> None:
    assert matches(table, all_phrases(parse_query('"exact phrase"').phrases)) == [1]
    assert matches(table, all_phrases(parse_query('"max_chunks" "per page"').phrases)) == [3]
    assert matches(table, any_phrase(parse_query('x -"exact phrase" -database -index').without)) == [1, 4]


def test_scripts_without_spaces_are_found_by_one_two_and_more_characters(table: sqlite3.Connection) -> None:
    for text in ("库", "据库", "数据库", "数据库的"):
        query = parse_query(text)
        assert matches(table, any_of(query.parts, query.prefixes)) == [4], text
    assert matches(table, all_phrases(parse_query('"数据库"').phrases)) == [4]


def test_a_programming_language_is_found(table: sqlite3.Connection) -> None:
    assert matches(table, any_of(parse_query("c#").parts)) == [5]


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ('"running tests"', "When running tests, wait.", True),
        ('"running tests"', "It runs a test.", False),
        ('"target words"', "TargetWords is 150", True),
        ('"targetwords"', "TargetWords is 150", True),
        ('"数据库"', "我的数据库", True),
        ('"数据库"', "数据和库", False),
    ],
)
def test_a_phrase_is_exact_not_only_its_stems(phrase: str, text: str, expected: bool) -> None:
    assert has_phrases(text, parse_query(phrase).phrases) is expected


@given(st.text(max_size=2000))
def test_any_text_is_a_safe_query(table: sqlite3.Connection, text: str) -> None:
    query = parse_query(text)
    expressions = (
        any_of([*query.parts, *query.wholes], query.prefixes),
        any_pair(query.pairs),
        all_phrases(query.phrases),
        any_phrase(query.without),
    )
    for expression in expressions:
        if expression:
            matches(table, expression)


@given(st.text(alphabet='ab" -*:^(){}+ANDORNOTNEAR\x00数', max_size=60))
def test_operators_are_text(table: sqlite3.Connection, text: str) -> None:
    query = parse_query(text)
    for expression in (any_of(query.parts, query.prefixes), all_phrases(query.phrases), any_phrase(query.without)):
        if expression:
            matches(table, expression)


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("how do the pumps run", "The pump is running, how odd", ["pump", "running"]),
        ("targetwords", "[A > B] TargetWords and target", ["TargetWords"]),
        ("数据库", "我的数据库。", ["数据库"]),
        ("库", "数据库", ["库"]),
        ("nothing", "here", []),
    ],
)
def test_what_matches_is_marked(query: str, text: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in Highlighter(parse_query(query)).ranges(text)] == marked


@given(st.text(max_size=60), st.text(max_size=200))
def test_marked_ranges_lie_in_the_text_in_order_and_apart(query: str, text: str) -> None:
    ranges = Highlighter(parse_query(query)).ranges(text)
    edges = [edge for pair in ranges for edge in pair]
    assert edges == sorted(edges)
    assert all(0 <= start < end <= len(text) for start, end in ranges)
