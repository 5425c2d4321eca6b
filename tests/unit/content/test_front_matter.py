"""Front matter: what is read as fields, and what stays text."""

from __future__ import annotations

from typing import Any

import pytest

from otterwiki_semantic.content.markdown.front_matter import list_field, split_front_matter, text_field
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.records import Document


def words(document: Document) -> str:
    return " ".join(line.text for section in document.sections for block in section.blocks for line in block.lines)


def test_front_matter_is_stripped_and_read() -> None:
    document = parse_markdown("---\ntitle: The House\ntags:\n  - a\n  - b\n---\n\nText.\n")
    assert document.front_matter == {"title": "The House", "tags": ["a", "b"]}
    assert words(document) == "Text."


@pytest.mark.parametrize("source", ["just two words", "- a\n- list", "title: [unclosed", "a: b: c: d"])
def test_yaml_that_is_not_a_mapping_stays_text(source: str) -> None:
    document = parse_markdown(f"---\n{source}\n---\n\nText.\n")
    assert document.front_matter == {}
    for word in source.replace("-", " ").split():
        assert word in words(document)


def test_a_rule_at_the_top_is_not_front_matter() -> None:
    document = parse_markdown("---\n\nfirst\n\n---\n\nsecond\n")
    assert document.front_matter == {}
    assert words(document) == "first second"


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ({"tags": ["a", "b", "a"]}, ("a", "b")),
        ({"tags": "a, b , ,c"}, ("a", "b", "c")),
        ({"tags": [1, None, True, {"x": 1}]}, ("1", "True")),
        ({"tags": None}, ()),
        ({}, ()),
    ],
)
def test_tags_come_from_a_list_or_from_text(value: dict[str, Any], tags: tuple[str, ...]) -> None:
    assert list_field(value, "tags") == tags


def test_a_field_is_one_line_of_text() -> None:
    assert text_field({"title": "  two\n lines "}, "title") == "two lines"
    assert text_field({"title": 2024}, "title") == "2024"
    assert text_field({"title": ["a"]}, "title") is None
    assert text_field({"title": ""}, "title") is None
    assert text_field({"title": int("9" * 4000) ** 2}, "title") is None
    assert text_field({"title": "\ud83d\ude00 \ud800"}, "title") == "\U0001f600 \ufffd"


def test_hostile_yaml_is_text() -> None:
    bomb = ["a: &a {k: v}", *("b: &a {<<: [*a, *a, *a, *a, *a, *a, *a, *a, *a]}" for _ in range(20))]
    assert split_front_matter(["---", *bomb, "---"]) == ({}, 0)
    assert split_front_matter(["---", '!!int ""', "---"]) == ({}, 0)
    assert split_front_matter(["---", "a: !!bool foo", "---"]) == ({}, 0)
    assert split_front_matter(["---", "!!python/object/apply:os.system ['true']", "---"]) == ({}, 0)
    assert split_front_matter(["---", "[" * 1000, "---"]) == ({}, 0)
