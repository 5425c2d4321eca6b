"""Links while writing, beside the wiki's own editor."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import check_looks, opened
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki

EDITOR = "/garden/irrigation/edit"
TEXT = "window.cm_editor.state.doc.toString()"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("writing")
    repository = copy_demo(tmp_path_factory, place)
    with LiveWiki(repository, place / "index", WRITE_ACCESS="ANONYMOUS") as live:
        live.wait_until_indexed()
        yield live


def write(page: Page, site: LiveWiki, text: str, path: str = EDITOR) -> None:
    page.goto(site.url + path)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("\n\n")
    page.keyboard.insert_text(text)


def test_a_page_that_is_named_is_linked_by_a_click_and_not_before(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        write(page, site, "😀 Ask the Backups, and home automation for more.")
        panel = page.get_by_role("complementary", name="Links")
        expect(panel.get_by_role("link", name="Backups", exact=True)).to_be_visible()
        before = page.evaluate(TEXT)
        assert "[[" not in before
        check_looks(page, "#semantic-writing", "writing")
        panel.get_by_role("button", name="Add link Backups", exact=True).click()
        assert page.evaluate(TEXT) == before.replace("Backups", "[[Backups|procedures/backup]]")
        expect(panel.get_by_role("link", name="Backups", exact=True)).to_have_count(0)
        page.keyboard.press("Control+z")
        assert page.evaluate(TEXT) == before


def test_a_page_about_the_same_is_linked_at_the_cursor(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        write(page, site, "Before frost, turn the radiators to frost guard and look after the pipe in the workshop. See ")
        panel = page.get_by_role("complementary", name="Links")
        panel.get_by_role("button", name="Add link Home automation").click()
        assert page.evaluate(TEXT).endswith("See [[Home automation|services/automation]]")


def test_a_page_that_seems_to_be_there_already_is_told(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        text = (
            "Two valves in the green box behind the shed water the beds and the lawn, a pump in the cistern, and a controller."
        )
        write(page, site, text, "/watering/edit")
        panel = page.get_by_role("complementary", name="Links")
        expect(panel.get_by_role("heading", name="Similar pages")).to_be_visible()
        expect(panel.get_by_role("link", name="Irrigation")).to_be_visible()


def test_it_is_not_there_without_scripts(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, "plain") as page:
        page.goto(site.url + EDITOR)
        expect(page.locator("#semantic-writing")).to_be_hidden()
