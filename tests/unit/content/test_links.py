"""Links of a page lead where the wiki's own do."""

from __future__ import annotations

import pytest

from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.links import linked_pages, resolve_link
from otterwiki_semantic.content.pages.page import page_not_found
from otterwiki_semantic.core.records import Link


def test_links_are_found_wherever_they_stand() -> None:
    text = """# [Head](/head)

A [link *with* marks](/a "title"), [[Page]], [[Shown|dir/Other#part]], <https://example.org> and ![a picture](/p.png).

- item [in a list](b.md)

| table |
|---|
| [cell](/c) |
| [[Cell|dir/Cell]] |

> [quoted](/q)

[by reference][r] and `[code](/no)`.

```
[no](/no)
```

[r]: /reference
"""
    assert [(link.url, link.text) for link in parse_markdown(text).links if not link.url.startswith("https")] == [
        ("/head", "Head"),
        ("/a", "link with marks"),
        ("/Page", "Page"),
        ("/dir/Other#part", "Shown"),
        ("b.md", "in a list"),
        ("/c", "cell"),
        ("/dir/Cell", "Cell"),
        ("/q", "quoted"),
        ("/reference", "by reference"),
    ]


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("/Other/Page", "Other/Page"),
        ("sibling", "dir/sibling"),
        ("sibling.md#part", "dir/sibling"),
        ("../up", "up"),
        ("../../../up", "up"),
        ("/With%20Space", "With Space"),
        ("./x?revision=1", "dir/x"),
        ("https://example.org/x", None),
        ("//example.org/x", None),
        ("mailto:a@example.org", None),
        ("#part", None),
        ("page", None),
        ("/DIR/Page", None),
        ("/", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_a_link_leads_where_a_browser_would_go(url: str, target: str | None) -> None:
    assert resolve_link(Link(url, "text"), "dir/page") == target


def test_linked_pages_are_named_once() -> None:
    links = [Link("/A", ""), Link("/a#x", ""), Link("b", ""), Link("https://example.org", "")]
    assert linked_pages(links, "dir/page") == ("a", "dir/b")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("garden/irigation", "garden/irrigation"), ("Haus/Heizung", "house/heating"), ("alarms", "house/alarm"), ("zzzzzz", None)],
)
def test_a_mistyped_page_is_answered_with_the_nearest_ones(name: str, nearest: str | None) -> None:
    error = page_not_found("the wiki", name, ["garden/irrigation", "garden/tomatoes", "house/heating", "house/alarm", "home"])
    assert next(iter(error.nearest), None) == nearest
