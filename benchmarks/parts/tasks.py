"""Twelve tasks in the demo wiki, done in the palette and in the wiki's own search: how many keys and how much time they take.

In the palette, a person types letter by letter until what is wanted is among the options, moves to it and presses Enter. In
the wiki's own search, the person knows a word that stands on the page, which is the best case for it; clicks the page in the
results, and finds a paragraph with the browser's search for that word. A click counts as a key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from urllib.parse import urlsplit

from playwright.sync_api import Page

from benchmarks.support.options import Options
from benchmarks.support.report import Figure, missing, say
from benchmarks.support.serving import ServedWiki
from benchmarks.support.wikis import scratch
from tests.support.browser import CHROMIUM, NEEDS_CHROMIUM, started_chromium
from tests.support.live_wiki import demo_pages, make_repository

_KEY_MS = 90
_LOOK_MS = 250
"""How long somebody looks at the options before typing on, at the end of a word."""
_MOST_ARROWS = 9

_CHOSEN = """() => [...document.querySelectorAll("#semantic-palette [role=option]")]
    .filter(each => each.checkVisibility()).findIndex(each => each.matches("[aria-selected]"))"""
"""Which option Enter opens, from 0."""


@dataclass(frozen=True, slots=True)
class _Task:
    name: str
    typed: str
    """What is typed into the palette."""
    word: str
    """A word of the page that is searched for in the wiki's own search."""
    path: str
    says: str = ""
    """How the paragraph begins that is wanted; empty for a page."""


TASKS = (
    _Task("open the page on backups", "backups", "backups", "procedures/backup"),
    _Task("open the page on the 3D printer", "3d printer", "printer", "workshop/3d-printer"),
    _Task("open the page of the machine otter", "otter", "otter", "machines/otter"),
    _Task("find where the radio is too weak", "dead spots", "spots", "network/wireless", "The bathroom and the far end"),
    _Task("open the page on photographs, misspelled", "fotos", "photos", "services/photos"),
    _Task("find how long backups are kept", "how long are backups kept", "nightly", "procedures/backup", "nightly"),
    _Task("find how to get a file back", "undelete a file", "deleted", "procedures/backup", "You deleted a folder"),
    _Task("find what keeps pipes from freezing", "pipes freezing", "frost", "services/automation", "If frost is announced"),
    _Task("find the wifi of guests", "guest wifi password", "visitors", "network/wireless", "is printed on the card"),
    _Task("find what to do in a power cut", "power cut", "boiler", "procedures/power-cut", "Then turn off the boiler"),
    _Task("find how much electricity is used", "how much electricity do we use", "watts", "machines", "all idle"),
    _Task(
        "find what becomes of leavers' data",
        "someone leaves the house",
        "leaving",
        "procedures/new-person",
        "Nobody's data",
    ),
)


@dataclass(frozen=True, slots=True)
class _Effort:
    keys: int
    seconds: float


def measure(_options: Options) -> list[Figure]:
    """Return keys and seconds of each task, in the palette and in the wiki's own search."""
    if CHROMIUM is None:
        return [missing("keys a task", "", NEEDS_CHROMIUM)]
    with scratch() as place, started_chromium() as browser:
        repository = make_repository(place / "repository", demo_pages())
        with ServedWiki(repository, place / "index") as wiki:
            wiki.wait_until_indexed()
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            say(f"{len(TASKS)} tasks in the palette and in the wiki's own search")
            done = [(task, _in_palette(page, wiki.url, task), _in_wiki_search(page, wiki.url, task)) for task in TASKS]
    rows = [figure for task, ours, theirs in done for figure in _figures(task, ours, theirs)]
    both = [(ours, theirs) for _, ours, theirs in done if ours and theirs]
    return [
        *rows,
        Figure("tasks done in the palette", sum(ours is not None for _, ours, _ in done), "", f"of {len(TASKS)}"),
        Figure("tasks done in the wiki's search", sum(theirs is not None for *_, theirs in done), "", f"of {len(TASKS)}"),
        *_means("palette", [ours for ours, _ in both]),
        *_means("wiki's search", [theirs for _, theirs in both]),
    ]


