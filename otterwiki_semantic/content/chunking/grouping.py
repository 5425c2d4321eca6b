"""Group a page's sections by its headings: no chunk contains text of two groups.

A group begins at a heading of a boundary's level. A group that is too small is merged with the next one of the same
or a deeper level; a group that is too large for a chunk is divided at the next level. With boundaries at levels 2 and 3, for
chunks of 300 to 2,000::

    section     size    divide at 2    merge stubs     too large: divide at 3, merge stubs

    # Garden      20    Garden         Garden, Beds    Garden, Beds
    ## Beds      900    Beds
    ## Tools    1200    Tools, Saws    Tools, Saws     Tools
    ### Saws    1500                                   Saws
    ## Links      40    Links          Links           Links
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from otterwiki_semantic.content.chunking.sizes import section_size
from otterwiki_semantic.core.chunk_profiles import Profile, SizeUnit
from otterwiki_semantic.core.records import Section


@dataclass(slots=True)
class Group:
    """Consecutive sections of a page."""

    sections: list[Section]
    size: int

    @classmethod
    def of(cls, sections: Sequence[Section], unit: SizeUnit) -> Group:
        """Return these sections as one group."""
        return cls([*sections], sum(section_size(section, unit) for section in sections))

    @property
    def level(self) -> int:
        return self.sections[0].level


def split_sections(
    sections: Sequence[Section], levels: Sequence[int], profile: Profile, fits: Callable[[Group], bool]
) -> Iterator[Group]:
    """Yield groups of sections, in order: divided at the first of `levels`, and at further levels while they do not fit."""
    if not levels:
        yield Group.of(sections, profile.unit)
        return
    for group in merge_stubs(divide(sections, levels[0], profile.unit), profile):
        if levels[1:] and not fits(group):
            yield from split_sections(group.sections, levels[1:], profile, fits)
        else:
            yield group


def divide(sections: Iterable[Section], level: int, unit: SizeUnit) -> list[Group]:
    """Return the sections in groups that begin at a heading of `level` or above."""
    return _join((Group.of([section], unit) for section in sections), lambda _, section: section.level > level)


def merge_stubs(groups: Iterable[Group], profile: Profile) -> list[Group]:
    """Merge groups below the minimum size with the next one, unless its level is higher or its sections must stay separate."""

    def belongs(before: Group, group: Group) -> bool:
        least = 1 if group.level <= profile.alone_level else max(profile.min_size, 1)
        return before.size < least and group.level >= before.level

    return _join(groups, belongs)


def _join(groups: Iterable[Group], belongs: Callable[[Group, Group], bool]) -> list[Group]:
    """Join each group that belongs to the previous one with it."""
    joined: list[Group] = []
    for group in groups:
        if joined and belongs(joined[-1], group):
            joined[-1].sections += group.sections
            joined[-1].size += group.size
        else:
            joined.append(Group([*group.sections], group.size))
    return joined
