"""Finding names and links in a page's Markdown."""

from __future__ import annotations

import time

import pytest

from otterwiki_semantic.content.pages import find_links, find_name, prose, redirect_links

PAGE = """\
---
title: See [[Front]]
---
# Release process

Our `Release process` is in [[Other]], [a link](/Some%20Page "title") and [one][ref].

```
Release process [[In code]]
```

    Release process, indented

The release
process begins here.

[ref]: ../Far#part
<!-- Release process -->
"""


def test_links_are_found_as_they_are_written_but_not_in_code() -> None:
    found = find_links(PAGE, "a/b", {"other", "some page", "far", "in code"})
    assert {key: (each.text, each.line) for key, each in found.items()} == {
        "other": ("Other", 6),
        "some page": ("Some Page", 6),
        "far": ("Far", 17),
    }


def test_links_to_a_page_are_redirected_with_their_anchors() -> None:
    assert redirect_links(PAGE, "a/b", "far", "near/by day") == PAGE.replace("../Far#part", "/near/by%20day#part")
    changed = redirect_links("[[x|Old#a]] [[ Old ]] [x](./old?v=1#a) [x](<Old>) [x](<Old Page>) `[[Old]]`", "a", "old", "new")
    assert changed == "[[x|new#a]] [[ Old|new ]] [x](/new?v=1#a) [x](</new>) [x](<Old Page>) `[[Old]]`"
    changed = redirect_links("[[Old#a|x]] [[Old]] | [[old\\|Old]] |", "a", "old", "new", page_first=True)
    assert changed == "[[new#a|x]] [[new|Old]] | [[new\\|Old]] |"


def test_a_name_is_found_in_running_text_alone() -> None:
    found = find_name(prose(PAGE), "Release process", PAGE)
    assert found is not None
    assert (found.line, found.text) == (14, "The release process begins here.")
    linked = "[[plan|The plan]] has a release process."
    found = find_name(prose(linked), "Release process", linked, page_first=True)
    assert found is not None
    assert found.text == "The plan has a release process."


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("# A\n\nSee [[the plan|plan]], and the [one](/two) with NAS.\n\nMore.", "See the plan, and the one with NAS."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | NAS |\n| 5 | 6 |\n", "3 – b: NAS"),
        ("| a | b | c |\n|---|---|---|\n| 3 | | NAS |\n", "3 – c: NAS"),
        ("For all:\n\n- a disk\n  - the NAS\n* more - or less\n", "a disk; the NAS; more - or less"),
        ("NAS " + "word " * 50, "NAS " + "word " * 14 + "word …"),
        ("word " * 50 + "a NAS", "… " + "word " * 15 + "a NAS"),
        ("NAS", "NAS"),
    ],
)
def test_an_excerpt_is_from_the_paragraph_as_a_reader_sees_it(text: str, excerpt: str) -> None:
    found = find_name(prose(text), "NAS", text)
    assert found is not None
    assert found.text == excerpt
    assert found.text[slice(*found.name)] == "NAS"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The [Release process](/x) is linked.", "Release process"),
        ("[[Release process]] is linked.", "Release process"),
        ("The prerelease process.", "Release process"),
        ("The release processes.", "Release process"),
        ("A release\n\nprocess.", "Release process"),
        ("An ``inline release process`` in code.", "Release process"),
        ("See https://example.org/NAS for it.", "NAS"),
        ("See nas.", "NAS"),
        ("See NAS-2.", "NAS"),
        ("## NAS", "NAS"),
        ("NAS\n===", "NAS"),
    ],
)
def test_what_does_not_name_a_page(text: str, name: str) -> None:
    assert find_name(prose(text), name, text) is None


@pytest.mark.parametrize(
    "text", ["`" * 100_000, "`a " * 50_000, "[" * 100_000, "[a" * 60_000, "<!--" * 40_000, "](" * 80_000, "$$\n" * 50_000]
)
def test_odd_pages_take_no_time(text: str) -> None:
    start = time.thread_time()
    prose(text)
    find_links(text, "a", {"b"})
    assert time.thread_time() - start < 3
