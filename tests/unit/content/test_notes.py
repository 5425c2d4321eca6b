"""Notes of Obsidian, Logseq and Dendron."""

from __future__ import annotations

import pytest

from otterwiki_semantic.content.markdown.front_matter import list_field
from otterwiki_semantic.content.pages.links import linked_pages
from otterwiki_semantic.content.pages.notes import as_wiki_text, parse_page
from otterwiki_semantic.core.records import Notation


@pytest.mark.parametrize(
    ("note", "wiki"),
    [
        ("see [[Page|label]] and [[Other]]", "see [[label|Page]] and [[Other]]"),
        ("[[Page#Heading|label]], [[#Here]]", "[[label|Page#Heading]], [[#Here]]"),
        ("![[Page]] and ![[picture.png|300]]", "[[Page]] and [[picture.png]]"),
        ("| a | [[Page\\|label]] |\n", "| a | [[label\\|Page]] |\n"),
        ("`[[a|b]]`\n\n```\nif [[ x | y ]]\n```\n[[A|b]]", "`[[a|b]]`\n\n```\nif [[ x | y ]]\n```\n[[b|A]]"),
        ("[[Page|]] and [text](page.md) ![x](y.png)", "[[Page|Page]] and [text](page.md) ![x](y.png)"),
    ],
)
def test_links_of_notes_are_read_as_those_of_a_wiki(note: str, wiki: str) -> None:
    assert as_wiki_text(note, Notation.NOTES) == wiki
    assert as_wiki_text(note, Notation.WIKI) == note
    assert as_wiki_text(note, Notation.NOTES).count("\n") == note.count("\n")


def test_dendron_writes_the_label_first() -> None:
    document = parse_page("a", "[[label|lang.python]] and ![[proj.x#part]]", Notation.DENDRON)
    assert [(link.url, link.text) for link in document.links] == [("/lang.python", "label"), ("/proj.x#part", "proj.x#part")]


def test_dendron_names_the_vault_of_a_note() -> None:
    document = parse_page("a", "[[x|dendron://main/lang.python]] [[dendron://main/b#c]]", Notation.DENDRON)
    assert [(link.url, link.text) for link in document.links] == [("/lang.python", "x"), ("/b#c", "b#c")]
    code = "`[[dendron://main/b]]`"
    assert as_wiki_text(code, Notation.DENDRON) == code


@pytest.mark.parametrize(
    ("path", "front_matter"),
    [
        ("journals/2024_01_22", {"title": "Jan 22nd, 2024", "aliases": ["2024-01-22"]}),
        ("graph/journals/2023_11_13", {"title": "Nov 13th, 2023", "aliases": ["2023-11-13"]}),
        ("journals/2024_13_01", {}),
        ("journals/2024-01-22", {}),
        ("pages/2024_01_22", {}),
    ],
)
def test_journals_of_logseq_are_named_after_their_day(path: str, front_matter: dict[str, object]) -> None:
    assert parse_page(path, "- text", Notation.NOTES).front_matter == front_matter


def test_wiki_links_name_pages_in_any_directory() -> None:
    document = parse_page("sub/a", "[[Note]] [[sub/Other|x]] [z](z.md)", Notation.NOTES)
    keys = {"note", "[[note|note", "sub/other", "[[sub/other|sub/other", "sub/z"}
    assert set(linked_pages(document.links, "sub/a", by_name=True)) == keys
    assert set(linked_pages(document.links, "sub/a")) == {"note", "sub/other", "sub/z"}


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("---\ntags: [one, '#two']\n---\ntext #three and #nested/four.\n", ["one", "two", "three", "nested/four"]),
        ("---\ntags: one two\ntag: three\n---\n", ["one", "two", "three"]),
        ("tags:: one, [[two words]], #three\n\n- item #[[four words]]\n", ["one", "two words", "three", "four words"]),
        ("# Heading\n\nC#sharp, issue #12, a#b, [x](#anchor) https://e.org/#f `#code`\n\n```\n#code\n```\n", []),
        ("#één und #日本 and (#no)\n", ["één", "日本"]),
    ],
)
def test_tags_stand_in_front_matter_in_properties_and_in_the_text(text: str, tags: list[str]) -> None:
    assert list(list_field(parse_page("a", text, Notation.NOTES).front_matter, "tags")) == tags


def test_a_wiki_has_no_tags_in_the_text() -> None:
    assert parse_page("a", "text #tag [[A|b]]", Notation.WIKI).front_matter == {}


def test_aliases_and_titles_of_notes() -> None:
    front_matter = parse_page("a", "---\naliases:\n  - First\nalias: Second\n---\n", Notation.NOTES).front_matter
    assert front_matter["aliases"] == ["First", "Second"]
    front_matter = parse_page("pages/a", "title:: Shown\nalias:: one, two\nicon:: x\n\n- text\n", Notation.NOTES).front_matter
    assert (front_matter["title"], front_matter["aliases"]) == ("Shown", ["one", "two"])
    assert parse_page("pages/a___b", "- text", Notation.NOTES).front_matter == {"title": "a/b"}
    assert parse_page("pages/a_b", "- text", Notation.NOTES).front_matter == {}
