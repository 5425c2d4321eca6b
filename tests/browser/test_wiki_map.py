"""The map of the wiki as people use it: with mouse, fingers and keys, by day and night, on a phone, and as a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from otterwiki_semantic.core.records import MapState
from tests.support.browser import LOOKS, STRICT_POLICY, blocked_parts, enforce_policy, opened, picture, violations
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki, commit, eventually, make_repository

MAP, DATA = "/-/semantic-search/map", "**/api/v1/semantic-search/map"
TITLE = "<script>window.harmed = 1</script>"
HOSTILE = f"""\
---
title: "{TITLE}"
category: '"><img src=x onerror="window.harmed=1">'
---
The marmot digs in the alpine meadow and whistles.
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki, with a map."""
    place = tmp_path_factory.mktemp("map")
    with LiveWiki(copy_demo(tmp_path_factory, place), place / "index", SEMANTIC_MAP="true") as live:
        live.wait_until_indexed()
        eventually(lambda: map_of(live)["state"] == MapState.READY, why="there is a map")
        yield live


@pytest.fixture
def page(chromium: Browser, site: LiveWiki) -> Iterator[Page]:
    with opened(chromium, site) as lent:
        show(lent, site)
        yield lent


def map_of(wiki: LiveWiki) -> dict[str, Any]:
    answer: dict[str, Any] = wiki.api("GET", "/semantic-search/map").json
    return answer


def show(page: Page, wiki: LiveWiki, query: str = "") -> None:
    page.goto(wiki.url + MAP + query)
    expect(page.locator("#semantic-map-in-sight")).to_have_text(re.compile("pages visible"))


def in_sight(page: Page) -> int:
    page.evaluate("new Promise(requestAnimationFrame)")
    return int(page.locator("#semantic-map-in-sight").inner_text().split()[0].replace(",", ""))


def drawn(page: Page) -> str:
    """Return what the canvas shows, once it is drawn."""
    page.evaluate("new Promise(requestAnimationFrame)")
    return str(page.locator("canvas").evaluate("canvas => canvas.toDataURL()"))


def pixels_of(page: Page, colour: str) -> int:
    """Count the pixels of the canvas that have just this colour."""
    page.evaluate("new Promise(requestAnimationFrame)")
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return int(
        page.locator("canvas").evaluate(
            """(canvas, wanted) => {
                const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                let count = 0;
                for (let at = 0; at < data.length; at += 4) count += wanted.every((part, which) => data[at + which] === part);
                return count;
            }""",
            wanted,
        )
    )


def colour(page: Page, name: str) -> str:
    return str(
        page.locator("canvas").evaluate("(canvas, name) => getComputedStyle(canvas).getPropertyValue(name).trim()", name)
    )


def title_here(page: Page) -> str:
    """Return the title that is told of the point that is pointed at."""
    return page.locator("#semantic-map-tip strong").inner_text()


def place_of_first(page: Page) -> tuple[float, float, str]:
    """Return where a page's point is on the screen, and its title."""
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    title = title_here(page)
    left, top = page.locator("#semantic-map-tip").evaluate("tip => [parseFloat(tip.style.left), parseFloat(tip.style.top)]")
    page.locator("canvas").evaluate("canvas => canvas.blur()")
    expect(page.locator("#semantic-map-tip")).to_be_empty()
    box = page.locator("canvas").bounding_box()
    assert box
    return box["x"] + left, box["y"] + top, title


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_on_the_map_and_in_the_table(chromium: Browser, site: LiveWiki, look: str) -> None:
    points = map_of(site)["points"]
    with opened(chromium, site, look) as page:
        page.goto(site.url + ("/-/semantic-search" if look != "phone" else MAP))
        if look != "phone":  # where the sidebar lies over the page
            page.get_by_role("link", name="Map of the wiki").click()
        titles = page.locator("#semantic-map-part tbody th")
        expect(titles).to_have_text([point["title"] for point in sorted(points, key=lambda point: point["path"])])
        if look == "plain":
            expect(page.locator("canvas")).to_be_hidden()
            return
        expect(page.locator("#semantic-map-in-sight")).to_have_text(f"{len(points)} of {len(points)} pages visible")
        folders = {point["folder"] for point in points}
        expect(page.locator("#semantic-map-legend li")).to_have_count(len(folders))
        expect(page.locator("#semantic-map-legend")).to_contain_text("procedures 5")
        assert pixels_of(page, colour(page, "--semantic-map-1")) > 100
        picture(page, f"map-{look}")
        assert violations(page, "#column-main") == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_colours_tell_folders_or_categories(page: Page, site: LiveWiki) -> None:
    before = drawn(page)
    page.get_by_label("Category").check()
    categories = {point["category"] or "no category" for point in map_of(site)["points"]}
    names = [text.rsplit(maxsplit=1)[0] for text in page.locator("#semantic-map-legend li").all_inner_texts()]
    assert len(names) == len(categories)
    assert set(names) == categories
    assert drawn(page) != before


