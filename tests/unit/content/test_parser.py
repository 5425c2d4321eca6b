"""What the parser makes of Markdown: sections, anchors and lines, for any input."""

from __future__ import annotations

import mistune
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.markdown import parser
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.records import Document
from tests.support.markdown_strategies import RAW

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
    assert outline(parse_markdown(PAGE)) == [
        (0, "", "", 1, 5),
        (1, "Storage", "storage", 6, 9),
        (2, "Disks", "disks", 10, 21),
        (2, "Disks", "disks-1", 22, 26),
        (3, "Deeper still", "deeper-still", 27, 30),
    ]


def test_sections_know_their_heading_path() -> None:
    assert [section.path for section in parse_markdown(PAGE).sections] == [
        (),
        ("Storage",),
        ("Storage", "Disks"),
        ("Storage", "Disks"),
        ("Storage", "Disks", "Deeper still"),
    ]


def test_every_line_knows_where_it_stands() -> None:
    source = "# A\n\none\ntwo\n\n- x\n- y\n  - z\n\n| a | b |\n|---|---|\n| c | d |\n\n```\ncode\n\nmore\n```\n\n> said\n"
    assert lines_of(parse_markdown(source)) == [
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
    assert "$7385" in " ".join(text for _, text in lines_of(parse_markdown(source)))


def test_footnotes_stay_where_they_are_written() -> None:
    source = "Text[^1] and more.\n\n[^1]: single\n\nEnd.\n"
    assert [text for _, text in lines_of(parse_markdown(source))] == ["Text[^1] and more.", "[^1]: single", "End."]


@pytest.mark.parametrize(
    ("page_first", "text"), [(False, "go [[Home|/start]] or [[Garden]]"), (True, "go [[/start|Home]] or [[Garden]]")]
)
def test_wiki_links_show_their_label(page_first: bool, text: str) -> None:
    document = parse_markdown(f"- a\n    - {text}\n", page_first=page_first)
    assert lines_of(document)[1:] == [(2, "  - go Home or Garden")]
    assert [(link.url, link.text) for link in document.links] == [("/start", "Home"), ("/Garden", "Garden")]
    for half in ("[[|Page]]", "[[Page|]]"):
        (link,) = parse_markdown(half, page_first=page_first).links
        assert (link.url, link.text) == ("/Page", "Page")


def test_windows_line_ends_and_a_byte_order_mark_change_nothing() -> None:
    unix = parse_markdown("# A\n\ntext\n\n## B\n\nmore\n")
    assert outline(parse_markdown("\ufeff# A\r\n\r\ntext\r\n\r\n## B\r\n\r\nmore\r\n")) == outline(unix)


@given(source=RAW)
def test_no_input_raises(source: str) -> None:
    document = parse_markdown(source)
    starts = [section.start_line for section in document.sections]
    assert starts == sorted(starts)
    assert all(section.start_line <= section.end_line for section in document.sections)


MARKUP = (
    *("a", "h", "ht", "https://x.y", "http:", "_", "__", "*", "**", "~", "~~", "=", "==", "<", "</a>", "<a>", "!", "![", "["),
    *("]", "(b)", "](b)", "&", "&amp;", "\\&", "hearts;", "\\", "`", "\n", "  \n", " ", "é", "x_y", "<?", "<!--", "-->"),
    "[[A|b]]",
)


@given(st.lists(st.sampled_from(MARKUP)).map("".join))
def test_markup_is_found_where_mistune_finds_it(text: str) -> None:
    fast, original = parser._PARSER.inline, mistune.InlineParser()
    with pytest.MonkeyPatch.context() as patch:
        found = fast(text, {})
        assert fast._get_fast_trigger_re(fast._get_fast_trigger_chars() or set()) is parser._MARKUP
        patch.setattr(type(fast), "_get_fast_trigger_re", type(original)._get_fast_trigger_re)
        assert found == fast(text, {})
