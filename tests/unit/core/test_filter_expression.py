"""The grammar of filter expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import parse_value
from otterwiki_semantic.core.records.filter_expression import (
    FIELDS,
    MAX_CHARACTERS,
    MAX_CONDITIONS,
    MAX_DEPTH,
    BoolOp,
    Condition,
    Expression,
    FilterText,
    Not,
    parse_filter,
)

A, B, C = (Condition("tag", name) for name in "abc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tag:a", A),
        ("tag:a OR tag:b AND tag:c", BoolOp("OR", (A, BoolOp("AND", (B, C))))),
        ("(tag:a or tag:b) and tag:c", BoolOp("AND", (BoolOp("OR", (A, B)), C))),
        ("NOT tag:a AND tag:b", BoolOp("AND", (Not(A), B))),
        ("NOT (tag:a AND tag:b)", Not(BoolOp("AND", (A, B)))),
        ("tag:a AND tag:b AND tag:c", BoolOp("AND", (A, B, C))),
        (" ( tag:a )\n", A),
        ('tag:"two  words"', Condition("tag", "two words")),
        (r'path:"a \"(b)\" \\ c/"', Condition("path", r'a "(b)" \ c/')),
        ("path:C:/x", Condition("path", "C:/x")),
        ("CATEGORY:or", Condition("category", "or")),
        ("updated_since:1970-01-02", Condition("updated_since", 86_400)),
    ],
)
def test_an_expression_is_read_as_it_is_meant(text: str, expected: Expression) -> None:
    assert parse_filter(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "filter: expected a condition such as tag:ops at the end"),
        ("ops", "filter: expected a condition such as tag:ops at character 1, not 'ops'"),
        ("tag:a tag:b", "filter: expected AND, OR or the end at character 7, not 'tag:b'"),
        ("tag:a AND", "filter: expected a condition such as tag:ops at the end"),
        ("tag:a AND OR tag:b", "filter: expected a condition such as tag:ops at character 11, not 'OR'"),
        ("(tag:a", "filter: the bracket at character 1 is not closed: expected ) at the end"),
        ("tag:a)", "filter: expected AND, OR or the end at character 6, not ')'"),
        ('tag:"a', "filter: the quotation mark of 'tag:\"a' is not closed"),
        ("tags:a", "filter: there is no field 'tags'; did you mean 'tag'?"),
        ("x:a", "filter: there is no field 'x'; fields are category, tag, path, type, in, updated_since, updated_before"),
        ("tag:", "filter: tag is ''; it takes 1 to 1,000 characters on one line"),
        ("updated_since:soon", "filter: updated_since is 'soon'; allowed is a date or a time such as "),
        ("NOT " * MAX_DEPTH + "tag:a", f"filter: brackets and NOT are nested more than {MAX_DEPTH} deep"),
        ("(" * 900 + "tag:a" + ")" * 900, f"filter: brackets and NOT are nested more than {MAX_DEPTH} deep"),
        (" OR ".join(["tag:a"] * (MAX_CONDITIONS + 1)), f"filter: there are more than {MAX_CONDITIONS} conditions"),
        ("x" * (MAX_CHARACTERS + 1), "filter has 2,001 characters; allowed are 1 to 2,000"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ParameterError) as refused:
        parse_value(FilterText, text, "filter")
    assert str(refused.value).startswith(message)


def test_the_largest_expressions_are_read() -> None:
    assert parse_filter("NOT " * (MAX_DEPTH - 1) + "tag:a")
    assert parse_filter(" OR ".join(["tag:a"] * MAX_CONDITIONS))


_PIECES = st.sampled_from(
    [*(f"{field}:" for field in FIELDS), "AND", "or", "NOT", "(", ")", '"', "\\", " ", "a", "2026-01-01", "é"]
)


@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=20).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    message = ""
    try:
        parse_value(FilterText, text, "filter")
    except ParameterError as refused:
        message = str(refused)
    assert len(message) < 300


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1).filter(str.strip))
def test_any_value_can_be_quoted(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_filter(f'path:"{quoted}"') == Condition("path", value.strip())
