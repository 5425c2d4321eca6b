"""The plugin under a Content-Security-Policy that forbids everything inline, and under the one that the wiki needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import STRICT_POLICY, blocked_parts, enforce_policy, opened
from tests.support.demo_index import copy_demo
from tests.support.fork_server import python
from tests.support.live_wiki import LiveWiki, eventually

WIKI_POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
"""As docs/security.md has it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki with searches that are noted, and its administrator."""
    place = tmp_path_factory.mktemp("policy")
    repository = copy_demo(tmp_path_factory, place)
    command = [python(), "-m", "flask", "--app", "tests.support.served_app", "run", "--port", "{port}"]
    settings: dict[str, Any] = {"SEMANTIC_SEARCH_LOG": "true", "SEMANTIC_PAGES": "", "SEMANTIC_ANSWERS": "extractive"}
    with LiveWiki(repository, place / "index", command=command, **settings) as live:
        live.wait_until_indexed()
        live.log_in()
        live.search("zigbee")
        eventually(lambda: live.api("GET", "/semantic-search/insight").json["searches"], why="the search is noted")
        yield live


def search(page: Page) -> None:
    page.get_by_label("Question or words").press_sequentially("zigbee stick", delay=10)
    expect(page.locator("a.semantic-passage").first).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?q=zigbee\+stick$"))


def answer(page: Page) -> None:
    page.get_by_role("button", name="Show an answer").click()
    expect(page.locator("#semantic-answer a.semantic-extract-source").first).to_be_visible()


def related(page: Page) -> None:
    expect(page.locator("#column-extra .semantic-related li a").first).to_be_visible()


def likely(page: Page) -> None:
    expect(page.locator(".semantic-likely").get_by_role("link").first).to_have_text("Home automation")


def created(page: Page) -> None:
    page.get_by_label("Page name").fill("watering the vegetables")
    expect(page.locator(".semantic-likely").get_by_role("link").first).to_have_text("Irrigation")


def offer(page: Page) -> None:
    page.get_by_placeholder("Search term").fill("frozen pipes")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("link", name="Search by meaning instead")).to_be_visible()


def index(page: Page) -> None:
    page.get_by_text("Rebuild the index…").click()
    page.get_by_role("button", name="Rebuild now").click()
    expect(page.locator("#index-state")).to_contain_text("done")
    page.reload()  # policies are not added to what a form redirects to
    expect(page.get_by_text("Searches by hour")).to_be_visible()


def health(page: Page) -> None:
    expect(page.get_by_role("heading", name="Wiki health")).to_be_visible()


def wiki_map(page: Page) -> None:
    page.get_by_role("link", name="Category").click()
    page.locator("#semantic-map-plot a[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".semantic-map-chosen")).to_have_count(1)
    assert page.locator("#column-main .semantic [style]:not(#semantic-map-plot *)").count() == 0


def inspection(page: Page) -> None:
    expect(page.get_by_role("heading", name="Inspect a page")).to_be_visible()
    expect(page.locator("#column-main")).to_contain_text("Before a cold spell")


PAGES: dict[str, Callable[[Page], None]] = {
    "/-/semantic-search": search,
    "/-/semantic-search?q=How+do+I+protect+the+pipes+from+freezing%3F": answer,
    "/services/automation": related,
    "/services/automaton": likely,
    "/-/create": created,
    "/-/search": offer,
    "/-/semantic-search/health": health,
    "/-/semantic-search/map": wiki_map,
    "/-/admin/semantic-search": index,
    "/-/admin/semantic-search/page?path=services/automation": inspection,
}


@pytest.fixture
def page(chromium: Browser, site: LiveWiki) -> Iterator[Page]:
    with opened(chromium, site, is_member=True) as lent:
        yield lent


@pytest.mark.parametrize("path", PAGES)
def test_nothing_of_the_plugin_is_blocked(page: Page, site: LiveWiki, path: str) -> None:
    enforce_policy(page, site, STRICT_POLICY)
    page.goto(site.url + path)
    PAGES[path](page)
    ours, others = blocked_parts(page)
    assert ours == []
    assert others, "the wiki's own frame has something inline"


def test_nothing_at_all_is_blocked_by_the_policy_that_the_wiki_needs(page: Page, site: LiveWiki) -> None:
    enforce_policy(page, site, WIKI_POLICY)
    for path in PAGES:
        page.goto(site.url + path)
        assert blocked_parts(page) == ([], []), path
