"""Requests and pages that are made to keep the wiki busy: each is answered, and what it costs is bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.live_wiki import LiveWiki
from tests.support.processes import processor_seconds

pytestmark = pytest.mark.real_parts

RELATED = "/api/v1/related"
PREVIEW = "/-/semantic-search/preview"
TEXTS = {
    "spaces between words": "a b c d e f g w" + " " * 99_900 + "!!w",
    "an address without an end": "[a](" + "x" * 60_000,
    "comments without an end": "<!-- " * 19_000,
}
WIKI = {"WIKILINK_STYLE": "PAGENAMETITLE"}
MORE_PAGES = {
    "brackets.md": "The quokka.\n\n" + "[" * 20_000,
    "links.md": "The quokka.\n\n" + "[[a " * 10_000,
    "rule.md": "quokka zebrafish\n\na | b\n" + " " * 95_000 + "x-\n",
    "shown.md": "# Shown\n\nThe [otter](/Otter) has ==marked== text and a [[Link|target]].\n\n```python\nprint(1)\n```\n",
}


@contextmanager
def takes(wiki: LiveWiki, at_most: float) -> Iterator[None]:
    """Check how much processor time the wiki, its index and the processes that they end take while the block runs."""
    assert wiki.process is not None
    processes = wiki.process.pid, wiki.status()["owner_pid"]
    before = sum(map(processor_seconds, processes))
    yield
    assert sum(map(processor_seconds, processes)) - before < at_most


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_that_is_being_written_takes_no_time(wiki: LiveWiki, kind: str) -> None:
    body = json.dumps({"text": TEXTS[kind]}).encode()
    with takes(wiki, at_most=5):
        reply = wiki.request("POST", RELATED, body, {"Content-Type": "application/json"})
    assert reply.status == 200


def test_a_page_that_is_asked_for_as_markdown_takes_no_time(wiki: LiveWiki) -> None:
    with takes(wiki, at_most=5):
        reply = wiki.api("GET", "/semantic-search", q="quokka zebrafish", markdown="true")
    assert reply.json["results"][0]["path"] == "rule"


@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}])
@pytest.mark.parametrize(("route", "asked"), [(RELATED, {"text": "frost"}), ("/api/v1/semantic-search", {"searches": []})])
def test_other_sites_cannot_search(wiki: LiveWiki, headers: dict[str, str], route: str, asked: dict[str, object]) -> None:
    reply = wiki.request("POST", route, json.dumps(asked).encode(), {"Content-Type": "text/plain", **headers})
    assert (reply.status, reply.json["error"]["code"]) == (403, "csrf_failed")


def test_a_preview_is_what_the_wiki_shows(wiki: LiveWiki) -> None:
    shown = wiki.request("GET", f"{PREVIEW}?path=shown").text
    page = wiki.request("GET", "/Shown").text
    for part in (
        "<mark>marked</mark>",
        '<a href="/Otter">otter</a>',
        '<span class=".highlight nb">print</span>',
        'href="/Link"',
    ):
        assert part in page
        assert part in shown


@pytest.mark.parametrize("page", ["brackets", "links"])
def test_a_page_that_keeps_the_renderer_busy_is_shown_as_text(wiki: LiveWiki, page: str) -> None:
    reply = wiki.request("GET", f"{PREVIEW}?path={page}")
    assert "This takes too long to render." in reply.text
    assert 'semantic-code">The quokka.' in reply.text
    assert "<mark>marked</mark>" in wiki.request("GET", f"{PREVIEW}?path=shown").text
