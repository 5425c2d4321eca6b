"""The search page as people use it: typing, filters, keys, going back, the preview; without scripts; and with hostile pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from otterwiki_semantic.core.records import MapState
from tests.support.browser import (
    BEHAVIOURS,
    STRICT_POLICY,
    check_policy,
    is_scrolling_sideways,
    opened,
    picture,
    serve,
    violations,
)
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki, commit, eventually

SEARCH = "/-/semantic-search"
_MORE = " ".join(["It stands on a rock above the valley in the snow."] * 10)
"""So much text that an excerpt is cut."""
TITLE = "<script>window.harmed = 1</script>"
_HARM = '"><img src=x onerror="window.harmed=1">'
HOSTILE = f"""\
---
title: "{TITLE}"
category: '"><img src=x onerror="window.harmed=1">'
tags: ["' onmouseover='window.harmed=1", "</style><script>window.harmed=1</script>"]
---
# <script>window.harmed = 1</script> "quoted' \u202e backwards

The marmot <b onclick="window.harmed=1">digs</b> `<img src=x onerror=window.harmed=1>`
&lt;script&gt;window.harmed=1&lt;/script&gt;
in \U0001f9a6 the alpine meadow \u0000 \ufffe and whistles. {_MORE}
"""

COVERING = f"""\
# Ptarmigan

The ptarmigan is on the screen: </div></div>
<div class="covering" style="position: fixed; inset: 0; z-index: 99999; background: #fff">All of it.
<a href="https://evil.example/">Log in</a></div>

