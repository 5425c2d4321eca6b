"""Sentences with the source that they are checked against: true ones in other words, and opposites in the same words.

In `tests/data/sentences`, a line that begins with ``=`` is a source, or with ``= @`` the path of a page of the demo wiki; ``+``
begins a true sentence about it, ``-`` a wrong one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from otterwiki_semantic.content.markdown import parse_markdown
from otterwiki_semantic.search.answering.sources import Source
from tests.support.paths import DATA, ROOT


class Case(NamedTuple):
    """A sentence, its source, and whether that says it."""

    text: str
    source: Source
    is_true: bool


def sentences(name: str) -> Iterator[Case]:
    """Yield the sentences of one set, such as ``en-1``."""
    source = Source(1, "", "", (), "")
    for line in (DATA / "sentences" / f"{name}.txt").read_text("utf-8").splitlines():
        kind, text = line[0], line[2:]
        if kind == "=":
            source = _page(text[1:]) if text.startswith("@") else Source(1, "page", "Page", (), text.replace("\\n", "\n"))
        else:
            yield Case(text, source, kind == "+")


def _page(path: str) -> Source:
    text = (ROOT / "demo" / "pages" / f"{path}.md").read_text("utf-8")
    title = parse_markdown(text).front_matter.get("title", path)
    return Source(1, path, title, (), text.split("---\n", 2)[2])
