"""Results lead to pages that the wiki shows; where it cannot show one, they say so."""

from __future__ import annotations

import html
import urllib.parse
from collections.abc import Iterator

import pytest

from tests.support.live_wiki import LiveWiki, make_repository

TEXTS = {
    "home": "The gardener keeps bees behind the shed.",
    "Home": "A wolf once frightened the gardener at night.",
    "Garden": "In May the gardener sows carrots and peas.",
    "tools/plane": "With a sharp blade the gardener smooths an oak board.",
    "Tools/Saw": "Rust on its teeth: the gardener oils it each winter.",
    "tools/edit": "A gardener writes the minutes of every meeting.",
    "tools/history": "Kings of old paid their gardener in salt.",
    "a page": "Rain fills the barrel from which the gardener waters lettuce.",
    "Übung": "Gymnastics at dawn keep the back of a gardener straight.",
    "Größe & Maß/100%41": "Computers bore every gardener: bits, bytes and modems.",
    "übung": "Chess puzzles amuse the gardener on a train.",
}
HIDDEN = {"Home", "Garden", "Tools/Saw", "Übung", "Größe & Maß/100%41"}


@pytest.fixture(scope="module", params=["False", "True"], ids=["names are lower case", "names keep their case"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("names")
    pages: dict[str, str | bytes] = {f"{path}.md": f"# Page\n\n{text}\n" for path, text in TEXTS.items()}
    repository = make_repository(place / "repository", pages)
    with LiveWiki(repository, place / "index", RETAIN_PAGE_NAME_CASE=request.param) as wiki:
        wiki.wait_until_indexed()
        wiki.log_in()
        yield wiki


@pytest.fixture
def hidden(live: LiveWiki) -> set[str]:
    return set() if live._settings["RETAIN_PAGE_NAME_CASE"] == "True" else HIDDEN


def test_each_address_shows_its_page_and_pages_without_are_named(live: LiveWiki, hidden: set[str]) -> None:
    hits = {hit["path"]: hit for hit in live.search("gardener", n=20)}
    assert set(hits) == set(TEXTS)
    assert {path for path, hit in hits.items() if hit.get("not_shown")} == hidden
    listed = {page["path"]: page.get("url") for page in live.api("GET", "/semantic-search/pages").json["pages"]}
    for path, hit in hits.items():
        assert (hit.get("url") or "").partition("#")[0] == (listed[path] or "")
        if path in hidden:
            assert "url" not in hit
            assert TEXTS[path] not in live.get(urllib.parse.quote(f"/{path}")).text
        else:
            assert TEXTS[path] in live.get(listed[path]).text


def test_the_status_counts_them_and_says_what_to_do(live: LiveWiki, hidden: set[str]) -> None:
    problems = live.status()["problems"]
    page = html.unescape(live.get("/-/admin/semantic-search").text)
    if not hidden:
        assert problems == []
        assert "RETAIN_PAGE_NAME_CASE" not in page
        return
    (problem,) = problems
    assert problem["message"].startswith("the wiki cannot show 5 of its pages, such as Garden: their names have capitals")
    assert problem["hint"].startswith("set RETAIN_PAGE_NAME_CASE=True")
    assert problem["message"].removeprefix("the wiki") in page


def test_the_search_page_has_a_note_instead_of_a_link(live: LiveWiki, hidden: set[str]) -> None:
    page = live.get("/-/semantic-search", q="gardener").text
    assert 'href="/tools/edit.md"' in page
    assert page.count("the wiki cannot show this page") == len(hidden)
    assert ('href="/Garden' in page) == (not hidden)
    near = live.get("/-/semantic-search/related?path=home").text
    assert 'href="/tools/plane#page"' in near or 'href="/a%20page#page"' in near
    assert hidden == set() or 'href="/Garden' not in near
