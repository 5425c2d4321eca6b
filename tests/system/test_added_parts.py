"""What the plugin adds to each page of the real wiki's own templates, and to whom it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.live_wiki import LiveWiki, make_repository

LINKS = '<nav class="semantic-links"'
PALETTE = 'id="semantic-palette"'
PAGE_INDEX = 'class="sidebarmenu parent-sidebar-menu"'


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, handbook: dict[str, str | bytes]) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("wiki")
    with LiveWiki(make_repository(place / "repository", handbook), place / "index", READ_ACCESS="ANONYMOUS") as wiki:
        yield wiki


@pytest.mark.parametrize(
    "path", ["/", "/garden", "/garden/history", "/-/index", "/-/changelog", "/-/search", "/missing", "/-/login", "/-/help"]
)
def test_links_stand_once_and_above_the_page_index_on_every_page(live: LiveWiki, path: str) -> None:
    page = live.get(path).text
    assert page.count(LINKS) == page.count(PALETTE) == 1
    assert LINKS not in page.partition(PAGE_INDEX)[2]


def test_administrators_have_them_on_their_pages(live: LiveWiki) -> None:
    live.log_in()
    for path in ("/-/create", "/-/settings", "/-/admin", "/-/admin/user_management", "/-/semantic-search"):
        page = live.get(path).text
        assert page.count(LINKS) == 1, path
        assert page.count('class="dropdown-item-with-icon" href="/-/admin/semantic-search"') == 1, path


def test_the_editor_has_neither(live: LiveWiki) -> None:
    live.log_in()
    page = live.get("/garden/edit").text
    assert LINKS not in page
    assert PALETTE not in page


def test_who_may_not_read_sees_nothing_of_it_and_who_may_sees_what_is_switched_off(tmp_path: Path) -> None:
    with LiveWiki(
        make_repository(tmp_path / "repository", {"home.md": "# Home\n"}), tmp_path / "index", READ_ACCESS="APPROVED"
    ) as closed:
        assert "semantic" not in closed.get("/-/login").text
        assert closed.get("/-/semantic-search/static/search.js").status == 200
        assert closed.get("/-/semantic-search/palette", part="passages", q="a").status in {302, 200}
        assert "data-palette" not in closed.get("/-/semantic-search/palette", part="passages", q="a").text
        assert "switched off" not in closed.get("/-/semantic-search/map").text
        closed.log_in()
        no_map = closed.get("/-/semantic-search/map").text
        assert "The map is switched off; add map to SEMANTIC_PAGES." in no_map
        assert "Open the search index" in no_map
        assert "Map of the wiki" not in closed.get("/-/semantic-search").text


def test_palette_health_and_links_while_writing_can_be_left_out(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {"a.md": "# A\n"})
    with LiveWiki(repository, tmp_path / "index", WRITE_ACCESS="ANONYMOUS", SEMANTIC_PAGES="related") as live:
        page = live.get("/").text
        assert page.count(LINKS) == 1
        assert PALETTE not in page
        assert live.get("/-/semantic-search/palette", part="passages", q="a").status == 404
        assert "/-/semantic-search/health" not in page
        assert live.get("/-/semantic-search/health").status == 404
        assert "semantic-writing" not in live.get("/a/edit").text


def test_a_browser_can_search_the_wiki(live: LiveWiki) -> None:
    live.wait_until_indexed()
    link = re.search(r'<link rel="search"[^>]* href="([^"]+)"', live.get("/garden").text)
    assert link is not None
    description = ET.fromstring(live.get(link[1]).text)
    urls = {each.get("type"): each.get("template", "") for each in description.findall("{*}Url")}
    assert urls["text/html"].endswith("/-/semantic-search?q={searchTerms}")
    template = urls["application/x-suggestions+json"]
    query, labels, paths, addresses = live.get(template.removeprefix(live.url).replace("{searchTerms}", "gard")).json
    assert (query, labels[0], paths[0]) == ("gard", "Garden", "garden")
    assert addresses[0] == f"{live.url}/garden"
    assert live.get(template.removeprefix(live.url).replace("{searchTerms}", "%00")).json[1] == []
