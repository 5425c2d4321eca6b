"""Links while writing, beside the wiki's own editor: when they come, where they go, and that the editor can undo them."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from tests.support.browser import check_looks, opened
from tests.support.live_wiki import LiveWiki

EDITOR = "/garden/irrigation/edit"
TEXT = "window.cm_editor.state.doc.toString()"


def write(page: Page, demo: LiveWiki, text: str, path: str = EDITOR) -> None:
    page.goto(demo.url + path)
    page.locator(".cm-content").click()
    page.keyboard.press("Control+End")
    enter(page, f"\n\n{text}")


def enter(page: Page, text: str) -> None:
    page.keyboard.insert_text(text)
    page.wait_for_function(f"text => {TEXT}.endsWith(text)", arg=text)
    page.keyboard.press("Control+End")  # the editor may have read the text without where the cursor went


def test_a_page_that_is_named_is_linked_by_a_click_and_not_before(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        write(page, demo, "😀 Ask the Backups, and home automation for more.")
        panel = page.get_by_role("complementary", name="Suggested links")
        expect(panel.get_by_role("link", name="Backups", exact=True)).to_be_visible()
        before = page.evaluate(TEXT)
        assert "[[" not in before
        check_looks(page, "#semantic-writing", "writing")
        panel.get_by_role("button", name="Add link Backups", exact=True).hover()
        page.mouse.down()
        with page.expect_response("**/api/v1/related") as same:
            page.evaluate("document.dispatchEvent(new Event('cm6change'))")
        same.value.finished()
        page.mouse.up()
        assert page.evaluate(TEXT) == before.replace("Backups", "[[Backups|procedures/backup]]")
        expect(panel.get_by_role("link", name="Backups", exact=True)).to_have_count(0)
        page.keyboard.press("Control+z")
        assert page.evaluate(TEXT) == before


def test_a_similar_page_is_told_and_another_linked_at_the_cursor(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        valves = "Two valves in the green box behind the shed water the beds and the lawn"
        write(page, demo, f"{valves}, a pump in the cistern, and a controller.", "/watering/edit")
        panel = page.get_by_role("complementary", name="Suggested links")
        notice = page.get_by_text("This page may already exist:")
        expect(notice.get_by_role("link", name="Irrigation")).to_have_attribute("href", "/garden/irrigation")
        enter(page, "\n\nBefore frost, turn the radiators to frost guard. See ")
        panel.get_by_role("button", name="Add link Home automation").click()
        assert page.evaluate(TEXT).endswith("See [[Home automation|services/automation]]")


def test_a_phone_shows_the_similar_page_while_its_reader_types(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo, "phone") as page:
        write(page, demo, "Nightly copies of all machines.\n\n" * 40 + "Last line", "/garden/backups/edit")
        link = page.get_by_text("This page may already exist:").get_by_role("link", name="Backups")
        for height in (844, 480):  # without and with a keyboard
            page.set_viewport_size({"width": 390, "height": height})
            page.keyboard.type("!")
            expect(link).to_be_in_viewport(ratio=1)
            expect(page.get_by_text("Last line!")).to_be_in_viewport(ratio=1)
            page.locator("#content-wrapper").evaluate("wrapper => wrapper.scrollTo(0, wrapper.scrollHeight)")
            expect(link).to_be_in_viewport(ratio=1)
            page.locator("#content-wrapper").evaluate("wrapper => wrapper.scrollTo(0, 0)")
        check_looks(page, "#semantic-existing")
