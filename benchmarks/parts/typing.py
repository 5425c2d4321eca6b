"""How soon the search page shows what was found, after the last key: a person types questions in a real browser."""

from __future__ import annotations

from playwright.sync_api import Page

from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_most, missing, say
from benchmarks.support.serving import FLASK, GUNICORN, ServedWiki, Server
from benchmarks.support.wikis import scratch
from tests.support.browser import CHROMIUM, NEEDS_CHROMIUM, started_chromium
from tests.support.live_wiki import demo_pages, make_repository

_KEY_MS = 90
"""Between two keys: some 120 words a minute."""
_MOST_MS = 150
_QUESTIONS = (
    *(
        "recover an erased directory",
        "sprinkler schedule for vegetables",
        "protect plumbing from freezing",
        "who may use the wifi",
    ),
    *(
        "zigbee lamps do not answer",
        "restore the photos",
        "what to do in a power cut",
        "move the tomatoes outside",
        "battery of the laptop",
    ),
    *(
        "where is the backup kept",
        "add a new disk",
        "mail is not delivered",
        "music in the kitchen",
        "sharpen a plane",
        "guest password",
    ),
)
_IS_SHOWN = "question => window.shown !== null && new URLSearchParams(location.search).get('q') === question"
_WATCH = """() => {
    let typed = 0;
    const results = document.getElementById("semantic-results");
    document.getElementById("search-query").addEventListener("keydown", () => { typed = performance.now(); });
    new MutationObserver(() => {
        if (results.hasAttribute("aria-busy")) return;
        const since = typed;
        requestAnimationFrame(() => setTimeout(() => { window.shown = performance.now() - since; }));
    }).observe(results, {attributes: true, attributeFilter: ["aria-busy"]});
}"""


def measure(_options: Options) -> list[Figure]:
    """Return the time from the last key to the frame that shows its results, on the demo wiki, under both servers."""
    if CHROMIUM is None:
        return [missing("first result after the last key", "ms", NEEDS_CHROMIUM, f"≤ {_MOST_MS}")]
    return [figure for server in (GUNICORN, FLASK) for figure in _under(server)]


def _under(server: Server) -> list[Figure]:
    say(f"{len(_QUESTIONS)} questions are typed in Chromium, {server.name}")
    with scratch() as place, started_chromium() as browser:
        repository = make_repository(place / "repository", demo_pages())
        with ServedWiki(repository, place / "index", server) as wiki:
            page = browser.new_page()
            page.goto(f"{wiki.url}/-/semantic-search?q=warm")
            page.evaluate(_WATCH)
            waits = [_typed(page, question) for question in _QUESTIONS]
    return [
        at_most(f"last key to results, p50, {server.name}", p50(waits), "ms", _MOST_MS),
        at_most(f"last key to results, p95, {server.name}", p95(waits), "ms", _MOST_MS),
    ]


def _typed(page: Page, question: str) -> float:
    """Type a question and give the milliseconds from its last key to the frame that shows its results."""
    field = page.locator("#search-query")
    field.fill("")
    field.press_sequentially(question[:-1], delay=_KEY_MS)
    page.evaluate("window.shown = null")
    field.press(question[-1])
    page.wait_for_function(_IS_SHOWN, arg=question)
    return float(page.evaluate("window.shown"))
