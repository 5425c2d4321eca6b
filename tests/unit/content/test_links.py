from __future__ import annotations

import pytest

from otterwiki_semantic.cli.evaluate.drafts import draft_questions
from otterwiki_semantic.content.markdown.parser import parse
from otterwiki_semantic.content.pages.links import linked_pages, target_of
from otterwiki_semantic.core.records import Link


def test_links_are_found_wherever_they_stand() -> None:
    text = """# [Head](/head)

A [link *with* marks](/a "title"), [[Page]], [[Shown|dir/Other#part]], <https://example.org> and ![a picture](/p.png).

- item [in a list](b.md)

| table |
|---|
| [cell](/c) |

> [quoted](/q)

[by reference][r] and `[code](/no)`.

```
[no](/no)
```

[r]: /reference
"""
    assert [(link.url, link.text) for link in parse(text).links if not link.url.startswith("https")] == [
        ("/head", "Head"),
        ("/a", "link with marks"),
        ("/Page", "Page"),
        ("/dir/Other#part", "Shown"),
        ("b.md", "in a list"),
        ("/c", "cell"),
        ("/q", "quoted"),
        ("/reference", "by reference"),
    ]


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("/Other/Page", ("Other/Page", "")),
        ("sibling", ("dir/sibling", "")),
        ("sibling.md#part", ("dir/sibling", "part")),
        ("../up", ("up", "")),
        ("../../../up", ("up", "")),
        ("/With%20Space", ("With Space", "")),
        ("./x?revision=1", ("dir/x", "")),
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
def test_a_link_leads_where_a_browser_would_go(url: str, target: tuple[str, str] | None) -> None:
    assert target_of(Link(url, "text"), "dir/page") == target


def test_linked_pages_are_named_once() -> None:
    links = [Link("/A", ""), Link("/a#x", ""), Link("b", ""), Link("https://example.org", "")]
    assert linked_pages(links, "dir/page") == ("a", "dir/b")


def test_questions_are_drafted_from_link_texts() -> None:
    links = {
        "home": [Link("/Backup", "getting files back"), Link("/backup", "here"), Link("/gone", "a page that is not")],
        "Backup": [Link("/home", "the start"), Link("https://example.org", "elsewhere")],
        "diary": [Link("/backup", "Getting files back"), Link("/home", "/home"), Link("home", "the Start")],
    }
    assert draft_questions(links) == [
        {"query": "getting files back", "relevant": ["Backup"], "exclude": ["diary", "home"]},
        {"query": "the start", "relevant": ["home"], "exclude": ["Backup", "diary"]},
    ]


def test_a_text_that_leads_to_a_page_and_from_it_is_no_question() -> None:
    links = {"a": [Link("/b", "the other one")], "b": [Link("/a", "the other one")]}
    assert draft_questions(links) == []
