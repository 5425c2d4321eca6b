"""Sections of a page by name: full, shortened, ambiguous and unknown."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking import shorten_heading
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.outline import MATCHERS, SectionName, find_section, full_names, outline, short_names
from otterwiki_semantic.core.errors import AmbiguousSectionError, SectionNotFoundError

PAGE = """\
---
title: Travel
---
Before all.

# Countries

Where we have been.

## Asia

### Pakistan

Food and mountains.

### Dependencies / Permits

Papers.

## Country Dependencies

### Pakistan

A visa.

```
# Not a heading
```

## Notes

First.

## Notes

Second *one*.

# What `costs` money?

Much.
"""
ENTRIES = outline(parse_markdown(PAGE), len(PAGE.splitlines()))


def lines_of(name: str) -> tuple[int, int]:
    entry = find_section(ENTRIES, name, "Travel")
    return entry.start_line, entry.end_line


def first_line(name: str) -> str:
    return PAGE.splitlines()[lines_of(name)[0] - 1]


def test_a_section_ends_before_the_next_of_the_same_or_a_higher_level() -> None:
    source = PAGE.splitlines()
    start, end = lines_of("Countries")
    assert source[start - 1] == "# Countries"
    assert source[end] == "# What `costs` money?"
    start, end = lines_of("Asia")
    assert (source[start - 1], source[end]) == ("## Asia", "## Country Dependencies")
    assert lines_of("What costs money?")[1] == len(source)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("asia", "## Asia"),
        ("  ASIA ", "## Asia"),
        ("## Asia", "## Asia"),
        ("### Asia > Pakistan", "### Pakistan"),
        ("### Countries > Asia/Pakistan", "### Pakistan"),
        ("#asia", "## Asia"),
        ("Country Dependencies/Pakistan", "### Pakistan"),
        ("country dependencies > pakistan", "### Pakistan"),
        ("Dependencies / Permits", "### Dependencies / Permits"),
        ("dependencies/permits", "### Dependencies / Permits"),
        ("Asia > Dependencies / Permits", "### Dependencies / Permits"),
        ("Travel > Countries > Asia", "## Asia"),
        ("Countries/Pakistan-in-between/nothing", ""),
        ("what costs money", "# What `costs` money?"),
        ("#notes-1", "## Notes"),
    ],
)
def test_a_section_is_found_by_what_it_is_called(name: str, line: str) -> None:
    if not line:
        with pytest.raises(SectionNotFoundError):
            lines_of(name)
    else:
        assert first_line(name) == line


@pytest.mark.parametrize(
    ("kind", "name", "anchors"),
    [
        ("heading", "  pakistan ", ["pakistan", "pakistan-1"]),
        ("heading", "## Asia", []),
        ("heading", "asia/pakistan", []),
        ("path", "asia/pakistan", ["pakistan"]),
        ("path", "Travel > Countries > Asia", ["asia"]),
        ("path", "Countries > Pakistan", []),
        ("path", "Countries > Asia/Pakistan", []),
        ("path with any separators", "Countries > Asia/Pakistan", ["pakistan"]),
        ("path with any separators", "Dependencies > Permits", ["dependencies-permits"]),
        ("path and anchor", "Countries > Notes (#notes-1)", ["notes-1"]),
        ("path and anchor", "Asia (#notes-1)", []),
        ("path and anchor", "#notes-1", []),
        ("anchor", "#notes-1", ["notes-1"]),
        ("anchor", "notes-1", []),
        ("anchor", "Elsewhere (#notes-1)", ["notes-1"]),
        ("path with headings left out", "Countries/Pakistan", ["pakistan", "pakistan-1"]),
        ("path with headings left out", "Travel > Country Dependencies > Pakistan", ["pakistan-1"]),
        ("path with headings left out", "Pakistan > Countries", []),
        ("letters and digits", "what, costs money", ["what-costs-money"]),
        ("letters and digits", "asia: pakistan", ["pakistan"]),
        ("letters and digits", "asi", []),
    ],
)
def test_a_name_is_read_in_one_way_at_a_time(kind: str, name: str, anchors: list[str]) -> None:
    matches, wanted = dict(MATCHERS)[kind], SectionName(name.strip(), "Travel")
    assert [entry.anchor for entry in ENTRIES if entry.level and matches(wanted, entry)] == anchors


def test_headings_of_the_path_can_be_left_out() -> None:
    assert lines_of("Country Dependencies/Pakistan") != lines_of("Countries/Asia/Pakistan") == lines_of("Asia/Pakistan")
    with pytest.raises(AmbiguousSectionError):
        lines_of("Countries/Pakistan")


def test_a_heading_in_a_code_block_is_not_a_section() -> None:
    with pytest.raises(SectionNotFoundError):
        lines_of("Not a heading")


def test_the_error_for_an_ambiguous_name_lists_unique_names() -> None:
    with pytest.raises(AmbiguousSectionError, match="2 sections match 'pakistan' by heading; ask for one of them: ") as raised:
        lines_of("pakistan")
    assert raised.value.nearest == ("Countries > Asia > Pakistan", "Countries > Country Dependencies > Pakistan")
    with pytest.raises(AmbiguousSectionError) as raised:
        lines_of("Notes")
    assert raised.value.nearest == ("Countries > Notes (#notes)", "Countries > Notes (#notes-1)")
    assert lines_of(raised.value.nearest[1]) == lines_of("#notes-1") != lines_of(raised.value.nearest[0])


def test_the_error_for_an_unknown_name_lists_all_sections_the_nearest_first() -> None:
    with pytest.raises(SectionNotFoundError, match="no section 'Pakistn'; the page has, nearest first: Countries > ") as raised:
        lines_of("Pakistn")
    assert {name.rpartition(" ")[2] for name in raised.value.nearest[:2]} == {"Pakistan"}
    assert len(raised.value.nearest) == len([entry for entry in ENTRIES if entry.level])


def test_the_shortest_name_of_a_section_is_unique() -> None:
    assert short_names(ENTRIES, "Travel")[:6] == [
        *("", "Countries", "Asia", "Asia > Pakistan", "Dependencies / Permits", "Country Dependencies")
    ]
    assert short_names(ENTRIES, "Travel")[6:] == [
        *("Country Dependencies > Pakistan", "Countries > Notes (#notes)", "Countries > Notes (#notes-1)", "What costs money?")
    ]


def test_a_page_without_headings_says_so() -> None:
    with pytest.raises(SectionNotFoundError, match="the page has no headings"):
        find_section(outline(parse_markdown("Just text."), 1), "Any")


_HEADING = st.text("aAbB /->#1 ü`*", min_size=1, max_size=8)
_LINES = st.one_of(
    st.builds(lambda level, text: f"{'#' * level} {text}", st.integers(1, 4), _HEADING), st.sampled_from(["", "text", "```"])
)


@given(st.lists(_LINES, max_size=25).map("\n".join))
def test_every_section_is_found_by_its_full_and_its_short_name(source: str) -> None:
    document = parse_markdown(source)
    entries = outline(document, source.count("\n") + 1)
    headed = [entry for entry in entries if entry.level]
    for entry, name in zip(headed, full_names(headed), strict=True):
        if entry.heading:
            assert find_section(entries, name) is entry
    for entry, name in zip(headed, short_names(headed), strict=True):
        if entry.heading:
            assert find_section(entries, name) is entry


@given(st.lists(_LINES, max_size=25).map("\n".join))
def test_sections_are_nested_and_their_words_are_those_of_their_own_text(source: str) -> None:
    document = parse_markdown(source)
    for entry, following in pairwise(outline(document, source.count("\n") + 1)):
        inside = following.level > entry.level > 0
        assert (following.end_line <= entry.end_line) if inside else (following.start_line > entry.end_line)
        assert not inside or following.word_count <= entry.word_count


def test_a_path_is_first_read_as_it_is_written() -> None:
    source = "# TCP/IP\n\nText.\n\n# TCP\n\n## IP\n\nText.\n"
    entries = outline(parse_markdown(source), 9)
    assert find_section(entries, "TCP/IP").start_line == 1
    assert find_section(entries, "TCP > IP").start_line == 7
    assert find_section(entries, "tcp / ip").start_line == 1


def test_text_before_the_first_heading_takes_no_name_away() -> None:
    entries = outline(parse_markdown("Intro.\n\n# Travel\n\nText.\n"), 5)
    assert short_names(entries, "Travel") == ["", "Travel"]
    assert find_section(entries, "Travel", "Travel").start_line == 3


def test_a_long_heading_is_found_as_search_results_cut_it() -> None:
    heading = "word " * 100 + "end"
    entries = outline(parse_markdown(f"# Top\n\n## {heading}\n\nText.\n"), 5)
    assert find_section(entries, f"Top > {shorten_heading(heading)}").start_line == 3


def test_headings_that_share_an_anchor_have_names_of_their_own() -> None:
    entries = outline(parse_markdown("# A\n# A\n# A-1\n"), 3)
    assert [entry.anchor for entry in entries] == ["a", "a-1", "a-1"]
    assert [find_section(entries, name) for name in full_names(entries)] == list(entries)
