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
    pages: dict[str, str | bytes] = {
        "house.md": "# House\n\nWhat belongs to it.\n",
        "house/Contract.pdf": CONTRACT,
        "renting.md": "# Renting\n\nUsually the notice period is three months.\n",
    }
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


def test_passages_of_a_file_stand_under_its_page(wiki: LiveWiki) -> None:
    found = wiki.get("/-/semantic-search", q="how long is the notice period of the house").text
    (page,) = [one for one in found.split('<li class="semantic-page">')[1:] if "Contract.pdf" in one and "What belongs" in one]
    assert re.search(r'<h2><a\s+href="/house"><bdi><mark>House</mark></bdi>', page)
    assert re.search(r'fa-paperclip" title="pdf"></i> Contract.pdf, page 2 › Termination', page)
    assert 'href="/house/Contract.pdf#page=2"' in page
    only_file = wiki.get("/-/semantic-search", q="how long is the notice period", type="pdf").text
    assert re.search(r'<h2><a\s+href="/house"><bdi>House</bdi>', only_file)


def test_the_palette_has_the_passages_of_a_file_with_its_page(wiki: LiveWiki) -> None:
    options = wiki.get("/-/semantic-search/palette", q="how long is the notice period of the house").text
    assert all(part in options for part in ("fa-paperclip", 'href="/house/Contract.pdf#page=2"'))
    assert "three months" in wiki.get("/-/semantic-search/preview?path=house%2FContract.pdf&anchor=page%3D2").text


def test_related_pages_include_files(wiki: LiveWiki) -> None:
    related = wiki.get("/-/semantic-search/related?path=renting").text
    link = r'href="/house/Contract.pdf#page=2"[^>]*><i class="fas fa-paperclip" title="pdf"></i> <bdi>Contract.pdf'
    assert re.search(link, related)
    assert 'data-copy="[Contract.pdf](/house/Contract.pdf)"' in related


def test_an_answer_cites_the_page_of_the_file(wiki: LiveWiki) -> None:
    answer = wiki.api(
        "POST", "/semantic-search/ask", json_body={"question": "How long is the notice period of the lease?"}
    ).json
    assert "three months" in answer["answer"][0]["text"]
    assert answer["sources"][answer["answer"][0]["sources"][0]]["breadcrumb"] == "Contract.pdf, page 2 > Termination"
