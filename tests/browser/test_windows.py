"""Everything the plugin adds, in windows from a phone's to a wide screen's, in both looks, and with text twice as large.

It is accessible, respects reduced motion, and works under the Content-Security-Policy that the wiki needs.
Other modules test what a page does, in one look."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import WIKI_POLICY, is_scrolling_sideways, opened, settle, violations
from tests.support.live_wiki import LiveWiki, eventually

SEARCH = "/-/semantic-search"
_DOUBLE = "document.documentElement.style.fontSize = `${2 * parseFloat(getComputedStyle(document.documentElement).fontSize)}px`"
_MOVING = """[...document.querySelectorAll('[id^=semantic], [class*=semantic]')]
    .filter(each => getComputedStyle(each).transitionDuration.split(', ').some(time => parseFloat(time) > 0))
    .map(each => each.outerHTML.slice(0, 80))"""
_PAGES = {
    "a page": ("/services/automation", ".semantic-related"),
    "the empty search page": (SEARCH, "#semantic-search"),
    "results": (f"{SEARCH}?q=backup&path=procedures/", "#semantic-search"),
    "nothing": (f"{SEARCH}?q=medieval+roman+law", "#semantic-search"),
    "a mistake": (f"{SEARCH}?q=x&mode=odd", "#semantic-search"),
    "health": (f"{SEARCH}/health", ".semantic-health"),
    "the map": (f"{SEARCH}/map", "#column-main"),
    "a missing page": ("/services/automatons", ".semantic-likely"),
    "a new page": ("/-/create", ".semantic-links"),
    "the index": ("/-/admin/semantic-search", ".semantic-index"),
    "an inspection": ("/-/admin/semantic-search/page?path=services/automation", "#column-main"),
}


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


def fits(page: Page, width: int) -> None:
    """Check that nothing is cut off in a window of a width."""
    page.set_viewport_size({"width": width, "height": 900})
    eventually(lambda: page.evaluate("!document.getAnimations().length"), why="the wiki's sidebar has moved aside")
    eventually(lambda: not is_scrolling_sideways(page), why=f"the wiki's sidebar moves aside at {width}")
    assert cut_off(page) == [], width


@pytest.mark.parametrize("name", _PAGES)
def test_every_page_fits_into_the_window(chromium: Browser, demo: LiveWiki, name: str) -> None:
    address, ours = _PAGES[name]
    with opened(chromium, demo, is_member=True, policy=WIKI_POLICY) as page:  # which asks for reduced motion
        page.goto(demo.url + address)
        page.wait_for_load_state("networkidle")
        assert page.evaluate(_MOVING) == []
        for summary in page.locator(f"{ours} summary:visible").all():
            summary.click()
        for width in (1920, 1280, 768, 390):
            fits(page, width)
            assert page.locator(ours).count()
            if width in {1280, 390}:
                assert violations(page, ours) == [], width
        page.evaluate("halfmoon.toggleDarkMode()")
        assert violations(page, ours, only_colors=True) == [], "at night"
        if name in {"results", "nothing", "health"}:
            page.evaluate(_DOUBLE)
            for width in (390, 1280):
                fits(page, width)
        assert page.evaluate("window.blocked") == {"ours": [], "others": []}


def test_the_palette_fits_into_the_window(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        page.goto(demo.url)
        page.keyboard.press("Control+k")
        settle(page, "machine")
        option = page.locator("[data-part=passages] [role=option]").first
        expect(option).to_be_visible()
        assert page.evaluate(_MOVING) == []
        for width in (1920, 1280, 768, 390):
            page.set_viewport_size({"width": width, "height": 700})
            page.wait_for_function("width => innerWidth === width", arg=width)
            box = page.locator("#semantic-palette").bounding_box()
            assert box
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            assert box["y"] + box["height"] <= 700
            assert (box["width"] == width) == (width == 390)
            for _ in range(12 if width in {768, 390} else 0):
                page.keyboard.press("ArrowDown")
                chosen = page.locator("#semantic-palette [aria-selected]")
                expect(chosen).to_be_in_viewport(ratio=0.9)
        page.evaluate("halfmoon.toggleDarkMode()")
        option.hover()
        expect(option).to_have_css("color", "rgb(232, 232, 232)")  # the wiki's hovered links are blue
        page.evaluate(_DOUBLE)
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function("width => innerWidth === width", arg=width)
            assert cut_off(page, "#semantic-palette") == [], width
            box, dialog = option.bounding_box(), page.locator("#semantic-palette").bounding_box()
            assert box
            assert dialog
            assert dialog["x"] <= box["x"] < box["x"] + box["width"] <= dialog["x"] + dialog["width"], width