{_MORE}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki with a page that means harm."""
    place = tmp_path_factory.mktemp("site")
    repository = copy_demo(tmp_path_factory, place)
    commit(repository, {"animals/marmot.md": HOSTILE, "animals/ptarmigan.md": COVERING})
    with serve(place, SEMANTIC_PAGES="") as live:
        live.wait_until_indexed()
        eventually(lambda: live.api("GET", "/semantic-search/map").json["state"] == MapState.READY, why="there is a map")
        yield live


@pytest.fixture
def page(chromium: Browser, site: LiveWiki) -> Iterator[Page]:
    with opened(chromium, site) as lent:
        yield lent


def passages(page: Page) -> list[str]:
    return [link.inner_text() for link in page.locator("a.semantic-passage:visible").all()]


@pytest.mark.parametrize("look", BEHAVIOURS)
def test_a_question_is_answered_by_a_passage_that_the_link_leads_to(chromium: Browser, site: LiveWiki, look: str) -> None:
    with opened(chromium, site, look, policy=STRICT_POLICY) as page:
        page.goto(site.url + SEARCH)
        page.get_by_label("Question or words").fill("protect plumbing from freezing")
        page.get_by_role("button", name="Search").click()
        first = page.locator("a.semantic-passage").first
        expect(page.locator(".semantic-page").first).to_contain_text("Heating › Before a cold spell")
        expect(first).to_contain_text("frost guard")
        assert "q=protect+plumbing+from+freezing" in page.url
        if look == "light":
            expect(page.locator("#semantic-preview h2").first).to_be_visible()
            check_policy(page)
            picture(page, "search")
        assert page.locator("#semantic-keys").is_visible() == (look == "light")
        first.click()
        expect(page).to_have_url(re.compile("/services/automation#before-a-cold-spell$"))
        expect(page.get_by_role("heading", name="Before a cold spell")).to_be_in_viewport()


def test_a_misspelled_word_is_corrected_unless_that_is_not_wanted(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=zigbee+stcik")
    expect(page.locator("#semantic-status:visible")).to_have_text("Also searched for “stick”. 1 passage on 1 page")
    expect(page.locator("mark", has_text="stick").first).to_be_visible()
    assert violations(page, ".semantic-corrections") == []
    link = page.get_by_role("link", name="Search only for")
    expect(link).to_have_attribute("href", re.compile("corrections=false"))  # without scripts, too
    link.click()
    expect(page).to_have_url(re.compile("corrections=false"))
    expect(page.get_by_text("Also searched for")).to_have_count(0)
    assert page.locator("mark", has_text="stick").count() == 0


def test_the_history_has_finished_searches_and_shows_what_was_found(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=sprinkler+schedule&action=1&elements=2&submit=3")  # parameters that mean nothing
    field, first = page.get_by_label("Question or words"), page.locator("#semantic-results li.semantic-page").first
    expect(first).to_contain_text("Irrigation")
    field.fill("recover an erased directory")
    expect(first).to_contain_text("Backups")
    expect(page).to_have_url(re.compile(r"\?q=recover.an.erased.directory$"))
    later = passages(page)
    page.go_back()
    expect(field).to_have_value("sprinkler schedule")
    expect(first).to_contain_text("Irrigation")
    page.go_forward()
    expect(field).to_have_value("recover an erased directory")
    expect(page.locator("a.semantic-passage").first).to_have_text(later[0], use_inner_text=True)
    page.reload()
    expect(page.locator("a.semantic-passage").first).to_have_text(later[0], use_inner_text=True)
    field.fill("zigbee")
    field.press("Enter")
    page.keyboard.insert_text(" stick")
    expect(page).to_have_url(re.compile(r"\?q=zigbee\+stick$"))
    page.go_back()
    expect(field).to_have_value("zigbee")
    page.go_back()
    expect(field).to_have_value("recover an erased directory")


def test_a_slow_answer_never_replaces_a_later_one(page: Page, site: LiveWiki) -> None:
    page.goto(site.url + SEARCH)
    page.evaluate("""() => {
        const real = window.fetch;
        window.slow = {};
        window.fetch = async (...asked) => {
            if (String(asked[0]).includes("q=tomato")) {
                await new Promise(done => { window.slow.answer = done; });
                window.slow.is_over = true;
                return new Response('<div data-summary="tomatoes">tomatoes</div>'); // as if it could not be aborted any more
            }
            return real(...asked);
        };
    }""")
    field = page.get_by_label("Question or words")
    field.fill("tomato")
    page.wait_for_function("Boolean(window.slow.answer)")
    field.fill("music")
    expect(page.locator("#semantic-results")).to_contain_text("Music")
    page.evaluate("window.slow.answer()")
    page.wait_for_function("window.slow.is_over")
    field.fill("music and zigbee")  # what comes later shows that what came before has had its time
    expect(page.locator("mark", has_text=re.compile("^zigbee$", re.IGNORECASE)).first).to_be_attached()
    expect(page.get_by_role("status")).not_to_have_text("tomatoes")


@pytest.mark.parametrize("look", ["light", "plain"])
def test_menus_narrow_the_answer_and_filters_are_taken_away_again(chromium: Browser, site: LiveWiki, look: str) -> None:
    with opened(chromium, site, look) as page:
        page.goto(f"{site.url}{SEARCH}?q=radio")
        folders, modes = page.get_by_label("Folder"), page.locator("select[name=mode]")
        modes.select_option("keyword")
        folders.select_option("machines/")
        if look == "plain":  # where they take effect with the next search
            page.get_by_role("button", name="Search").click()
        expect(page).to_have_url(re.compile("mode=keyword"))
        expect(page).to_have_url(re.compile("path=machines(/|%2F)"))
        expect(folders).to_have_value("machines/")
        places = page.locator(".semantic-page .semantic-where")
        expect(places.filter(has_text=re.compile("^machines/"))).not_to_have_count(0)
        expect(places.filter(has_not_text=re.compile("^machines/"))).to_have_count(0)
        page.locator("#search-query").fill("radio stick")
        page.get_by_role("button", name="Search").click()
        expect(page).to_have_url(re.compile("radio.stick.*path=machines(/|%2F)"))
        page.get_by_role("link", name="Remove Folder: machines/").click()
        expect(places.filter(has_not_text=re.compile("^machines/"))).not_to_have_count(0)
        expect(page).not_to_have_url(re.compile("path=machines"))


def test_nothing_relevant_is_said_and_the_mode_decides_what_is(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=constitutional+law+of+the+roman+republic")
    expect(page.get_by_role("status")).to_have_text("Nothing in this wiki seems to be about this.")
    expect(page.get_by_label("Sort")).to_have_count(0)
    expect(page.locator(".semantic-nothing")).to_be_visible()
    assert passages(page) == []
    page.get_by_text("probably not about this").click()
    assert passages(page)
    page.get_by_label("Question or words").fill("plumbing")
    expect(page.locator("a.semantic-passage").first).to_be_visible()
    page.locator("select[name=mode]").select_option("keyword")
    expect(page.locator(".semantic-nothing")).to_be_visible()
    expect(page).to_have_url(re.compile("mode=keyword"))
    page.locator("select[name=mode]").select_option("semantic")
    expect(page).to_have_url(re.compile("mode=semantic"))
    expect(page.locator("a.semantic-passage").first).to_be_attached()


def test_why_a_result_stands_there_is_told_on_demand(site: LiveWiki) -> None:
    usual = site.get(SEARCH, q="home automation").text
    assert "title matches" not in usual
    assert "Why these results" not in usual, "it is for administrators"
    reasons = re.findall(r"(?<=<li class=\"semantic-where\">).*(?=</li>)", site.get(SEARCH, q="home automation", why=1).text)
    assert reasons[0] == "title matches · contains all words"
    assert all(1 <= len(each.split(" · ")) <= 2 for each in reasons)


def test_the_keyboard_alone_is_enough_and_left_to_an_input_method(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=backup")
    field, links = page.get_by_label("Question or words"), page.locator("a.semantic-passage:visible")
    field.focus()
    field.dispatch_event("keydown", {"key": "ArrowDown", "isComposing": True, "bubbles": True})  # of an input method
    expect(field).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.first).to_have_class(re.compile("semantic-chosen"))
    links.first.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    links.nth(1).focus()
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    expect(field).to_be_focused()
    page.keyboard.press("Control+A")
    with page.expect_response(lambda reply: "/results?" in reply.url and "draft=" not in reply.url):
        page.keyboard.insert_text("zigbee stick")
    expect(page.locator("#semantic-results")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator("mark", has_text=re.compile("^zigbee$", re.IGNORECASE)).first).to_be_visible()
    page.keyboard.press("ArrowDown")
    chosen = page.locator(".semantic-chosen")
    expect(chosen).to_have_count(1)
    assert field.get_attribute("aria-activedescendant") == links.first.get_attribute("id")
    expect(field).to_be_focused()
    for key in ("ArrowUp", "Escape"):
        page.keyboard.press(key)
        expect(chosen).to_have_count(0)
        expect(field).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(chosen).to_have_count(1)
    address = links.first.get_attribute("href") or ""
    page.keyboard.press("Enter")
    page.wait_for_url(f"{site.url}{address.partition('#')[0]}#**")


def test_a_choice_stays_when_its_results_are_shown_again_and_ends_with_typing(page: Page, site: LiveWiki) -> None:
    def answer(route: Route) -> None:
        reply = route.fetch()
        route.fulfill(response=reply, body=f"{reply.text()}<!-- {route.request.url} -->")

    page.route("**/results?**", answer)
    page.goto(f"{site.url}{SEARCH}")
    field, first = page.get_by_label("Question or words"), page.locator("a.semantic-passage:visible").first
    with page.expect_response(re.compile(r"/results\?q=zigbee\+stick$")):
        page.keyboard.insert_text("zigbee stick")
        before = first.element_handle()
        page.keyboard.press("ArrowDown")
        expect(field).to_have_attribute("aria-activedescendant", re.compile("."))
    eventually(lambda: not before.evaluate("each => each.isConnected"), why="the results are replaced")
    expect(field).to_have_attribute("aria-activedescendant", first.get_attribute("id") or "")
    expect(first).to_have_class(re.compile("semantic-chosen"))
    page.keyboard.insert_text("s")
    expect(field).not_to_have_attribute("aria-activedescendant", re.compile("."))


def test_a_link_lands_on_the_words_that_were_found(page: Page, site: LiveWiki) -> None:
    page.set_viewport_size({"width": 1400, "height": 320})
    page.goto(f"{site.url}{SEARCH}?q=ring+turns+blue")
    link = page.locator("a.semantic-passage").first
    assert ":~:text=" in (link.get_attribute("href") or "")
    link.click()
    page.wait_for_url("**/services/automation**")
    expect(page.get_by_text("until the ring turns blue")).to_be_in_viewport()
    expect(page.get_by_role("heading", name="Home automation")).not_to_be_in_viewport()


def test_a_hostile_page_is_shown_as_text(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=marmot+whistles+in+the+meadow")
    expect(page.get_by_role("heading", name="<script>window.harmed = 1</script>").first).to_be_visible()
    expect(page.locator("a.semantic-passage").first).to_contain_text("<img src=x onerror=window.harmed=1>")
    expect(page.locator("#semantic-preview")).to_contain_text("marmot")
    page.set_viewport_size({"width": 1100, "height": 900})
    page.get_by_text("Show whole passage").first.click()
    expect(page.locator(".semantic-rendered").first).to_contain_text("marmot")
    page.goto(f"{site.url}{SEARCH}?{urlencode({'q': 'marmot', 'category': _HARM})}")
    expect(page.get_by_role("link", name="Remove Category")).to_contain_text(_HARM)
    assert page.evaluate("window.harmed") is None
    page.goto(f"{site.url}{SEARCH}/map?q=marmot+in+the+meadow")
    expect(page.get_by_role("status")).to_have_text("1 page found.")
    expect(page.locator(".semantic-map-labels text:not(.semantic-quiet)")).to_have_text(f"{TITLE[:23]}…")
    expect(page.locator("#semantic-map-plot title", has_text=TITLE)).to_contain_text(_HARM)
    page.get_by_role("link", name="Category").click()
    expect(page.locator(".semantic-map-legend")).to_contain_text('"><img src=x')
    expect(page.locator("tbody th").first).to_have_text(TITLE)
    assert page.evaluate("window.harmed") is None
    query = f"</title><script>window.harmed=1</script>{_HARM}'-(window.harmed=1)-'"
    page.goto(site.url + SEARCH)
    page.get_by_label("Question or words").fill(query)
    page.get_by_label("Question or words").press("Enter")
    expect(page.get_by_role("status")).not_to_be_empty()
    page.reload()
    expect(page.get_by_label("Question or words")).to_have_value(query)
    assert page.evaluate("window.harmed") is None


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("q=" + "x" * 2001, "2,001 characters"),
        ("q=x&mode=odd", "“odd” is not a choice of “Match”. Choose “words and meaning”, “meaning only” or “exact words”."),
        ("q=x&path=%00", "is not a choice of “Folder”"),
    ],
)
def test_what_cannot_be_asked_is_told(site: LiveWiki, asked: str, said: str) -> None:
    reply = site.get(f"{SEARCH}?{asked}")
    assert reply.status == 422
    assert said in html.unescape(reply.text)


def test_a_wiki_that_is_gone_is_reported(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        page.goto(site.url + SEARCH)
        page.route("**/results?**", lambda route: route.abort())
        page.get_by_label("Question or words").fill("zigbee")
        alert = page.get_by_role("alert")
        expect(alert).to_contain_text("cannot be reached")
        expect(page.get_by_role("navigation", name="Examples")).to_have_count(0)
        assert violations(page, "#semantic-results") == []
        # The newer route comes first. The older one stays, so that no request in between reaches the wiki.
        page.route("**/results?**", lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"))
        with page.expect_response("**/results?**"):  # it is asked again without a key
            pass
        expect(alert).to_contain_text("cannot be reached")
        expect(page.get_by_text("Bad gateway")).to_have_count(0)
        page.unroute("**/results?**")
        expect(page.get_by_role("status")).to_contain_text("passage")
        expect(alert).to_have_count(0)
        page.route("**/results?**", lambda route: route.abort())
        page.get_by_label("Question or words").fill("backup")
        expect(alert).to_be_visible()
        results = page.locator("#semantic-results [data-query]")  # results that stay name their query
        assert "Results for" in results.evaluate("each => getComputedStyle(each, '::before').content")
        assert results.get_attribute("data-query") == "zigbee"


def test_a_filter_that_cannot_be_asked_is_taken_away(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=zigbee&category={'x' * 1001}")
    expect(page.locator("#semantic-results .alert")).to_contain_text(re.compile("“xxx.*” is not a choice of “Category”"))
    page.get_by_role("link", name="Remove Category").click()
    expect(page.locator("a.semantic-passage").first).to_be_visible()
    expect(page.get_by_label("Question or words")).to_be_focused()


def test_only_the_quoted_part_of_a_list_item_is_marked_in_the_preview(page: Page, site: LiveWiki) -> None:
    def in_a_list(route: Route) -> None:
        reply = route.fetch()
        route.fulfill(response=reply, body=reply.text().replace("<p>If frost", "<ol><li><p>A long story.</p><p>If frost"))

    page.route(re.compile(r"/preview\?"), in_a_list)
    page.goto(f"{site.url}{SEARCH}?q=keep+warm+in+winter")
    preview = page.get_by_role("complementary", name="Preview")
    expect(preview.locator("li .semantic-best")).to_have_text(re.compile("^If frost"))


def test_the_page_of_a_passage_is_shown_beside_it(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=keep+warm+in+winter")
    preview = page.get_by_role("complementary", name="Preview")
    expect(preview.get_by_role("link", name="Home automation")).to_be_visible()
    expect(preview.get_by_role("heading", name="Before a cold spell")).to_be_in_viewport()
    expect(preview.locator(".semantic-best")).to_contain_text("If frost is announced")
    page.goto(f"{site.url}{SEARCH}?q=backup")
    expect(preview.get_by_role("link", name="Backups", exact=True)).to_be_visible()
    page.locator("a.semantic-passage:visible").last.hover()
    expect(preview.get_by_role("link", name="Backups", exact=True)).to_have_count(0)
    assert not is_scrolling_sideways(page)
    page.goto(f"{site.url}{SEARCH}?q=power+draw+while+the+backup+is+running")
    page.locator("a.semantic-passage", has_text="backup running – watts: 94").first.hover()
    expect(preview.locator(".semantic-best")).to_have_text(re.compile("backup running"))  # only this row of the table
    expect(preview.locator(".semantic-best mark", has_text="backup")).not_to_have_count(0)
    page.goto(f"{site.url}{SEARCH}?q=how+long+are+nightly+backups+kept")  # at the end of its page
    expect(preview.locator(".semantic-best")).not_to_have_count(0)
    cut = page.evaluate("""() => {
        const pane = document.querySelector("#semantic-preview");
        const edge = pane.querySelector("h2").getBoundingClientRect().bottom;
        return [...pane.querySelectorAll(".semantic-page > *")].map(each => [each, each.getBoundingClientRect()])
            .filter(([, box]) => box.top < edge && box.bottom > edge).map(([each]) => each.textContent);
    }""")
    assert cut == [], "what is half below the title"
    page.set_viewport_size({"width": 1100, "height": 900})
    expect(preview).to_be_hidden()


def test_a_phone_shows_filters_in_use_with_their_cross_and_the_others_on_demand(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site, "phone") as page:
        page.goto(f"{site.url}{SEARCH}?q=backup")
        menus, options = page.locator(".semantic-menus > *"), page.locator(".semantic-menus > :visible")
        assert menus.count() > 3
        expect(options).to_have_count(0)
        first = page.locator("#semantic-results h2").first.bounding_box()
        assert first
        assert first["y"] < 250
        page.goto(f"{site.url}{SEARCH}?q=backup&path=procedures/&updated_since=2020-01-01")
        expect(options).to_have_count(2)
        expect(page.get_by_title("Filters")).to_have_text("2")
        for used in options.all():
            expect(used.get_by_role("link")).to_be_in_viewport()
            assert used.locator("select").evaluate("each => each.scrollWidth <= each.clientWidth")
        page.get_by_title("Filters").tap()
        names = [option.locator("select").get_attribute("aria-label") for option in options.all()]
        assert names == ["Match", "Sort", "Folder", "Tag", "Changed"], "each menu has a fixed place"
        for option in options.all():
            expect(option).to_be_in_viewport(ratio=1)
        assert violations(page, "#semantic-search") == []
        assert not is_scrolling_sideways(page)
        page.goto(f"{site.url}{SEARCH}?q=protect+plumbing+from+freezing&path=services/")
        page.get_by_label("Folder").select_option("garden/")
        expect(page).to_have_url(re.compile("path=garden"))


def test_eight_results_fit_on_a_screen_and_more_are_given_when_asked_for(page: Page, site: LiveWiki) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{site.url}{SEARCH}?q=how+do+I+restart+the+machine+after+a+power+cut")
    page.locator(".semantic-misses > summary").click()
    expect(page.get_by_role("complementary", name="Preview")).to_be_visible()
    boxes = [link.bounding_box() for link in page.locator("a.semantic-passage:visible").all()]
    ends = [box["y"] + box["height"] for box in boxes if box]
    assert len(ends) > 8
    assert ends[7] <= 900
    before = len(boxes)
    assert "Show an answer" not in page.content(), "nothing answers in this wiki, neither here nor in the palette"
    page.get_by_role("link", name="More results").click()
    expect(page).to_have_url(re.compile("more=1"))
    expect(page.get_by_role("link", name="More results")).to_have_count(0)
    page.locator(".semantic-misses > summary").click()
    assert len(passages(page)) > before


def test_a_passage_is_opened_in_place_as_the_wiki_shows_it(page: Page, site: LiveWiki) -> None:
    page.set_viewport_size({"width": 1100, "height": 900})
    page.goto(f"{site.url}{SEARCH}?q=which+services+run+on+which+machine")
    page.get_by_text("Show whole passage").first.click()
    expect(page.locator(".semantic-rendered table").first).to_be_visible()
    assert violations(page, ".semantic-rendered") == []
    page.goto(f"{site.url}{SEARCH}?q=backup")
    passage = page.locator(".semantic-passages > li", has_text="Testing").first
    passage.get_by_text("Show whole passage").click()
    expect(passage.get_by_text("Hide")).to_be_visible()
    expect(passage.locator(".semantic-rendered")).to_contain_text("fetches 200 random files")
    expect(passage.locator(".semantic-rendered")).not_to_contain_text("Retention")
    expect(passage.locator(".semantic-excerpt")).to_be_hidden()
    passage.get_by_text("Hide").click()
    expect(passage.locator(".semantic-excerpt")).to_be_visible()


def test_what_a_page_positions_stays_in_the_preview(page: Page, site: LiveWiki) -> None:
    page.goto(f"{site.url}{SEARCH}?q=ptarmigan+on+the+screen")
    covering = page.locator("#semantic-preview .covering")
    expect(covering).to_be_attached()
    pane, title = page.locator("#semantic-preview"), page.locator(".semantic-preview-title")
    under = "([x, y]) => document.elementFromPoint(x, y)?.closest('.covering') !== null"
    assert not page.evaluate(under, [5, 5]), "it would cover the wiki's own menu"
    at = title.bounding_box()
    assert at is not None
    assert not page.evaluate(under, [at["x"] + 20, at["y"] + at["height"] / 2]), "it would cover the preview's title"
    assert pane.locator("a[href='https://evil.example/']").get_attribute("rel") == "noopener"
    assert pane.locator("a.anchor").count() == 0
    page.set_viewport_size({"width": 1100, "height": 900})
    page.get_by_text("Show whole passage").first.click()
    expect(page.locator(".semantic-rendered .covering").first).to_be_attached()
    assert not page.evaluate(under, [5, 5])


def test_the_empty_page_has_searches_to_try_and_a_question_is_told_to_be_new_once(page: Page, site: LiveWiki) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/results?" in request.url else None)
    page.goto(site.url + SEARCH)
    examples, field = page.locator("#semantic-results a"), page.get_by_label("Question or words")
    expect(examples).to_have_count(3)
    expect(page.locator("select:enabled")).to_have_count(1)
    title = examples.last.inner_text()
    examples.last.click()
    expect(field).to_have_value(title)
    expect(page.locator(".semantic-page h2").first).to_have_text(title)
    field.fill("")
    field.press_sequentially("roman law", delay=10)
    field.press("Enter")
    page.locator("select[name=mode]").select_option("semantic")
    expect(page).to_have_url(re.compile("mode=semantic"))
    page.go_back()
    expect(page).not_to_have_url(re.compile("mode=semantic"))
    expect(page.locator("#semantic-results")).not_to_have_attribute("aria-busy", "true")
    assert [url for url in asked if "draft=" not in url and "law" in url] == [f"{site.url}{SEARCH}/results?q=roman+law"]
