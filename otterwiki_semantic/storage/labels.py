"""The labels of pages and sections, titles and headings, as a chunk's row has them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from otterwiki_semantic.content.analysis import name_key
from otterwiki_semantic.content.markdown import slug
from otterwiki_semantic.storage.schema import decode_list

_CUT = "…"
_decode = decode_list.__wrapped__
"""Without its cache: all chunks are read, each once."""


class SectionLabel(NamedTuple):
    """A heading, and where it stands."""

    heading: str
    section_path: tuple[str, ...]
    """The headings from the outermost to this one, as far as they are stored."""
    anchor: str
    """Its id in the page; empty if it cannot be told."""


def section_labels(title: str, section_path: str, headings: str, anchor: str) -> Iterator[SectionLabel]:
    """Yield the headings above a chunk and in it, in order, without those that are the page's title.

    Of its section the path and the anchor are stored. Of those that were merged with it the anchor follows from the heading,
    and of the path only the outermost heading is known.
    """
    path, page = _decode(section_path), name_key(title)
    above = {heading: path[: depth + 1] for depth, heading in enumerate(path)}
    for heading in dict.fromkeys((*path, *_decode(headings))):
        if name_key(heading) != page:
            known = above.get(heading) or (*path[:1], heading)
            yield SectionLabel(heading, known, anchor if known == path else "" if heading.endswith(_CUT) else slug(heading))
