"""Phrases of a text that name a page, and pages of a similar name."""

from __future__ import annotations

from pathlib import Path

import pytest

from otterwiki_semantic.core.records import Chunk, Page, PageUrls
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.search import find_mentions, likely_duplicates
from otterwiki_semantic.search.similarity_scale import Scale
from otterwiki_semantic.storage import Catalog

URLS = PageUrls("/")
PAGES = {
    "staff/policy": "Travel policy",
    "it/backup": "Backup server",
    "it/kube": "Kubernetes",
    "it/printer": "Printers",
    "notes/c#": "Sharp language",
    "old/mail": "Mail relay",
    "new/mail": "Mail relay",
    "hr/meeting": "Besprechung",
}


def put(catalog: Catalog, path: str, title: str, text: str = "text") -> None:
    chunk = Chunk(f"[{path}] {text}", len(path), 0, "", (title,), (), "", 1, 2)
    catalog.put_pages([(Page(path, text, title, None, (), 1, (chunk,)), [vector_id(chunk.text)])])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "catalog.sqlite3")
    for path, title in PAGES.items():
        put(catalog, path, title)
    return catalog


def named(catalog: Catalog, text: str, *languages: str) -> dict[str, str]:
    found = find_mentions(catalog, text, "draft", languages or ("en",), URLS)
    assert all(text[each.start : each.end] == each.phrase for each in found)
    return {each.path: each.phrase for each in found}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Our travel policies are new.", {"staff/policy": "travel policies"}),
        ("Two backup servers, one Backup server.", {"it/backup": "backup servers"}),
        ("The backup serves us.", {}),
        ("A printer, printers and then Printers.", {"it/printer": "Printers"}),
        ("our kubernetes", {"it/kube": "kubernetes"}),
        ("the mail relay", {}),  # of which there are two
        ("🦦 the Kubernetes", {"it/kube": "Kubernetes"}),
        (
            "---\r\ntitle: Kubernetes\r\n---\r\n\r\n```\r\nKubernetes\r\n```\r\n\r\nA backup\r\nserver",
            {"it/backup": "backup\r\nserver"},
        ),
        ("```\r\nx\r\n```\r\n\r\n[[K|it/kube]] Kubernetes", {}),
    ],
)
def test_names_with_other_endings_cases_and_line_ends(catalog: Catalog, text: str, expected: dict[str, str]) -> None:
    assert named(catalog, text) == expected


def test_endings_are_those_of_the_wikis_languages(catalog: Catalog) -> None:
    assert named(catalog, "die Besprechungen") == {}
    assert named(catalog, "die Besprechungen", "en", "de") == {"hr/meeting": "Besprechungen"}


def test_pages_that_were_edited_are_named_and_those_that_are_gone_are_not(catalog: Catalog) -> None:
    assert named(catalog, "Kubernetes and the backup server") == {"it/kube": "Kubernetes", "it/backup": "backup server"}
    put(catalog, "it/kube", "Kubernetes", "edited")
    catalog.remove_pages(["it/backup"])
    assert named(catalog, "Kubernetes and the backup server") == {"it/kube": "Kubernetes"}
    catalog.remove_pages(["old/mail"])
    assert named(catalog, "the mail relay") == {"new/mail": "mail relay"}


def test_links_are_in_the_syntax_of_the_wiki(catalog: Catalog) -> None:
    text = "A backup\nserver for the sharp language."
    for urls, link in (
        (URLS, "[[backup server|it/backup]]"),
        (PageUrls("/", links_begin_with_page=True), "[[it/backup|backup server]]"),
        (PageUrls(), None),
    ):
        server, sharp = find_mentions(catalog, text, "draft", ("en",), urls)
        assert server.link == link
        assert sharp.link is None  # the wiki takes what follows "#" for a heading
    assert URLS.link("it/backup", "it/backup") == "[[it/backup]]"
    assert URLS.link("it/backup", "a|b") is None
    assert PageUrls("/", retains_case=False).link("IT/backup") is None


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("# Backup servers\n\nNew.", "x", ["it/backup"]),
        ("", "it/kubernets", ["it/kube"]),
        ("", "tools/printer", ["it/printer"]),
        ("", "it/kube", []),
        ("# Backup", "x", ["it/backup"]),
        ("# Server", "x", []),
        ("# Backup servers\n" + "word " * 200, "x", []),
    ],
)
def test_pages_of_a_similar_name_may_be_duplicated(catalog: Catalog, text: str, path: str, expected: list[str]) -> None:
    assert [each.path for each in likely_duplicates(catalog, text, path, (), Scale(), URLS)] == expected
