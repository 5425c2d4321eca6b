"""What the plugin adds to the wiki's own pages: related pages, offers of search, and pages that may be meant; also without
scripts, and nothing of it inline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import STRICT_POLICY, check_policy, is_scrolling_sideways, opened, picture, serve, violations
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki, commit, eventually

ODD = 'services/Pipes & "Frost" <b>'
PIPE = "the pipe in the workshop gets its heating band, as in automation."


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki, a page that is like no other, and one with an odd name."""
    place = tmp_path_factory.mktemp("beside")
    others = {
        "Home.md": "# Home\n",
        "latin.md": "# Lorem\n\nQuousque tandem abutere, Catilina, patientia nostra? Quamdiu iste furor tuus nos eludet?\n",
        f"{ODD}.md": f"# Frost\n\nBefore a cold spell {PIPE}\n",
    }
    repository = copy_demo(tmp_path_factory, place)
    commit(repository, others)
    with serve(place, RETAIN_PAGE_NAME_CASE="True", WRITE_ACCESS="ANONYMOUS") as live:
        live.wait_until_indexed()
        live.log_in()
        yield live


def _lines(near: dict[str, Any]) -> tuple[str, ...]:
    title, path = near["title"], near["path"]
    return (title, path) if path.lower() != title.lower() else (title,)


def test_related_pages_stand_beside_a_page(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, policy=STRICT_POLICY) as page:
        page.goto(f"{site.url}/network/wireless")
        related = page.locator("#column-extra .semantic-related")
        expect(related.get_by_text("Related pages")).to_be_visible()
        near = site.api("GET", "/related?path=network/wireless&n=6").json["results"]
        expected = [_lines(each) for each in near if each["relevant"]]
        shown = related.locator("li a")
        expect(shown).to_have_count(len(expected))
        assert [tuple(each.locator("bdi").all_inner_texts()) for each in shown.all()] == expected
        ends = related.locator("li").evaluate_all(
            "all => all.map(each => [...each.querySelectorAll('bdi')].map(line => line.getBoundingClientRect()))"
            ".map(lines => [lines[0].top, lines.at(-1).bottom])"
        )
        gaps = {round(top - bottom) for (_, bottom), (top, _) in pairwise(ends)}
        assert len(gaps) == 1, "whether a row has one line or two"
        item = related.locator("li").first
        expect(item.get_by_role("link")).to_have_accessible_description(
            f"Related to “{near[0]['sections'][0]['section']}” on this page"
        )
        before = item.bounding_box()
        item.hover()
        assert item.bounding_box() == before
        check_policy(page)
        picture(page, "related")
        for _ in range(2):  # by day and by night
            assert violations(page, "#column-extra .semantic-related", only_colors=True) == []
            page.evaluate("halfmoon.toggleDarkMode()")


def test_on_a_phone_they_follow_the_page(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, "phone") as page:
        page.goto(f"{site.url}/services/automation")
        expect(page.locator("#column-main .semantic-related li a").first).to_be_visible()
        expect(page.locator("#column-extra .semantic-related")).to_be_hidden()
        expect(page.locator(".sidebar .semantic-related")).to_have_count(0)


