"""The palette in Chromium: what its keys do, what is shown while typing, and what it remembers."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.browser import opened, picture, settle
from tests.support.live_wiki import LiveWiki

SEARCH = "/-/semantic-search"
QUESTION = "what if the heating fails"


def opened_palette(page: Page, demo: LiveWiki) -> Page:
    page.goto(demo.url)
    page.keyboard.press("Control+k")
    expect(field(page)).to_be_focused()
    return page


def field(page: Page):  # type: ignore[no-untyped-def]
    return page.get_by_role("combobox", name="Search")


def preview(page: Page):  # type: ignore[no-untyped-def]
    return page.locator("#semantic-palette .semantic-preview")


def options(page: Page, part: str):  # type: ignore[no-untyped-def]
    return page.locator(f'[data-part="{part}"] [role=option]:visible')


def test_the_wikis_own_field_and_its_key_open_it_and_the_query_is_there_again(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        page.goto(demo.url)
        page.locator(".top-search input").click()
        expect(field(page)).to_be_focused()
        page.keyboard.press("Escape")
        expect(field(page)).to_be_hidden()
        page.keyboard.press("/")
        expect(field(page)).to_be_focused()
        expect(field(page)).to_have_value("")
        page.keyboard.press("Escape")
        page.locator(".top-search input").focus()
        expect(field(page)).to_be_hidden()  # who only passes by keeps the focus
        page.keyboard.type("b")
        expect(field(page)).to_have_value("b")
        page.keyboard.type("oiler")
        expect(field(page)).to_have_value("boiler")
        page.keyboard.press("Escape")
        page.keyboard.press("Control+k")
        expect(field(page)).to_have_value("boiler")
        page.keyboard.type("x")  # it is selected
        expect(field(page)).to_have_value("x")


def test_the_keys_move_open_and_preview(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        settle(page, QUESTION)
        passages = options(page, "passages")
        expect(passages.nth(1)).to_be_visible()
        expect(options(page, "actions")).to_have_count(4)
        expect(page.get_by_role("group", name="Answer")).to_have_count(0)
        picture(page, "palette")
        page.keyboard.press("ArrowDown")
        second = passages.nth(1)
        expect(second).to_have_attribute("aria-selected", "true")
        assert field(page).get_attribute("aria-activedescendant") == second.get_attribute("id")
        expect(field(page)).to_be_focused()
        page.keyboard.press("ArrowRight")
        expect(preview(page).locator("h2, h3").nth(1)).to_be_visible()  # rendered by the wiki
        page.keyboard.press("Escape")
        expect(preview(page)).to_be_hidden()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        expect(options(page, "actions").last).to_have_attribute("aria-selected", "true")
        page.keyboard.press("ArrowDown")
        expect(passages.first).to_have_attribute("aria-selected", "true")
        address = passages.first.get_attribute("href") or ""
        page.keyboard.press("Enter")
        expect(page).to_have_url(
            demo.url + address.partition("#")[0] + ("#" + address.partition("#")[2].partition(":~:")[0]).rstrip("#")
        )


def test_a_folder_and_a_tag_narrow_and_are_left_again(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        page.keyboard.insert_text(QUESTION)
        first = options(page, "passages").first
        expect(first).to_have_attribute("data-folder", "services/")
        expect(page.locator(".semantic-keys [data-key=narrow]")).to_have_text("Tab only in services/")
        expect(page.get_by_role("button", name="Search only in services/")).to_have_count(0)  # a key does it
        page.keyboard.press("Tab")
        chip = page.get_by_role("button", name="services/")
        expect(chip).to_be_visible()
        expect(field(page)).to_be_focused()
        outside = page.locator('[data-part="passages"] [role=option]:not([data-folder^="services/"])')
        expect(outside).to_have_count(0)
        page.keyboard.press("Home")
        page.keyboard.press("Backspace")
        expect(chip).to_be_hidden()
        expect(outside.first).to_be_visible()
        field(page).fill("restic")
        tag = page.get_by_role("group", name="Tags").get_by_role("option")
        expect(tag).to_have_text(re.compile("restic.*1 page"))
        tag.hover()
        while tag.get_attribute("aria-selected") != "true":
            page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        expect(page.get_by_title("Search everywhere")).to_have_text("#restic")
        expect(field(page)).to_have_value("")
        page.keyboard.insert_text("key")
        expect(options(page, "passages").first).to_contain_text("Backups")
        expect(options(page, "actions").first).to_have_attribute("href", re.compile("tag=restic"))


def test_the_beginning_of_a_page_is_previewed_also_when_the_options_are_loaded_again(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        page.keyboard.type("backup")
        first = options(page, "names").first
        expect(first).to_contain_text("Backups")
        element = first.element_handle()
        page.keyboard.type("s")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("element => !element.isConnected", arg=element)
        expect(preview(page)).to_contain_text("Three copies")
        page.keyboard.press("ArrowLeft")
        expect(preview(page)).to_be_hidden()
        page.keyboard.press("ArrowRight")
        expect(preview(page)).to_be_visible()
        expect(preview(page).get_by_role("button")).to_be_hidden()
        page.set_viewport_size({"width": 600, "height": 800})
        preview(page).get_by_role("button", name="Close preview").click()
        expect(preview(page)).to_be_hidden()
        expect(field(page)).to_be_focused()
        first.locator(".semantic-peek").click()
        expect(preview(page)).to_contain_text("Three copies")
        beginning = options(page, "passages").filter(has_text="Three copies")
        expect(beginning.locator(".semantic-option-title")).to_have_text("Backups")


def test_exact_words_and_all_results_are_one_key_away(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        page.keyboard.insert_text("zigbee")
        page.keyboard.press("Shift+Enter")
        expect(page.get_by_role("heading", name="Search matched")).to_be_visible()
        page.wait_for_load_state()
        page.keyboard.press("Control+k")
        expect(field(page)).to_be_focused()
        page.keyboard.insert_text("zigbee")
        page.keyboard.press("Control+Shift+Enter")
        expect(page).to_have_url(re.compile(r"/semantic-search\?q=zigbee$"))
        page.wait_for_load_state()
        page.keyboard.press("Control+k")
        page.keyboard.insert_text("zigbee stcik")
        expect(page.locator("#semantic-palette [role=status]")).to_have_text("Also searched for “stick”.")
        options(page, "actions").filter(has_text="Search only for “zigbee stcik”").click()
        expect(page).to_have_url(re.compile(r"q=zigbee\+stcik&corrections=false$"))


def test_a_finger_narrows_to_a_folder_and_back(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo, "phone") as page:
        opened_palette(page, demo)
        page.keyboard.insert_text(QUESTION)
        button, chip = page.get_by_role("button", name="Search only in services/"), page.get_by_title("Search everywhere")
        button.tap()
        expect(chip).to_have_text("services/")
        expect(button).to_be_hidden()
        chip.tap()
        expect(button).to_be_visible()


def test_what_was_searched_and_opened_is_offered_and_stays_in_the_browser(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        page.keyboard.insert_text(QUESTION)
        options(page, "passages").filter(has_text="Home automation").first.click()
        expect(page.get_by_role("heading", name="Home automation")).to_be_visible()
        page.wait_for_load_state()  # its script remembers the page
        page.goto(demo.url)
        page.keyboard.press("Control+k")
        lately = page.get_by_role("group", name="Recently viewed")
        expect(lately.get_by_role("option", name="Home automation services/")).to_have_count(1)
        changed = page.get_by_role("group", name="Recently changed").get_by_role("option")
        expect(changed.first).to_be_visible()
        assert not {each.inner_text().split("\n")[0] for each in changed.all()} & {"Home", "Home automation"}
        options(page, "recent").filter(has_text=QUESTION).click()
        expect(field(page)).to_have_value(QUESTION)
        expect(options(page, "passages").first).to_be_visible()


def test_nothing_is_said_once_after_a_pause(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        page.evaluate("""() => {
            const status = document.querySelector("#semantic-palette [role=status]");
            window.said = [];
            new MutationObserver(() => status.textContent && said.push(status.textContent)).observe(status, {childList: true});
        }""")
        held: list[Route] = []
        page.route(re.compile("part=passages(?!.*draft)"), lambda route: held.append(route))  # noqa: PLW0108 - Playwright sets an attribute of it
        with page.expect_request(re.compile("part=passages(?!.*draft)")), page.expect_response(re.compile("draft=typing")):
            page.keyboard.type("constitutional law of rome")
        expect(page.locator("[data-part=passages]")).to_be_visible()  # says that it searches
        held[0].continue_()
        expect(page.locator("#semantic-palette [role=status]")).to_have_text("Nothing in this wiki seems to be about this.")
        assert page.evaluate("said.length") == 1
        icon = page.locator("#semantic-palette-status").evaluate("each => getComputedStyle(each, '::before').fontFamily")
        assert "Font Awesome" in icon, "as on the search page"
        expect(options(page, "actions").first).to_contain_text("Search for the exact words")
        expect(options(page, "actions").first).to_have_attribute("aria-selected", "true")
        narrowed = demo.get(f"{SEARCH}/palette?q=law+of+rome&part=passages&path=services/").text
        assert "Nothing with these filters seems to be about this." in narrowed
        _, *passages = demo.get(f"{SEARCH}/palette?q=backup&part=passages").text.split('role="option"')
        assert {("<mark>" in each, "similar meaning" in each) for each in passages} == {(True, False), (False, True)}
        assert "similar meaning" not in narrowed
        page.get_by_role("option", name="probably not about this").click()
        expect(page.get_by_role("group", name="Probably not about this").get_by_role("option").first).to_be_visible()


def test_a_wiki_that_does_not_answer_and_a_session_that_has_ended_are_told(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        expect(options(page, "names").first).to_be_visible()  # recently changed pages
        page.route("**/palette?**", lambda route: route.abort())
        with page.expect_event("requestfailed", lambda asked: "part=passages" in asked.url):
            page.keyboard.insert_text("boiler")
        alert = page.locator("#semantic-palette").get_by_role("alert")
        expect(alert).to_contain_text("cannot be reached")
        expect(page.get_by_role("option")).to_have_count(0)  # none can be opened
        page.unroute("**/palette?**")
        expect(page.locator("[data-key=open]")).to_have_text("↵ retry")
        page.keyboard.press("Enter")
        expect(options(page, "passages").first).to_be_visible()
        expect(alert).to_have_count(0)
        page.route("**/palette?**", lambda route: route.fulfill(status=302, headers={"location": "/-/login"}))
        page.keyboard.insert_text(" valve")
        expect(alert).to_contain_text("You are logged out")
        expect(alert.get_by_role("link", name="Log in")).to_be_visible()


def test_names_come_at_once_and_before_passages(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        opened_palette(page, demo)
        expect(page.get_by_role("group", name="Recently changed").get_by_role("option").first).to_be_visible()
        names = page.get_by_role("group", name="Pages").get_by_role("option")
        page.keyboard.insert_text("before a cold spell")
        expect(names).to_have_text([re.compile("Home automation"), re.compile("Before a cold spell")])
        expect(names.last).to_have_attribute("aria-selected", "true")
        expect(names.last).to_have_class(re.compile("semantic-nested"))
        field(page).fill("")
        with page.expect_response(re.compile("q=when&part=names")):
            page.keyboard.type("when")
        expect(options(page, "actions").first).to_contain_text("All results")
        expect(options(page, "names")).to_have_count(0)  # the beginning of a question matches no title
        page.keyboard.type(" the lights")
        expect(options(page, "names").first).to_contain_text("When the lights go out")
        field(page).fill("lights the")
        expect(options(page, "names").first.locator("mark")).to_have_text(["lights"])
        field(page).fill("")
        settle(page, "automa")
        expect(names.first).to_contain_text("Home automation")
        expect(names.first.locator("mark")).to_have_text("automa")
        expect(names.first).to_have_attribute("aria-selected", "true")
        expect(page.locator("#semantic-palette [role=status]")).to_have_text("")
        expect(page.get_by_role("group", name="Related pages")).to_have_count(0)
        page.keyboard.type("tion")
        expect(options(page, "passages").first).to_be_visible()
        expect(names.first).to_have_attribute("aria-selected", "true")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Home automation")).to_be_visible()


def test_the_page_has_commands(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        page.goto(f"{demo.url}/procedures/backup")
        page.keyboard.press("Control+k")
        commands = page.get_by_role("group", name="Commands")
        commands.get_by_role("option", name="Copy link").click()
        expect(page.locator("#semantic-palette [role=status]")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == f"{demo.url}/procedures/backup"
        page.keyboard.insert_text("history")
        commands.get_by_role("option", name="Page history").click()
        expect(page).to_have_url(re.compile("/procedures/backup/history$"))
        page.go_back()
        page.keyboard.press("Control+k")
        settle(page, "t this pa")
        expect(page.locator("#semantic-palette [role=status]")).to_be_empty()
        expect(commands.get_by_role("option").first).to_have_attribute("aria-selected", "true")
        expect(commands.get_by_role("option").first).to_contain_text("Edit this page")
        field(page).fill("edit this")
        expect(options(page, "passages").first).to_be_visible()
        expect(options(page, "commands")).to_have_text("Edit this page")
        expect(options(page, "commands")).to_have_attribute("aria-selected", "true")
        field(page).fill("page")
        expect(commands.get_by_role("option")).to_have_text(
            ["Page history", "Create page…", "Edit this page", "Copy link to this page"]
        )
        expect(page.get_by_role("group", name="Actions")).to_have_count(1)
        field(page).fill("health")
        expect(commands.get_by_role("option")).to_have_text("Wiki health")
        field(page).fill("Lab/Bee hives")
        page.get_by_role("option", name="Create page").click()
        expect(page).to_have_url(re.compile("/Lab/Bee%20hives.edit$"))
