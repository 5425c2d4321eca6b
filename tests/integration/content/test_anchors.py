"""Anchors, compared with those of the wiki's own renderer."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from hypothesis import given

from otterwiki_semantic.content.markdown.parser import parse
from otterwiki_semantic.core.records import Document
from tests.support.markdown_strategies import PAGES


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
