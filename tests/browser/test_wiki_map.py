"""The map of the wiki: drawn, used with mouse, touch and keyboard, on a phone, without scripts, and as a table."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import BEHAVIOURS, STRICT_POLICY, check_policy, opened, picture
from tests.support.live_wiki import LiveWiki, commit, eventually, make_repository
from tests.support.model_servers import ModelServer

MAP = "/-/semantic-search/map"


@pytest.fixture
def page(chromium: Browser, demo: LiveWiki) -> Iterator[Page]:
    with opened(chromium, demo) as lent:
        show(lent, demo)
        yield lent


def map_of(wiki: LiveWiki) -> dict[str, Any]:
    answer: dict[str, Any] = wiki.api("GET", "/semantic-search/map").json
    return answer


def show(page: Page, wiki: LiveWiki, query: str = "") -> None:
    page.goto(wiki.url + MAP + query)
    expect(page.locator(".semantic-map-labels text").first).to_be_attached()


def view(page: Page) -> tuple[float, ...]:
    """Return the part of the plane that is shown: left, top, width, height."""
    page.evaluate("new Promise(requestAnimationFrame)")
    return tuple(map(float, str(page.locator("#semantic-map-plot svg").get_attribute("viewBox")).split()))


def labels(page: Page) -> list[str]:
    return page.locator(".semantic-map-labels text").all_text_contents()


def found_labels(page: Page) -> list[str]:
    return page.locator(".semantic-map-labels text:not(.semantic-quiet)").all_text_contents()


def chosen(page: Page) -> str:
    """Return the title of the selected page."""
    return str(page.locator(".semantic-map-chosen").text_content())


def place_of(page: Page, title: str) -> tuple[float, float]:
    """Return where the point of a page is on the screen."""
    box = (
        page.locator("#semantic-map-plot a", has_text=title)
        .locator("path")
        .evaluate("dot => { const box = dot.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2] }")
    )
    return float(box[0]), float(box[1])


@pytest.mark.parametrize("look", BEHAVIOURS)
def test_every_page_is_on_the_map_and_in_the_table(chromium: Browser, demo: LiveWiki, look: str) -> None:
    points = map_of(demo)["points"]
    with opened(chromium, demo, look) as page:
        page.goto(f"{demo.url}/-/semantic-search")
        if look != "plain":
            page.locator("#navbar-dropdown-toggle-btn-1").click()
        page.get_by_role("link", name="Map of the wiki").click()
        titles = page.locator(".semantic-map-table tbody th")
        expect(titles).to_have_text([point["title"] for point in sorted(points, key=lambda point: point["path"])])
        links = page.locator("#semantic-map-plot a")
        expect(links).to_have_count(len(points))
        assert {link.get_attribute("href") for link in links.all()} == {point["url"] for point in points}
        assert len(
            set(page.locator("#semantic-map-plot a path").evaluate_all("all => all.map(each => each.outerHTML)"))
        ) == len(points)
        folders = {point["folder"] for point in points}
        expect(page.locator(".semantic-map-legend li:has(svg)")).to_have_count(len(folders))
        expect(page.locator(".semantic-map-legend")).to_contain_text("procedures 6")
        if look == "plain":
            expect(page.get_by_role("button", name="Zoom in")).to_be_hidden()
            check_categories(page, points)
            return
        expect(page.locator(".semantic-map-labels text").first).to_be_attached()
        assert overlapping(page) == []
        assert ambiguous(page) == []
        picture(page, "map")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        group = page.locator("g.semantic-map-1")
        expect(group).to_be_visible()
        every, first = page.locator(".semantic-map-legend").get_by_role("checkbox").all()[:2]
        first.uncheck()
        expect(group).to_be_hidden()
        expect(every).not_to_be_checked()
        every.check()
        expect(group).to_be_visible()
        expect(first).to_be_checked()
        name = page.locator(".semantic-map-legend li:has(svg) bdi").first
        expect(page.locator(".semantic-map-legend li:has(svg) label").first).to_have_attribute("title", "Show only this group")
        whole = view(page)
        name.click()
        expect(page.locator("#semantic-map-plot g[hidden]")).to_have_count(len(folders) - 1)
        expect(group.locator("a[tabindex='0']")).to_have_count(1)
        assert view(page) == whole, "the points keep their places"
        expect(page.locator("#semantic-map-plot g:has(a):visible")).to_have_count(1)
        page.get_by_role("button", name="Fit").click()
        page.wait_for_function(f"document.querySelector('#semantic-map-plot svg').viewBox.baseVal.width < {whole[2]}")
        name.click()
        expect(page.locator("#semantic-map-plot g[hidden]")).to_have_count(0)
        page.get_by_role("button", name="Fit").click()
        assert view(page) == whole
        page.set_viewport_size({"width": 700, "height": 800})
        page.wait_for_function("document.getElementById('semantic-map-plot').clientWidth < 700")
        page.evaluate("new Promise(requestAnimationFrame)")
        assert overlapping(page) == []
        in_two_lines = page.locator(".semantic-map-labels text:has(tspan + tspan)")
        for width in (390, 350, 310, 270):  # all may fit in one line, as pages do not always get the same places
            page.set_viewport_size({"width": width, "height": 844})
            page.wait_for_function("width => document.getElementById('semantic-map-plot').clientWidth <= width", arg=width)
            page.evaluate("new Promise(requestAnimationFrame)")
            assert ambiguous(page) == []
            if in_two_lines.count():
                break
        expect(in_two_lines.first).to_be_attached()
        assert [text for text in labels(page) if re.fullmatch(r"\S+…", text)] == []


def check_categories(page: Page, points: list[dict[str, Any]]) -> None:
    """Check that colours tell categories when they are chosen."""
    page.get_by_role("link", name="Category").click()
    groups = page.locator(".semantic-map-legend li")
    categories = {point["category"] or "no category" for point in points}
    expect(page.locator("[aria-label=Colours] [aria-current]")).to_have_text("Category")
    expect(groups).to_have_count(len(categories))
    names = [text.strip().rsplit(maxsplit=1)[0] for text in groups.all_inner_texts()]
    assert sorted(names) == sorted(categories)
    largest = page.locator("g.semantic-map-1 a").evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert set(largest) == {point["url"] for point in points if point["category"] == names[0]}
    drawn = page.locator("#semantic-map-plot g[class]:has(a)")
    assert len(set(drawn.evaluate_all("all => all.map(each => getComputedStyle(each).stroke)"))) == len(names)


def ambiguous(page: Page) -> list[str]:
    """Return the labels that are not close to their own point, or to which another point is about as near."""
    found: list[str] = page.evaluate("""() => {
        const points = [...document.querySelectorAll("#semantic-map-plot a")].map(link => {
            const box = link.lastElementChild.getBoundingClientRect();
            return [link.textContent.trim(), box.left + box.width / 2, box.top + box.height / 2];
        });
        return [...document.querySelectorAll(".semantic-map-labels text")].map(text => {
            const box = text.getBoundingClientRect();
            const beyond = (at, least, most) => Math.max(least - at, 0, at - most);
            const away = ([, x, y]) => Math.hypot(beyond(x, box.left, box.right), beyond(y, box.top, box.bottom));
            const [own, other] = points.sort((one, other) => away(one) - away(other));
            const isClear = away(own) < 14 && away(other) > away(own) + 6;
            return [text.textContent.replace("…", ""), isClear ? own[0] : ""];
        }).filter(([text, nearest]) => !nearest.startsWith(text)).map(([text]) => text);
    }""")
    return found


def overlapping(page: Page) -> list[str]:
    """Return the pairs of labels that overlap, and the labels that are outside of the picture or on a point."""
    found: list[str] = page.evaluate("""() => {
        const plot = document.getElementById("semantic-map-plot").getBoundingClientRect();
        const texts = [...document.querySelectorAll(".semantic-map-labels text")]
            .map(text => [text.textContent, text.getBoundingClientRect()]);
        const points = [...document.querySelectorAll("#semantic-map-plot a path")].map(path => path.getBoundingClientRect())
            .map(box => [box.left + box.width / 2, box.top + box.height / 2]);
        return texts.flatMap(([text, one], at) => [
            ...(points.some(([x, y]) => one.left < x && x < one.right && one.top < y && y < one.bottom) ? [text] : []),
            ...(one.left < plot.left || one.right > plot.right || one.top < plot.top || one.bottom > plot.bottom ? [text] : []),
            ...texts.slice(at + 1).filter(([, other]) => one.left + 1 < other.right && other.left + 1 < one.right
                && one.top + 1 < other.bottom && other.top + 1 < one.bottom).map(([other]) => `${text} / ${other}`)]);
    }""")
    return found


def test_pointing_at_a_page_tells_its_title_and_a_click_opens_it(page: Page, demo: LiveWiki) -> None:
    point = map_of(demo)["points"][0]
    left, top = place_of(page, point["title"])
    page.mouse.move(left + 9, top)
    assert chosen(page) == point["title"]
    page.mouse.move(2, 2)
    expect(page.locator(".semantic-map-chosen")).to_have_count(0)
    page.mouse.click(left + 9, top)  # beside the point
    expect(page).to_have_url(demo.url + point["url"])
    show(page, demo)
    with page.context.expect_page() as other:
        page.mouse.click(*place_of(page, point["title"]), button="middle")
    expect(other.value).to_have_url(demo.url + point["url"])


def test_a_touch_tells_the_title_and_the_next_one_opens_the_page(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo, "phone") as page:
        show(page, demo)
        point = map_of(demo)["points"][0]
        left, top = place_of(page, point["title"])
        page.touchscreen.tap(left, top)
        assert chosen(page) == point["title"]
        assert page.url.endswith(MAP)
        page.touchscreen.tap(left, top)
        expect(page).to_have_url(demo.url + point["url"])
        page.goto(f"{demo.url}{MAP}?q=backup")
        expect(page.locator(".semantic-map-labels text")).to_have_count(3)  # all that are found
        assert overlapping(page) == []


def test_the_map_is_enlarged_and_moved_with_a_mouse_and_two_fingers(page: Page, demo: LiveWiki) -> None:
    whole, title = view(page), map_of(demo)["points"][0]["title"]
    left, top = map(round, place_of(page, title))
    page.mouse.move(left, top)
    for _ in range(8):
        page.mouse.wheel(0, -240)
    page.wait_for_function("document.querySelector('#semantic-map-plot svg').viewBox.baseVal.width < 100")
    near = view(page)
    before = place_of(page, title)
    assert before == pytest.approx((left, top), abs=20), "what the pointer is on stays under it"
    page.mouse.down()
    page.mouse.move(left - 90, top + 60, steps=5)
    page.mouse.up()
    moved = view(page)
    assert (moved[2:], moved[0] > near[0], moved[1] < near[1]) == (near[2:], True, True)
    assert place_of(page, title) == pytest.approx((before[0] - 90, before[1] + 60), abs=1)
    assert page.url.endswith(MAP), "dragging opens nothing"
    page.get_by_role("button", name="Fit").click()
    assert view(page) == whole
    page.get_by_role("button", name="Zoom in").click()
    assert view(page)[2] == pytest.approx(whole[2] / 1.5)
    page.get_by_role("button", name="Zoom out").click()
    assert view(page) == whole
    page.locator("#semantic-map-plot").evaluate("""plot => {
        const box = plot.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
        plot.setPointerCapture = () => {};
        const finger = (type, pointerId, away) => plot.dispatchEvent(
            new PointerEvent(type, {pointerId, pointerType: "touch", clientX: x + away, clientY: y, bubbles: true}));
        finger("pointerdown", 1, -40);
        finger("pointerdown", 2, 40);
        for (let away = 40; away <= 160; away += 20) { finger("pointermove", 1, -away); finger("pointermove", 2, away); }
        finger("pointerup", 1, -160);
        finger("pointerup", 2, 160);
    }""")
    assert view(page)[2] == pytest.approx(whole[2] / 4, rel=0.01), "four times as far apart"


PLACING = """script => import("/-/semantic-search/static/map_labels.js").then(({ placeLabels }) => {
    const labels = document.querySelector(".semantic-map-labels"), size = 600;
    const view = { left: 0, right: size, top: 0, bottom: size, width: size, height: size };
    const projection = { view, scale: 1, pixel: ({ x, y }) => [x, y], place: ([x, y]) => ({ x, y }) };
    const state = { here: null, near: [], found: null, radius: 6, covered: [] };
    return eval(`(() => { ${script} })()`);
})"""


@pytest.fixture
def place_labels(page: Page) -> Callable[[str], Any]:
    return lambda script: page.evaluate(PLACING, script)


def test_zooming_in_takes_away_no_label(place_labels: Callable[[str], Any]) -> None:
    lost = place_labels("""
        const at = (number) => size * Math.abs((Math.sin(number) * 43758.5453) % 1);
        const pointOf = (_, n) => ({ x: at(13 * n), y: at(78 * n), title: `Page number ${n}`, side: 0 });
        const points = Array.from({ length: 200 }, pointOf);
        const lost = [];
        for (let scale = 1, before = []; scale < 8; scale *= 1.1) {
            const shift = (size / 2) * (1 - scale), pixel = ({ x, y }) => [x * scale + shift, y * scale + shift];
            const place = ([x, y]) => ({ x: (x - shift) / scale, y: (y - shift) / scale });
            placeLabels(labels, points, { view, scale, pixel, place }, state);
            const shown = [...labels.children].map(each => each.textContent);
            const hasRoom = point => pixel(point).every(at => at > 75 && at < size - 75); // else it may have to change sides
            const seen = points.filter(hasRoom).map(point => point.title);
            lost.push(...before.filter(title => seen.includes(title) && !shown.includes(title)));
            before = shown;
        }
        return lost;
    """)
    assert lost == []


def test_the_name_of_a_group_is_among_its_points_and_readable_in_their_colour(place_labels: Callable[[str], Any]) -> None:
    name, others, fill = place_labels("""
        const group = document.querySelector(".semantic-map-2"), other = document.querySelector(".semantic-map-1");
        const pointOf = (x, y, group) => ({ x, y, group, title: "Page" });
        const around = (x, y) => [[0, 0], [40, 0], [0, 40], [-40, 0], [0, -40]].map(([right, down]) => [x + right, y + down]);
        const members = around(450, 450).map(([x, y]) => pointOf(x, y, group));
        const points = [pointOf(20, 20, group), ...members, ...around(100, 300).map(([x, y]) => pointOf(x, y, other))];
        const names = [{ group, title: "Name" }];
        placeLabels(labels, points, projection, { ...state, names });
        const text = [...labels.children].find((each) => each.textContent === "Name"), part = text.firstElementChild;
        const at = (one) => Number(one.getAttribute("x") ?? text.getAttribute("x"));
        return [[at(part), Number(part.getAttribute("y"))], points.map(({ x, y }) => [x, y]), getComputedStyle(text).fill];
    """)
    assert math.dist(name, (450, 450)) < 60
    assert all(math.dist(name, point) > 6 for point in others)
    red, green, blue = map(float, re.findall(r"[\d.]+", fill.removeprefix("color(srgb"))[:3])
    light = [(each / 12.92) if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in (red, green, blue)]
    assert 1.05 / (0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] + 0.05) >= 4.5


def test_the_best_page_has_a_label_in_any_crowd(place_labels: Callable[[str], Any]) -> None:
    titles = place_labels("""
        const points = Array.from({ length: 25 }, (_, n) => ({ x: 300 + 8 * (n % 5), y: 300 + n, title: `Page ${n}` }));
        placeLabels(labels, points, projection, { ...state, found: new Set([points[12], ...points]) });
        return [...labels.children].map((each) => each.textContent);
    """)
    assert "Page 12" in titles


def test_the_keyboard_alone_is_enough(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo, policy=STRICT_POLICY) as page:
        show(page, demo)
        page.get_by_role("link", name="Category").click()
        check_keys(page, demo)


def check_keys(page: Page, demo: LiveWiki) -> None:
    """Search, select, zoom, move and open by keys."""
    page.locator("#semantic-map-plot").click(position={"x": 5, "y": 5})  # where no page is
    page.keyboard.press("ArrowDown")
    expect(page.locator(".semantic-map-chosen")).to_have_count(1)
    expect(page.locator("#semantic-map-keys")).to_contain_text("zoom")
    expect(page.locator("#semantic-map-keys")).to_be_visible()
    points = {point["title"]: point for point in map_of(demo)["points"]}
    page.keyboard.press("/")
    expect(page.locator("#search-query")).to_be_focused()
    for _ in range(2):
        page.keyboard.press("Tab")
    expect(page.locator("#semantic-map-plot")).to_have_css("outline-style", "solid")
    seen = [chosen(page)]
    for key in ("ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(chosen(page))
    assert points[seen[1]]["y"] >= points[seen[0]]["y"]
    assert points[seen[4]]["x"] <= points[seen[3]]["x"]
    assert len(set(seen)) > 1
    whole = view(page)
    for _ in range(3):
        page.keyboard.press("+")
    near = view(page)
    assert near[2] < whole[2]
    page.keyboard.press("Shift+ArrowRight")
    assert view(page)[0] > near[0]
    page.keyboard.press("0")
    assert view(page) == whole
    page.keyboard.press("Escape")
    expect(page.locator(".semantic-map-chosen")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    assert page.locator("#column-main .semantic [style]:not(#semantic-map-plot *)").count() == 0
    check_policy(page)
    title = chosen(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(demo.url + points[title]["url"])


def test_pages_that_are_found_light_up(page: Page, demo: LiveWiki) -> None:
    results = demo.search("wireless network", n=50, max_chunks_per_page=1)
    relevant = {result["path"] for result in results if result["relevant"]}
    titles = {point["title"] for point in map_of(demo)["points"] if point["path"] in relevant}
    assert 1 < len(titles) < 21
    before = labels(page)
    page.get_by_label("Question or words").press_sequentially("wireless network")
    expect(page.get_by_role("status")).to_have_text(f"{len(titles)} pages found.")
    expect(page).to_have_url(re.compile(r"\?q=wireless\+network$"))
    found = page.locator("#semantic-map-plot a.semantic-map-found")
    marked = found.locator("title")  # the count of an earlier query can be the same
    eventually(lambda: {title.split("\n")[0] for title in marked.all_text_contents()} == titles, why="pages are found")
    others = page.locator("#semantic-map-plot a:not(.semantic-map-found)")
    drawn = "link => ['strokeWidth', 'strokeOpacity'].map(name => parseFloat(getComputedStyle(link)[name]))"
    (size, opacity), (found_size, found_opacity) = (each.first.evaluate(drawn) for each in (others, found))
    assert 1.4 * size < found_size
    assert (opacity, found_opacity) == (0.35, 1)
    assert set(found_labels(page)) == titles
    assert set(page.locator(".semantic-map-labels text[font-weight='700']").all_text_contents()) == titles
    expect(page.locator(".semantic-map-legend label").first).to_have_text(re.compile(rf"Show all\s*{len(titles)} of 21"))
    quiet = page.locator(".semantic-map-legend .semantic-quiet")
    expect(quiet).to_have_count(page.locator(".semantic-map-legend label", has_text=re.compile(r"\b0$")).count())
    expect(quiet.first).to_be_visible()
    listed = page.get_by_role("navigation", name="Found and related pages").get_by_role("link")
    assert set(listed.all_text_contents()) == titles
    page.locator("#semantic-map-plot a[tabindex='0']").focus()
    title = chosen(page)
    path = next(point["path"] for point in map_of(demo)["points"] if point["title"] == title)
    related = [each["title"] for each in demo.api("GET", f"/related?path={path}&n=6").json["results"] if each["relevant"]]
    expect(listed).to_have_text([title, *related])
    assert str(page.locator(".semantic-map-lines").get_attribute("d")).count("L") == len(related) > 0
    reached = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp") * 6:
        page.keyboard.press(key)
        reached.add(chosen(page))
    assert len(reached & titles) > 1
    page.reload()
    expect(page.get_by_role("status")).to_have_text(f"{len(titles)} pages found.")
    page.get_by_role("link", name="Show as a list").click()
    expect(page).to_have_url(re.compile(r"/-/semantic-search\?q=wireless\+network$"))
    page.get_by_role("link", name="Show on the map").click()
    expect(page.get_by_role("status")).to_have_text(f"{len(titles)} pages found.")
    page.get_by_label("Question or words").fill("")
    expect(page).to_have_url(re.compile(f"{MAP}$"))
    expect(page.get_by_role("status")).to_be_empty()
    assert labels(page) == before


def test_nothing_found_and_a_wiki_that_is_gone_are_told(page: Page) -> None:
    field, status = page.get_by_label("Question or words"), page.get_by_role("status")
    field.fill("constitutional law of the roman republic")
    expect(status).to_have_text("Nothing in this wiki seems to be about this.")
    expect(page.get_by_role("link", name="Show as a list")).to_be_hidden()
    offer = page.get_by_role("link", name="Search for the exact words")
    expect(offer).to_be_visible()
    said = offer.bounding_box()
    plot = page.locator("#semantic-map-plot").bounding_box()
    assert said
    assert plot
    assert said["y"] + said["height"] <= plot["y"], "it covers no point"
    assert labels(page)
    page.route("**/api/v1/**", lambda route: route.abort())
    field.fill("zigbee")
    expect(status).to_contain_text("cannot be reached")
    page.unroute("**/api/v1/**")
    field.fill("zigbee stick")
    expect(status).to_contain_text("found.")


def test_the_map_is_waited_for_and_follows_the_wiki(chromium: Browser, held_model: ModelServer, tmp_path: Path) -> None:
    notes = {f"notes/{at}.md": f"# Note {at}\n\nOtter number {at} swims in the river.\n" for at in range(100)}
    pages = {**notes, "home.md": "# Home\n\nWelcome.\n"}
    repository = make_repository(tmp_path / "repository", pages)
    with (
        LiveWiki(
            repository, tmp_path / "index", SEMANTIC_SYNC_INTERVAL="1", SEMANTIC_PAGES="", **held_model.environment
        ) as live,
        opened(chromium, live) as page,
    ):
        assert live.get("/-/semantic-search/health").headers["Refresh"] == "5", "there is no report before the index"
        page.goto(live.url + MAP)
        expect(page.get_by_text("The map is being created.")).to_be_visible()
        expect(page.locator("#semantic-map-plot")).to_have_count(0)
        held_model.released.set()
        expect(page.locator("#semantic-map-plot a")).to_have_count(101)
        expect(page.locator("#column-main")).to_contain_text("part 1 of 2; 101 in all")
        expect(page.locator(".semantic-map-table tbody tr")).to_have_count(100)
        page.locator("#semantic-map-caption").click()
        page.get_by_role("link", name="Next").click()
        expect(page.locator(".semantic-map-table tbody tr")).to_have_count(1)
        page.get_by_role("link", name="Previous").click()
        expect(page.locator(".semantic-map-table tbody tr")).to_have_count(100)
        commit(repository, {"new.md": "# A newer page\n\nOtters play with stones.\n"})
        live.wait_until_indexed()
        page.reload()
        expect(page.locator("#semantic-map-plot a")).to_have_count(102)
        expect(page.locator("#column-main")).to_contain_text("1 newer page is placed between the nearest pages.")
        commit(repository, dict.fromkeys([*pages, "new.md"]))
        live.wait_until_indexed()
        page.reload()
        expect(page.get_by_text("The wiki has no pages yet.")).to_be_visible()
        expect(page.locator("#semantic-map-plot")).to_have_count(0)


def test_what_cannot_be_asked_is_told(demo: LiveWiki) -> None:
    reply = demo.get(MAP, page=0)
    assert reply.status == 422
    assert "Page is '0'" in html.unescape(reply.text)