def test_many_groups_leave_the_small_ones_together(page: Page, site: LiveWiki) -> None:
    points = [
        {
            **map_of(site)["points"][0],
            "path": f"{folder}/{number}",
            "folder": f"folder {folder}",
            "x": folder / 20,
            "y": number / 20,
        }
        for folder in range(20)
        for number in range(20 - folder)
    ]
    page.route(DATA, lambda route: route.fulfill(json={"state": "ready", "points": points}))
    show(page, site)
    shown = page.locator("#semantic-map-legend li").all_inner_texts()
    assert shown == [*(f"folder {at} {20 - at}" for at in range(8)), f"others (12) {sum(20 - at for at in range(8, 20))}"]
    for number in range(1, 9):
        assert pixels_of(page, colour(page, f"--semantic-map-{number}"))


def test_pointing_at_a_page_tells_its_title_and_a_click_opens_it(page: Page, site: LiveWiki) -> None:
    left, top, title = place_of_first(page)
    page.mouse.move(left + 2, top + 2)
    assert title_here(page) == title
    page.locator("#semantic-map-tip").hover()
    assert title_here(page) == title, "the pointer may go to what is told"
    page.mouse.move(left, top)
    page.keyboard.press("Escape")
    expect(page.locator("#semantic-map-tip")).to_be_empty()
    page.mouse.move(left + 1, top)
    assert title_here(page) == title
    page.mouse.click(left + 1, top)
    (url,) = (point["url"] for point in map_of(site)["points"] if point["title"] == title)
    expect(page).to_have_url(site.url + url)


def test_a_touch_tells_the_title_and_the_next_one_opens_the_page(chromium: Browser, site: LiveWiki) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    show(page, site)
    left, top, title = place_of_first(page)
    page.touchscreen.tap(left, top)
    assert title_here(page) == title
    assert page.url.endswith(MAP)
    page.touchscreen.tap(left, top)
    (url,) = (point["url"] for point in map_of(site)["points"] if point["title"] == title)
    expect(page).to_have_url(site.url + url)
    context.close()


def test_the_map_is_enlarged_and_moved(page: Page) -> None:
    everything, whole = in_sight(page), drawn(page)
    left, top, title = place_of_first(page)
    page.mouse.move(left, top)
    for _ in range(8):
        page.mouse.wheel(0, -240)
    page.wait_for_function("parseInt(document.getElementById('semantic-map-in-sight').textContent) < 5")
    assert title_here(page) == title, "what the pointer is on stays under it"
    near = drawn(page)
    page.mouse.down()
    page.mouse.move(left - 90, top + 60, steps=5)
    page.mouse.up()
    assert drawn(page) != near
    assert page.url.endswith(MAP), "dragging opens nothing"
    page.get_by_role("button", name="Show all").click()
    page.mouse.move(2, 2)
    assert in_sight(page) == everything
    assert drawn(page) == whole
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    assert in_sight(page) < everything
    for _ in range(3):
        page.get_by_role("button", name="Zoom out").click()
    page.mouse.move(2, 2)
    assert drawn(page) == whole


def test_two_fingers_enlarge_the_map(page: Page) -> None:
    everything = in_sight(page)
    page.locator("canvas").evaluate("""canvas => {
        const box = canvas.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
        canvas.setPointerCapture = () => {};
        const finger = (type, pointerId, away) => canvas.dispatchEvent(
            new PointerEvent(type, {pointerId, pointerType: "touch", clientX: x + away, clientY: y, bubbles: true}));
        finger("pointerdown", 1, -40);
        finger("pointerdown", 2, 40);
        for (let away = 40; away <= 160; away += 20) { finger("pointermove", 1, -away); finger("pointermove", 2, away); }
        finger("pointerup", 1, -160);
        finger("pointerup", 2, 160);
    }""")
    assert in_sight(page) < everything