def _figures(task: _Task, ours: _Effort | None, theirs: _Effort | None) -> list[Figure]:
    return [
        Figure(f"{task.name}: {where}, keys", effort.keys, "", note=f"{effort.seconds:.1f} s")
        if effort
        else missing(f"{task.name}: {where}, keys", "", "not found")
        for where, effort in (("palette", ours), ("wiki's search", theirs))
    ]


def _means(where: str, efforts: Sequence[_Effort]) -> list[Figure]:
    return [
        Figure(f"{where}: keys, mean of what both found", mean(each.keys for each in efforts), ""),
        Figure(f"{where}: time, mean of what both found", mean(each.seconds for each in efforts), "s"),
    ]


def _is_there(page: Page, task: _Task) -> bool:
    return page.url.partition("#")[0].casefold().endswith(f"/{task.path}")


def _in_palette(page: Page, url: str, task: _Task) -> _Effort | None:
    page.goto(url)
    start = time.perf_counter()
    page.keyboard.press("Control+k")
    keys = 1
    for number, letter in enumerate(task.typed, 1):
        page.keyboard.press("Space" if letter == " " else letter)
        is_word = number == len(task.typed) or task.typed[number] == " "
        page.wait_for_timeout(_KEY_MS + (_LOOK_MS if is_word else 0))
        keys += 1
        place = _place_of(page, task)
        if place is None or place > _MOST_ARROWS:
            continue
        away = place - max(0, page.evaluate(_CHOSEN))
        for _ in range(abs(away)):
            page.keyboard.press("ArrowDown" if away > 0 else "ArrowUp")
            page.wait_for_timeout(_KEY_MS)
        keys += abs(away)
        if _place_of(page, task, "[aria-selected]") == 0:  # else other options have come meanwhile
            page.keyboard.press("Enter")
            page.wait_for_url(lambda address: urlsplit(address).path == f"/{task.path}")
            return _Effort(keys + 1, time.perf_counter() - start)
    return None


def _place_of(page: Page, task: _Task, among: str = "") -> int | None:
    """Return which of the options is the page, or the passage with the paragraph, from 0."""
    options: list[tuple[str, str]] = page.evaluate(
        """among => [...document.querySelectorAll(`#semantic-palette [role=option]${among}`)]
        .filter(each => each.checkVisibility())
        .map(each => [each.href ? new URL(each.href).pathname + new URL(each.href).hash : "",
            each.innerText.replace(/\\s+/g, " ")])""",
        among,
    )
    return next((at for at, (path, text) in enumerate(options) if _is_wanted(task, path, text)), None)


def _is_wanted(task: _Task, address: str, text: str) -> bool:
    """Whether an option leads to the page itself, or to the passage with the paragraph."""
    path = address.partition("#")[0] if task.says else address
    return path == f"/{task.path}" and task.says in text


def _in_wiki_search(page: Page, url: str, task: _Task) -> _Effort | None:
    page.goto(f"{url}/-/search")
    field = page.locator('input[name="query"]').last
    start = time.perf_counter()
    field.press_sequentially(task.word, delay=_KEY_MS)
    field.press("Enter")
    page.wait_for_load_state()
    link = page.locator(f'.content-title a[href$="/{task.path}" i]').first
    if not link.count():
        return None
    link.click()
    page.wait_for_load_state()
    assert _is_there(page, task)
    keys = 1 + len(task.word) + 1 + 1
    if task.says:  # Ctrl+F, the word again, Enter for each place up to the paragraph
        text = page.locator("#column-main").inner_text().casefold()
        before = text[: text.find(task.says.casefold())].count(task.word)
        keys += 1 + len(task.word) + 1 + before
        page.wait_for_timeout(_KEY_MS * (2 + len(task.word) + before))
    return _Effort(keys, time.perf_counter() - start)
