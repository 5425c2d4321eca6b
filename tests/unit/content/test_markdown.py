from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from hypothesis import given

from otterwiki_semantic.content.markdown.parser import parse
from otterwiki_semantic.core.records import Document
from tests.support.markdown_strategies import PAGES, RAW

PAGE = """\
---
title: Storage
---
Before any heading.

# Storage

Intro.

## Disks

```sh
# not a heading
```

<!--
# nor this
-->

> ## quoted, no section of its own

Disks
-----

text

### Deeper *still*

text
"""


def outline(document: Document) -> list[tuple[int, str, str, int, int]]:
    return [(s.level, s.heading, s.anchor, s.start_line, s.end_line) for s in document.sections]


def lines_of(document: Document) -> list[tuple[int, str]]:
    return [(line.number, line.text) for s in document.sections for block in s.blocks for line in block.lines]


def test_sections_have_levels_anchors_and_lines() -> None:
    assert outline(parse(PAGE)) == [
        (0, "", "", 1, 5),
        (1, "Storage", "storage", 6, 9),
        (2, "Disks", "disks", 10, 21),
        (2, "Disks", "disks-1", 22, 26),
        (3, "Deeper still", "deeper-still", 27, 30),
    ]


def test_sections_know_their_heading_path() -> None:
    assert [section.path for section in parse(PAGE).sections] == [
        (),
        ("Storage",),
        ("Storage", "Disks"),
        ("Storage", "Disks"),
        ("Storage", "Disks", "Deeper still"),
    ]


def test_every_line_knows_where_it_stands() -> None:
    source = "# A\n\none\ntwo\n\n- x\n- y\n  - z\n\n| a | b |\n|---|---|\n| c | d |\n\n```\ncode\n\nmore\n```\n\n> said\n"
    assert lines_of(parse(source)) == [
        (3, "one"),
        (4, "two"),
        (6, "- x"),
        (7, "- y"),
        (8, "  - z"),
        (10, "a | b"),
        (12, "c | d"),
        (15, "code"),
        (17, "more"),
        (20, "said"),
    ]


def test_lines_that_only_look_like_a_table_keep_their_words() -> None:
    source = "revenue | 2014 | 2013\ncash | $7385 | $6823\nnet | $154 | $369\n"
    assert "$7385" in " ".join(text for _, text in lines_of(parse(source)))


def test_footnotes_stay_where_they_are_written() -> None:
    source = "Text[^1] and more.\n\n[^1]: single\n\nEnd.\n"
    assert [text for _, text in lines_of(parse(source))] == ["Text[^1] and more.", "[^1]: single", "End."]


def test_wiki_links_show_their_title() -> None:
    assert lines_of(parse("go [[Home|/start]] or [[Garden]]\n")) == [(1, "go Home or Garden")]


def test_windows_line_ends_and_byte_order_mark_are_no_matter() -> None:
    unix = parse("# A\n\ntext\n\n## B\n\nmore\n")
    assert outline(parse("\ufeff# A\r\n\r\ntext\r\n\r\n## B\r\n\r\nmore\r\n")) == outline(unix)


@pytest.fixture(scope="module")
def renderer(app: Flask) -> Any:
    from otterwiki.renderer import OtterwikiRenderer

    return OtterwikiRenderer(config=app.config)


def nested_anchors_are_absent(document: Document, rendered: list[tuple[int, str]]) -> bool:
    """Tell whether the sections are a subsequence of the headings that the wiki renders."""
    remaining = iter(rendered)
    return all((section.level, section.anchor) in remaining for section in document.sections if section.level)


@given(source=PAGES)
def test_anchors_are_those_the_wiki_renders(renderer: Any, source: str) -> None:
    rendered = [(level, anchor) for _, _, level, _, anchor in renderer.markdown(source)[1]]
    assert nested_anchors_are_absent(parse(source), rendered), rendered


def test_anchors_of_odd_headings_are_those_the_wiki_renders(renderer: Any) -> None:
    headings = [
        "# Ärger & Ümläute",
        "## `code` and *more*",
        "## [link](http://x.org) text",
        "## ![image](x.png) after",
        "## ![image](x.png) after",
        "## C++ / C#",
        "## a <b>bold</b> one",
        "## [[Wiki Link]]",
        "## [[Title|/target]]",
        "## 漢字",
        "## x ==marked== y",
        "## Vec<T>",
        "## a_b_c __d__",
        "## -- dash --",
        "## ~~gone~~",
        "Setext *one*\n===",
        "two lines\nof it\n---",
    ]
    source = "\n\n".join(headings)
    rendered = [anchor for _, _, _, _, anchor in renderer.markdown(source)[1]]
    assert [section.anchor for section in parse(source).sections] == rendered


@given(source=RAW)
def test_no_input_raises(source: str) -> None:
    document = parse(source)
    starts = [section.start_line for section in document.sections]
    assert starts == sorted(starts)
    assert all(section.start_line <= section.end_line for section in document.sections)