def test_the_keyboard_alone_is_enough(page: Page, site: LiveWiki) -> None:
    points = {point["title"]: point for point in map_of(site)["points"]}
    page.keyboard.press("/")
    expect(page.locator("#search-query")).to_be_focused()
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator("canvas")).to_be_focused()
    seen = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(title_here(page))
    assert points[seen[1]]["y"] > points[seen[0]]["y"]
    assert points[seen[3]]["x"] < points[seen[2]]["x"]
    everything = in_sight(page)
    for _ in range(5):
        page.keyboard.press("+")
    assert in_sight(page) < everything
    assert title_here(page) == seen[3]
    before = drawn(page)
    page.keyboard.press("Shift+ArrowRight")
    assert drawn(page) != before
    page.keyboard.press("0")
    assert in_sight(page) == everything
    page.keyboard.press("Escape")
    expect(page.locator("#semantic-map-tip")).to_be_empty()
    page.keyboard.press("ArrowRight")
    title = title_here(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(site.url + points[title]["url"])


def test_pages_that_are_found_light_up(page: Page, site: LiveWiki) -> None:
    results = site.search("wireless network", n=50, max_chunks_per_page=1)
    relevant = {result["path"] for result in results if result["relevant"]}
    titles = {point["title"] for point in map_of(site)["points"] if point["path"] in relevant}
    assert 1 < len(titles) < 21
    assert not any(path.startswith("procedures/") for path in relevant)
    before, first = drawn(page), colour(page, "--semantic-map-1")
    assert pixels_of(page, first), "of the procedures"
    page.get_by_label("Question or words").press_sequentially("wireless network")
    expect(page.get_by_role("status")).to_have_text(f"{len(titles)} pages found.")
    expect(page).to_have_url(re.compile(r"\?q=wireless\+network$"))
    assert not pixels_of(page, first), "what was not found is dim"
    assert pixels_of(page, colour(page, "--semantic-map-3")), "of the network's pages"
    page.locator("canvas").focus()
    reached = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp") * 6:
        page.keyboard.press(key)
        reached.add(title_here(page))
    assert reached <= titles
    assert len(reached) > 1
    page.reload()
    expect(page.get_by_role("status")).to_have_text(f"{len(titles)} pages found.")
    page.get_by_role("link", name="Show the passages").click()
    expect(page).to_have_url(re.compile(r"/-/semantic-search\?q=wireless\+network$"))
    page.get_by_role("link", name="Show on the map").click()
    expect(page.get_by_role("status")).to_have_text(f"{len(titles)} pages found.")
    page.get_by_label("Question or words").fill("")
    expect(page).to_have_url(re.compile(f"{MAP}$"))
    expect(page.get_by_role("status")).to_be_empty()
    assert drawn(page) == before


def test_nothing_found_and_a_wiki_that_is_gone_are_told(page: Page) -> None:
    field, status = page.get_by_label("Question or words"), page.get_by_role("status")
    field.fill("constitutional law of the roman republic")
    expect(status).to_have_text("Nothing relevant was found.")
    page.route("**/api/v1/**", lambda route: route.abort())
    field.fill("zigbee")
    expect(status).to_contain_text("cannot be reached")
    page.unroute("**/api/v1/**")
    field.fill("zigbee stick")
    expect(status).to_contain_text("found.")


def test_colours_follow_the_mode_while_the_page_is_open(page: Page) -> None:
    light = colour(page, "--semantic-map-ground")
    assert pixels_of(page, light) > 10_000
    page.evaluate("halfmoon.toggleDarkMode()")
    dark = colour(page, "--semantic-map-ground")
    assert dark != light
    assert pixels_of(page, dark) > 10_000
    assert pixels_of(page, colour(page, "--semantic-map-2")) > 100


def test_the_map_fills_its_place_when_the_window_changes(page: Page) -> None:
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function(
        "canvas = document.querySelector('canvas'), canvas.width < 700 && canvas.width === canvas.clientWidth"
    )
    assert in_sight(page) == 21


def test_a_sharp_screen_gets_all_its_pixels(chromium: Browser, site: LiveWiki) -> None:
    context = chromium.new_context(device_scale_factor=2)
    page = context.new_page()
    show(page, site)
    assert page.locator("canvas").evaluate("canvas => canvas.width / canvas.clientWidth") == pytest.approx(2, abs=0.01)
    context.close()


def test_nothing_of_it_needs_what_a_strict_policy_forbids(chromium: Browser, site: LiveWiki) -> None:
    with opened(chromium, site) as page:
        enforce_policy(page, STRICT_POLICY)
        show(page, site)
        page.get_by_label("Category").check()
        page.locator("canvas").focus()
        page.keyboard.press("ArrowRight")
        assert title_here(page)
        ours, others = blocked_parts(page)
        assert others, "the wiki's own frame has scripts in the page: the policy is in force"
        assert ours == []
        assert page.locator("#column-main .semantic [style]:not(#semantic-map-tip):not(#semantic-map-legend path)").count() == 0


def test_a_hostile_page_is_shown_as_text(chromium: Browser, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {"animals/marmot.md": HOSTILE, "b.md": "# B\n\nBees.\n"})
    with LiveWiki(repository, tmp_path / "index", SEMANTIC_MAP="true") as live, opened(chromium, live) as page:
        live.wait_until_indexed()
        eventually(lambda: map_of(live)["state"] == MapState.READY, why="there is a map")
        show(page, live, "?q=marmot+in+the+meadow")
        expect(page.get_by_role("status")).to_have_text("1 page found.")
        page.locator("canvas").focus()
        page.keyboard.press("ArrowRight")
        assert title_here(page) == TITLE
        expect(page.locator("#semantic-map-tip span")).to_contain_text('"><img src=x onerror="window.harmed=1">')
        page.get_by_label("Category").check()
        expect(page.locator("#semantic-map-legend")).to_contain_text('"><img src=x')
        expect(page.locator("tbody th").first).to_have_text(TITLE)
        assert page.evaluate("window.harmed") is None


def test_the_table_names_the_nearest_on_the_map(page: Page, site: LiveWiki) -> None:
    points = map_of(site)["points"]
    rows = page.locator("#semantic-map-part tbody tr")
    for point, row in zip(sorted(points, key=lambda point: point["path"]), rows.all(), strict=True):
        place = (point["x"], point["y"])
        away = [(math.dist(place, (other["x"], other["y"])), other["path"]) for other in points if other is not point]
        links = [link.get_attribute("href") for link in row.locator("a").all()]
        assert links == [point["url"], *(f"/{path}" for _, path in sorted(away)[:3])]
        cells = row.locator("td").all_inner_texts()
        assert cells[:2] == [point["folder"], point["category"] or ""]


def test_the_map_is_waited_for_and_follows_what_the_wiki_has(chromium: Browser, tmp_path: Path) -> None:
    notes = {f"notes/{at}.md": f"# Note {at}\n\nOtter number {at} swims in the river.\n" for at in range(100)}
    pages = {**notes, "home.md": "# Home\n\nWelcome.\n"}
    repository = make_repository(tmp_path / "repository", pages)
    with (
        LiveWiki(repository, tmp_path / "index", SEMANTIC_SYNC_INTERVAL="1", SEMANTIC_MAP="true") as live,
        opened(chromium, live) as page,
    ):
        page.goto(live.url + MAP)
        expect(page.get_by_text("The map is being made.")).to_be_visible()
        expect(page.locator("canvas")).to_be_hidden()
        expect(page.locator("#semantic-map-in-sight")).to_have_text("101 of 101 pages visible", timeout=30_000)
        expect(page.locator("#semantic-map-part")).to_contain_text("part 1 of 2; 101 in all")
        expect(page.locator("#semantic-map-part tbody tr")).to_have_count(100)
        page.get_by_role("link", name="Next").click()
        expect(page.locator("#semantic-map-part tbody tr")).to_have_count(1)
        page.get_by_role("link", name="Previous").click()
        expect(page.locator("#semantic-map-part tbody tr")).to_have_count(100)
        commit(repository, {"new.md": "# A newer page\n\nOtters play with stones.\n"})
        live.wait_until_indexed()
        page.reload()
        expect(page.locator("#semantic-map-in-sight")).to_have_text("102 of 102 pages visible")
        expect(page.locator("#semantic-map-part")).to_contain_text("1 newer page is placed between the nearest pages.")
        commit(repository, dict.fromkeys([*pages, "new.md"]))
        live.wait_until_indexed()
        page.reload()
        expect(page.get_by_text("The wiki has no pages yet.")).to_be_visible()
        expect(page.locator("canvas")).to_be_hidden()


def test_a_map_that_is_switched_off_is_told_and_not_offered(chromium: Browser, tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {"a.md": "# A\n\nAnts.\n", "home.md": "# Home\n"})
    with LiveWiki(repository, tmp_path / "index", SEMANTIC_MAP="false", READ_ACCESS="APPROVED") as live:
        live.log_in()
        live.wait_until_indexed()
        with opened(chromium, live, is_member=True) as page:
            page.goto(f"{live.url}/-/semantic-search?q=ants")
            expect(page.locator("a.semantic-passage").first).to_be_visible()
            expect(page.get_by_role("link", name=re.compile("map", re.IGNORECASE))).to_have_count(0)
            page.goto(live.url + MAP)
            expect(page.get_by_text("There is no map: the map is switched off; set SEMANTIC_MAP=true.")).to_be_visible()
            expect(page.get_by_role("link", name="See the index")).to_be_visible()
            expect(page.locator("canvas")).to_be_hidden()
            assert violations(page, "#column-main") == []
        for address in (MAP, f"{MAP}?part=table"):
            with opened(chromium, live) as page:
                page.goto(live.url + address)
                expect(page).to_have_url(re.compile("/-/login"))
                expect(page.get_by_text("switched off")).to_have_count(0)


def test_what_cannot_be_asked_is_told(page: Page, site: LiveWiki) -> None:
    reply = page.goto(f"{site.url}{MAP}?page=0")
    assert reply
    assert reply.status == 422
    expect(page.locator("#semantic-map-part .alert")).to_contain_text("page is '0'")
