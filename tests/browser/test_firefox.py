"""The plugin's pages in Firefox: scripts run without errors, and the keyboard alone is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.firefox import CONTROL, DOWN, ENTER, ESCAPE, Firefox, started_firefox
from tests.support.live_wiki import LiveWiki

SEARCH = "/-/semantic-search"
# What is selected when a key arrives, and after it: results that come later may change the selection.
NOTE_SELECTION = """[true, false].forEach((isBefore) => addEventListener("keydown", ({ key }) => {
  const { href } = document.querySelector("#semantic-palette [aria-selected]");
  sessionStorage[`${key}, ${isBefore ? "before" : "after"}`] = href;
}, isBefore))"""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    with started_firefox(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def firefox(started: Firefox) -> Iterator[Firefox]:
    started.resize(1280, 900)
    yield started
    assert started.faults == []


def test_the_palette_finds_and_opens_by_keys(firefox: Firefox, demo: LiveWiki) -> None:
    firefox.open(demo.url)
    firefox.press("k", holding=CONTROL)
    firefox.wait_for('document.activeElement.matches("#semantic-palette input")')
    firefox.press("what if the heating fails")
    firefox.wait_for("""document.querySelector('[data-part="passages"] [role=option]')""")
    firefox.ask(NOTE_SELECTION)
    firefox.press(DOWN)
    firefox.wait_for('"ArrowDown, after" in sessionStorage')
    assert firefox.ask('sessionStorage["ArrowDown, before"] !== sessionStorage["ArrowDown, after"]')
    for width, height in ((1280, 900), (390, 844)):
        firefox.resize(width, height)
        firefox.wait_for(f"window.innerWidth === {width}")
        assert not firefox.ask("document.documentElement.scrollWidth > window.innerWidth")
    firefox.press(ENTER)
    firefox.wait_for('location.pathname === new URL(sessionStorage["Enter, before"]).pathname')


def test_the_search_page_finds_chooses_and_previews(firefox: Firefox, demo: LiveWiki) -> None:
    firefox.open(demo.url + SEARCH)
    firefox.press("protect plumbing from freezing")
    firefox.wait_for('document.querySelector("#semantic-said").textContent')  # the results for the whole query are shown
    firefox.wait_for('document.querySelector("#semantic-preview:not([hidden]) h2")')
    firefox.press(DOWN)
    firefox.wait_for('document.querySelector(".semantic-chosen")')
    assert firefox.ask("document.activeElement.id") == "search-query"
    firefox.press(ESCAPE)
    firefox.wait_for('!document.querySelector(".semantic-chosen")')
    firefox.press([DOWN, ENTER])
    firefox.wait_for('location.pathname.endsWith("/services/automation")')


def test_the_map_is_drawn(firefox: Firefox, demo: LiveWiki) -> None:
    firefox.open(f"{demo.url}{SEARCH}/map")
    firefox.wait_for('document.querySelector(".semantic-map-labels text")')
