"""The page on the wiki's health: findings are followed, dismissed and restored, also without scripts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import STRICT_POLICY, check_policy, opened, serve
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki, commit, eventually

HEALTH = "/-/semantic-search/health"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki with a link to nothing and a question without an answer; its own browser is the administrator's."""
    place = tmp_path_factory.mktemp("health")
    pages = {"links.md": "# Links\n\nSee [[The plan|plans/next year]].\n", "archive/next year.md": "# Next year\n"}
    commit(copy_demo(tmp_path_factory, place), pages)
    with serve(place, SEMANTIC_SEARCH_LOG="true") as live:
        live.wait_until_indexed()
        live.log_in()
        live.search("constitutional law of rome")
        eventually(lambda: live.api("GET", "/semantic-search/insight").json["unanswered"])
        eventually(lambda: live.api("GET", "/semantic-search/health").json["is_current"])
        yield live


def test_findings_are_listed_by_kind_and_lead_to_the_section(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, is_member=True, policy=STRICT_POLICY) as page:
        page.goto(site.url + HEALTH)
        broken = page.get_by_role("region", name="Broken links")
        expect(broken).to_contain_text("plans/next year")
        expect(page.get_by_role("region", name="Searches without results")).to_contain_text("constitutional law of rome")
        orphans = page.get_by_role("region", name="Orphaned pages").get_by_role("listitem")
        orphan = orphans.filter(has_text="network/remote-access")
        tabs = page.get_by_role("navigation", name="Pages about the wiki").get_by_role("link")
        expect(tabs).to_have_text(["Health", "Search index"])
        expect(tabs.first).to_have_attribute("aria-current", "page")
        check_policy(page)
        orphan.get_by_role("link", name="Link from…").click()
        expect(page.locator("ins")).to_have_text("[[Remote access|network/remote-access]]")
        expect(page.locator("p", has_text="Wireless will link to Remote access.")).to_be_visible()
        page.get_by_role("link", name="Network", exact=True).click()
        expect(page.locator("p", has_text="Network will link to Remote access.")).to_be_visible()
        page.get_by_role("link", name="Cancel").click()
        broken.get_by_role("link", name="Change link").click()
        expect(page.locator(".semantic-added")).to_have_text("+See [[The plan|archive/next year]].")
        page.get_by_role("link", name="Cancel").click()
        broken.get_by_role("link", name="Links", exact=True).click()
        expect(page).to_have_url(f"{site.url}/links#links")


@pytest.mark.parametrize("look", ["light", "plain"])
def test_a_finding_is_dismissed_and_restored(chromium: Browser, site: LiveWiki, look: str) -> None:
    with opened(chromium, site, look, is_member=True) as page:
        page.goto(site.url + HEALTH)
        page.get_by_role("button", name="Dismiss: plans/next year").press("Enter")
        expect(page.get_by_role("region", name="Orphaned pages")).to_be_visible()
        expect(page.get_by_text("plans/next year")).to_have_count(0)
        undo = page.get_by_role("button", name="Undo")
        expect(undo).to_be_in_viewport()
        undo.click()
        expect(undo).to_have_count(0)
        page.get_by_role("button", name="Dismiss: plans/next year").click()
        expect(page.get_by_text("plans/next year")).to_have_count(0)
        page.get_by_role("link", name="Dismissed").click()
        dismissed = page.get_by_role("region").last
        expect(dismissed).to_have_accessible_name("Dismissed 1")
        expect(dismissed.get_by_role("link", name="Create page")).to_have_count(0)
        dismissed.get_by_role("button", name="Restore: plans/next year").click()
        expect(page.get_by_role("button", name="Dismiss: plans/next year")).to_be_visible()


def test_several_or_all_findings_of_a_kind_are_selected_and_dismissed_at_once(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, is_member=True) as page:
        page.goto(site.url + HEALTH)
        orphans = page.get_by_role("region", name="Orphaned pages")
        orphans.get_by_role("checkbox").first.check()
        orphans.get_by_role("link", name="Select these 10").click()
        expect(orphans.get_by_role("link", name="Select none")).to_be_visible()
        page.set_viewport_size({"width": 1280, "height": 400})
        expect(orphans.get_by_role("button", name="Dismiss selected")).to_be_in_viewport()
        assert all(box.is_checked() for box in orphans.get_by_role("checkbox").all())
        orphans.get_by_role("link", name="Select none").click()
        expect(orphans.get_by_role("link", name="Select these 10")).to_be_visible()
        expect(orphans.get_by_role("checkbox", checked=True)).to_have_count(0)
        names = [box.get_attribute("aria-label") or "" for box in orphans.get_by_role("checkbox").all()[:2]]
        expect(orphans.get_by_role("button", name="Dismiss selected")).to_be_hidden()
        for name in names:
            orphans.get_by_role("checkbox", name=name).check()
        orphans.get_by_role("button", name="Dismiss selected").click()
        expect(page.get_by_role("region", name="Dismissed 2")).to_be_visible()
        for name in names:
            expect(orphans.get_by_role("checkbox", name=name)).to_have_count(0)
        orphans.get_by_role("checkbox").first.check()
        expect(page.get_by_role("button", name="Undo")).to_be_hidden()
        orphans.get_by_role("checkbox").first.uncheck()
        page.get_by_role("button", name="Undo").click()
        for name in names:
            expect(orphans.get_by_role("checkbox", name=name)).to_be_visible()


def test_a_mention_is_linked_after_a_look_at_the_change(chromium: Browser, site: LiveWiki) -> None:
    site.save("pages/notes", "# Notes\n\nAsk the photo library about it, and the mail relay.\n")
    site.wait_until_indexed()
    eventually(lambda: site.api("GET", "/semantic-search/health").json["is_current"])
    with opened(chromium, site, "plain", is_member=True) as page:  # no script takes part
        page.goto(f"{site.url}{HEALTH}?kind=mention")
        mentions = page.get_by_role("region", name="Unlinked mentions").get_by_role("listitem")
        expect(mentions.filter(has_text="Services → Mail relay").get_by_role("link", name="Add link")).to_be_visible()
        of_page = mentions.filter(has_text="Ask the photo library about it, and the mail relay.")
        expect(of_page).to_contain_text(["Notes → Mail relay", "Notes → Photo library"])
        href = of_page.last.get_by_role("link", name="Add link", exact=True).get_attribute("href")
        assert str(href).endswith("target=services/photos")
        of_page.get_by_role("link", name="Add 2 links").click()
        expect(page.locator(".semantic-added")).to_contain_text("Ask the [[")
        expect(page.locator("ins")).to_have_text(["[[photo library|services/photos]]", "[[mail relay|services/mail]]"])
        page.get_by_role("link", name="Cancel").click()
        of_page.get_by_role("button", name="Dismiss: ").first.click()
        of_page.get_by_role("link", name="Add link", exact=True).click()
        expect(page.locator("ins")).to_have_text(["[[photo library|services/photos]]"])
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("link", name="photo library", exact=True)).to_be_visible()
