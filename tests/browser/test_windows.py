"""Everything the plugin adds, in windows from a phone's to a wide screen's, in both looks, and with text twice as large.

Other modules test what a page does, in one look."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import is_scrolling_sideways, opened, violations
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki, eventually

SEARCH = "/-/semantic-search"
_DOUBLE = "document.documentElement.style.fontSize = `${2 * parseFloat(getComputedStyle(document.documentElement).fontSize)}px`"
_PAGES = {
    "a page": ("/services/automation", ".semantic-related"),
    "the empty search page": (SEARCH, "#semantic-search"),
    "results": (f"{SEARCH}?q=backup", "#semantic-search"),
    "results with a filter": (f"{SEARCH}?q=zigbee&tag=zigbee", "#semantic-search"),
    "nothing": (f"{SEARCH}?q=medieval+roman+law", "#semantic-search"),
    "a mistake": (f"{SEARCH}?q=x&mode=odd", "#semantic-search"),
    "health": (f"{SEARCH}/health", ".semantic-health"),
    "the map": (f"{SEARCH}/map", "#column-main"),
    "a missing page": ("/services/automatons", ".semantic-likely"),
    "a new page": ("/-/create", ".semantic-links"),
    "the index": ("/-/admin/semantic-search", ".semantic-index"),
    "an inspection": ("/-/admin/semantic-search/page?path=services/automation", "#column-main"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("windows")
    repository = copy_demo(tmp_path_factory, place)
    with LiveWiki(repository, place / "index", WRITE_ACCESS="ANONYMOUS", SEMANTIC_SEARCH_LOG="true") as live:
        live.wait_until_indexed()
        live.log_in()
        live.search("constitutional law of rome")
        eventually(lambda: live.api("GET", "/semantic-search/insight").json["unanswered"], why="the question is noted")
        yield live


def cut_off(page: Page, ours: str = "[class*=semantic]") -> list[str]:
    """Return our links and buttons that stand, in part, outside of the window's width."""
    found: list[str] = page.evaluate(
        """ours => [...document.querySelectorAll(`${ours} :is(a, button, input, summary)`)]
        .filter(each => each.checkVisibility() && !each.closest('.sidebar, .semantic-chips, .semantic-scroll, .sr-only'))
        .map(each => [each, each.getBoundingClientRect()])
        .filter(([each, box]) => box.width && (box.left < -1 || box.right > innerWidth + 1))
        .map(([each]) => each.outerHTML.slice(0, 120))""",
        ours,
    )
    return found


@pytest.mark.parametrize("name", _PAGES)
def test_every_page_fits_into_the_window(chromium: Browser, site: LiveWiki, name: str) -> None:
    address, ours = _PAGES[name]
    with opened(chromium, site, is_member=True) as page:
        page.goto(site.url + address)
        page.wait_for_load_state("networkidle")
        for summary in page.locator(f"{ours} summary:visible").all():
            summary.click()
        for width in (1920, 1280, 768, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.locator(ours).count()
            eventually(lambda: not is_scrolling_sideways(page), why=f"the wiki's sidebar moves aside at {width}")
            assert cut_off(page) == [], width
            if width in {1280, 390}:
                assert violations(page, ours) == [], width
        page.evaluate("halfmoon.toggleDarkMode()")
        assert violations(page, ours, only_colors=True) == [], "at night"


def test_text_of_twice_the_size_is_neither_cut_nor_overlapping(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        for name in ("results", "nothing", "health"):
            page.goto(site.url + _PAGES[name][0])
            page.evaluate(_DOUBLE)
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 900})
                eventually(lambda: not is_scrolling_sideways(page), why=f"the wiki's sidebar moves aside at {width}")
                assert cut_off(page) == [], (name, width)
        page.goto(site.url)
        page.evaluate(_DOUBLE)
        page.keyboard.press("Control+k")
        page.keyboard.insert_text("backup")
        option = page.locator("[data-part=passages] [role=option]").first
        expect(option).to_be_visible()
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function("width => innerWidth === width", arg=width)
            assert cut_off(page, "#semantic-palette") == [], width
            box, dialog = option.bounding_box(), page.locator("#semantic-palette").bounding_box()
            assert box
            assert dialog
            assert dialog["x"] <= box["x"] < box["x"] + box["width"] <= dialog["x"] + dialog["width"], width


def test_the_palette_fits_into_the_window(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        page.goto(site.url)
        page.keyboard.press("Control+k")
        page.keyboard.insert_text("machine")
        expect(page.locator("[data-part=passages] [role=option]").first).to_be_visible()
        for width in (1920, 1280, 768, 390):
            page.set_viewport_size({"width": width, "height": 700})
            page.wait_for_function("width => innerWidth === width", arg=width)
            box = page.locator("#semantic-palette").bounding_box()
            assert box
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["y"] + box["height"] <= 700
            assert (box["width"] == width) == (width == 390)
            for _ in range(12):
                page.keyboard.press("ArrowDown")
                chosen = page.locator("#semantic-palette [aria-selected]")
                expect(chosen).to_be_in_viewport(ratio=0.9)


def test_nothing_moves_for_those_who_do_not_want_it(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:  # which asks for reduced motion
        for address in (f"{SEARCH}?q=backup", "/"):
            page.goto(site.url + address)
            page.keyboard.press("Control+k")
            moving = page.evaluate("""() => [...document.querySelectorAll('[id^=semantic], [class*=semantic]')]
                .filter(each => getComputedStyle(each).transitionDuration.split(', ').some(time => parseFloat(time) > 0))
                .map(each => each.outerHTML.slice(0, 80))""")
            assert moving == []
