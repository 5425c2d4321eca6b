"""The text of inline Markdown and HTML, as a reader sees it."""

from __future__ import annotations

import mistune
import pytest

from otterwiki_semantic.content.markdown.plain_text import visible_html, visible_text


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("<b>bold</b>ly", "boldly"),
        ("one<br>two", "one two"),
        ('<img src="x.png" alt="a red door">', "a red door "),
        ("<!-- not shown -->shown", "shown"),
        ("<!-- never closed", "<!-- never closed"),
        ("<!-- Vec<T> -->", "<!-- Vec<T> -->"),
        ("Vec<T> and <Foo>", "Vec<T> and <Foo>"),
        ("a &lt; b &amp; c", "a < b & c"),
        ("<div\nclass='x'>text</div>", "\n text "),
        ("1 < 2 > 0", "1 < 2 > 0"),
    ],
)
def test_html_is_shown_as_a_reader_sees_it(source: str, shown: str) -> None:
    assert visible_html(source) == shown


def test_link_and_image_texts_stay_and_their_targets_go() -> None:
    inline = mistune.InlineParser()
    tokens = inline("see [the *manual*](http://example.org/secret) and ![a map](/maps/secret.png)", {"ref_links": {}})
    assert visible_text(tokens) == "see the manual and a map"


def test_code_is_shown_verbatim() -> None:
    assert visible_text(mistune.InlineParser()("`a &amp; <b>`", {"ref_links": {}})) == "a &amp; <b>"