def test_a_link_can_be_copied_and_one_that_is_there_is_marked(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        page.goto(f"{site.url}/services/automation")
        item = page.locator("#column-extra .semantic-related li").filter(has_text="Frost")
        item.get_by_role("button").click()
        expect(item.get_by_role("status")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == f"[[{ODD}]]"
        site.save("services/mail", f"# Mail\n\nAs before a cold spell: [[{ODD}]]. There {PIPE}\n")
        site.wait_until_indexed()
        page.goto(f"{site.url}/services/mail")
        linked = page.locator("#column-extra .semantic-related li").filter(has_text="Frost")
        expect(linked.get_by_text("linked")).to_be_visible()
        expect(linked.get_by_role("button")).to_have_count(0)
        linked.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Frost")).to_be_visible()


def test_nothing_is_shown_where_nothing_is_near(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        with page.expect_response(re.compile(r"/related\?")) as reply:
            page.goto(f"{site.url}/latin")
        assert reply.value.text().strip() == ""
        expect(page.locator("#column-extra .semantic-related")).to_have_text("")


def test_an_old_revision_is_left_alone(site: LiveWiki) -> None:
    revision = site.api("GET", "/semantic-search/pages/services/music").json["revision"]
    assert "semantic-related" in site.get("/services/music").text
    assert "semantic-related" not in site.get("/services/music", revision=revision).text


def test_who_begins_a_page_sees_those_there_are(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, is_member=True, policy=STRICT_POLICY) as page:
        page.goto(f"{site.url}/-/create")
        expect(page.locator(".semantic-likely")).to_have_count(0)
        page.get_by_label("Page name").fill("watering the vegetables")
        expect(page.locator(".semantic-likely").get_by_role("link").first).to_have_text("Irrigation")
        expect(page.locator(".semantic-likely .semantic-trail").first).to_have_text("Winter")
        check_policy(page)
        page.get_by_label("Page name").fill("irrigation")
        expect(page.locator(".semantic-likely h2")).to_have_text("A page has this name already")
        page.set_viewport_size({"width": 340, "height": 800})
        eventually(lambda: not is_scrolling_sideways(page), why="the wiki's sidebar moves aside")
        page.get_by_label("Page name").fill("")
        expect(page.locator(".semantic-likely")).to_have_count(0)


def test_without_the_palette_the_wikis_search_field_offers_it(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    copy_demo(tmp_path_factory, tmp_path)
    with serve(tmp_path, SEMANTIC_PAGES="related, editor") as plain, opened(chromium, plain) as page:
        page.goto(f"{plain.url}/services/music")
        offer = page.get_by_role("link", name="Search by meaning instead")
        expect(offer).to_be_hidden()
        page.get_by_placeholder("Search").fill("frozen pipes & valves")
        expect(offer).to_be_visible()
        assert violations(page, ".semantic-offer") == []
        page.keyboard.press("Tab")
        expect(offer).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_label("Question or words")).to_have_value("frozen pipes & valves")


def test_the_help_tells_of_it(site: LiveWiki) -> None:
    text = site.get("/-/help/plugins").text
    assert "Search by meaning" in text
    assert 'href="/-/semantic-search"' in text


def test_a_missing_page_names_those_that_may_be_meant(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, policy=STRICT_POLICY) as page:
        reply = page.goto(f"{site.url}/services/automaton")
        assert reply
        assert reply.status == 404
        meant = page.locator(".semantic-likely")
        expect(meant.get_by_role("link").first).to_have_text("Home automation")
        check_policy(page)
        meant.get_by_role("link").first.click()
        expect(page).to_have_url(f"{site.url}/services/automation")
    shown = site.get("/-/semantic-search/likely", name="lab/network").text
    assert re.findall("<h2.*?>(.*?)</h2>", shown) == ["A page has this name already", "Pages that may already cover this"]
    assert "Search for “frozen pipes”" in site.get("/-/semantic-search/likely", name="house/frozen-pipes", missing="1").text


def test_the_wikis_search_page_offers_it(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, policy=STRICT_POLICY) as page:
        page.goto(f"{site.url}/-/search")
        page.get_by_placeholder("Search term").fill('frozen "pipes"')
        page.get_by_role("button", name="Search").click()
        offer = page.get_by_role("link", name="Search by meaning instead")
        expect(offer).to_be_visible()
        check_policy(page)
        offer.click()
        expect(page.get_by_label("Question or words")).to_have_value('frozen "pipes"')


def test_without_scripts_links_lead_to_what_scripts_would_show(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, "plain") as page:
        page.goto(f"{site.url}/services/automation")
        page.locator("#column-extra").get_by_role("link", name="Related pages").click()
        expect(page.get_by_role("heading", name="Related to Home automation")).to_be_visible()
        expect(page.locator(".semantic-near a").first).to_be_visible()
        expect(page.get_by_role("button", name="Copy wiki link")).to_have_count(0)
        page.goto(f"{site.url}/services/automaton")
        expect(page.locator("#semantic-palette")).to_be_hidden()
        page.get_by_role("link", name="Search by meaning for “services/automaton”").click()
        expect(page.get_by_label("Question or words")).to_have_value("services/automaton")
        page.go_back()
        page.locator(".top-search input").fill('frozen "pipes"')
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="No match found")).to_be_visible()
        page.get_by_role("link", name='Search by meaning for “frozen "pipes"”').click()
        expect(page.get_by_label("Question or words")).to_have_value('frozen "pipes"')
        page.goto(f"{site.url}/garden/irrigation/edit")
        expect(page.locator("#semantic-writing")).to_be_hidden()
