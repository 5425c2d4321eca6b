"""Attached files in a served wiki: found, shown with their page, and opened where the result links to."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.attachments import pdf
from tests.support.live_wiki import LiveWiki, make_repository

CONTRACT = pdf(["# Parties", "The landlord is Ann Lee."], ["# Termination", "The notice period of the lease is three months."])


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("wiki")
    pages: dict[str, str | bytes] = {"house.md": "# House\n\nWhat belongs to it.\n", "house/Contract.pdf": CONTRACT}
    with LiveWiki(make_repository(place / "repository", pages), place / "index", SEMANTIC_ANSWERS="extractive") as live:
        live.wait_until_indexed()
        yield live


def test_a_result_links_to_the_file_as_the_wiki_serves_it(wiki: LiveWiki) -> None:
    hit = wiki.search("how long is the notice period", type="pdf")[0]
    assert (hit["kind"], hit["attached_to"], hit["page_number"]) == ("pdf", "house", 2)
    path, _, fragment = hit["url"].partition("#")
    assert (wiki.get(path).body, fragment) == (CONTRACT, "page=2")


def test_a_file_is_found_and_read_over_the_api(wiki: LiveWiki) -> None:
    (listed,) = wiki.api("GET", "/semantic-search/pages", scope="attachments").json["pages"]
    assert (listed["path"], listed["kind"], listed["url"]) == ("house/Contract.pdf", "pdf", "/house/Contract.pdf")
    page = wiki.api("GET", "/semantic-search/pages/house/Contract.pdf", section="page 2").json
    assert page["content"].split("\n\n")[1:] == ["# Termination", "The notice period of the lease is three months.\n"]


def test_the_pages_for_people_show_the_file_with_its_page(wiki: LiveWiki) -> None:
    found = wiki.get("/-/semantic-search", q="how long is the notice period").text
    assert re.search(r'attached to <a\s+href="/house">', found)
    assert 'href="/house/Contract.pdf#page=2"' in found
    options = wiki.get("/-/semantic-search/palette", q="how long is the notice period").text
    assert all(part in options for part in ("fa-paperclip", 'href="/house/Contract.pdf#page=2"'))
    preview = wiki.get("/-/semantic-search/preview?path=house%2FContract.pdf&anchor=page%3D2").text
    assert "three months" in preview


def test_an_answer_cites_the_page_of_the_file(wiki: LiveWiki) -> None:
    answer = wiki.api(
        "POST", "/semantic-search/ask", json_body={"question": "How long is the notice period of the lease?"}
    ).json
    assert "three months" in answer["answer"][0]["text"]
    assert answer["sources"][answer["answer"][0]["sources"][0]]["breadcrumb"] == "Contract.pdf, page 2 > Termination"
