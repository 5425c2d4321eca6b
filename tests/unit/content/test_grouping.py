"""How sections are grouped before they are divided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking.grouping import Group, divide, merge_stubs, split_sections
from otterwiki_semantic.core.chunk_profiles import PROFILES, Profile, SizeUnit
from otterwiki_semantic.core.records import Block, BlockKind, Line, Section

GARDEN = ("1 Garden 20", "2 Beds 900", "2 Tools 1200", "3 Saws 1500", "2 Links 40")


def section(source: str) -> Section:
    """Make a section of its level, its heading and the characters of its text."""
    level, heading, size = source.split()
    block = Block(BlockKind.PROSE, (Line("x" * int(size), 1),))
    return Section(int(level), heading, heading.lower(), (heading,), 1, 1, (block,) if int(size) else ())


def sections(*sources: str) -> list[Section]:
    return [section(source) for source in sources]


def headings(groups: Sequence[Group]) -> list[str]:
    return [" ".join(section.heading for section in group.sections) for group in groups]


def fits(size: int) -> Callable[[Group], bool]:
    return lambda group: group.size <= size


def test_a_page_is_divided_at_headings_up_to_a_level() -> None:
    page = sections("0 - 10", *GARDEN)
    assert headings(divide(page, 1, SizeUnit.CHARACTERS)) == ["-", "Garden Beds Tools Saws Links"]
    assert headings(divide(page, 2, SizeUnit.CHARACTERS)) == ["-", "Garden", "Beds", "Tools Saws", "Links"]
    assert [group.size for group in divide(page, 2, SizeUnit.CHARACTERS)] == [10, 20, 900, 2700, 40]
    assert divide([], 6, SizeUnit.WORDS) == []


@pytest.mark.parametrize(
    ("sources", "merged"),
    [
        (["2 A 50", "2 B 50"], ["A", "B"]),
        (["2 A 9", "2 B 50"], ["A B"]),
        (["2 A 9", "3 B 50"], ["A B"]),
        (["3 A 9", "2 B 50"], ["A", "B"]),
        (["2 A 9", "2 B 9", "2 C 50", "2 D 50"], ["A B C", "D"]),
        (["2 A 50", "3 B 9", "2 C 50"], ["A", "B", "C"]),
        (["2 A 50", "3 B 9", "2 C 9"], ["A", "B", "C"]),
        (["2 A 50", "2 B 9"], ["A", "B"]),
        (["3 A 9", "2 B 9"], ["A", "B"]),
        (["2 A 9"], ["A"]),
        (["1 A 0", "2 B 0", "3 C 50"], ["A B C"]),
        ([], []),
    ],
)
def test_a_stub_is_merged_with_the_next_group_unless_its_level_is_higher(sources: list[str], merged: list[str]) -> None:
    profile = Profile("any", min_size=20, unit=SizeUnit.CHARACTERS)
    groups = [Group.of([section(source)], SizeUnit.CHARACTERS) for source in sources]
    assert headings(merge_stubs(groups, profile)) == merged
    assert [len(group.sections) for group in groups] == [1] * len(groups), "the arguments are unchanged"


def test_a_group_that_is_too_large_is_divided_at_the_next_level() -> None:
    profile = replace(PROFILES["heading2"], alone_level=0)
    groups = list(split_sections(sections(*GARDEN), (2, 3), profile, fits(2_000)))
    assert headings(groups) == ["Garden Beds", "Tools", "Saws", "Links"]
    assert [group.size for group in groups] == [920, 1200, 1500, 40]
    assert headings(list(split_sections(sections(*GARDEN), (2,), profile, fits(2_000)))) == [
        *("Garden Beds", "Tools Saws", "Links")
    ]


def test_sections_that_stand_alone_are_merged_with_headings_only() -> None:
    groups = split_sections(sections("1 Page 0", "2 A 9", "2 B 9", "3 C 9"), (3,), PROFILES["heading2"], fits(2_000))
    assert headings(list(groups)) == ["Page A", "B C"]


def test_without_boundaries_a_page_is_one_group() -> None:
    (group,) = split_sections(sections(*GARDEN), (), PROFILES["fixed"], fits(1))
    assert (len(group.sections), group.size) == (5, 3660)


_PAGES = st.lists(st.builds("{} A {}".format, st.integers(1, 6), st.integers(0, 60)).map(section), max_size=20)


@given(page=_PAGES, levels=st.sets(st.integers(1, 6), max_size=3).map(sorted), room=st.integers(0, 200))
def test_the_groups_are_the_page_in_order(page: list[Section], levels: list[int], room: int) -> None:
    profile = Profile("any", min_size=20, unit=SizeUnit.CHARACTERS)
    groups = list(split_sections(page, levels, profile, fits(room)))
    assert [section for group in groups for section in group.sections] == page
    assert all(group.size == Group.of(group.sections, SizeUnit.CHARACTERS).size for group in groups)


@given(page=_PAGES, level=st.integers(1, 6))
def test_only_the_last_group_of_a_higher_section_is_a_stub(page: list[Section], level: int) -> None:
    groups = merge_stubs(divide(page, level, SizeUnit.CHARACTERS), Profile("any", min_size=20, unit=SizeUnit.CHARACTERS))
    assert all(group.size >= 20 or following.level < group.level for group, following in pairwise(groups))
