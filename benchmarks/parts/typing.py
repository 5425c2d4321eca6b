"""How soon the palette and the search page show what was found, after the last key: a person types in a real browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

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


_PAGE_NAMES = sorted({PurePath(path).stem.replace("-", " ") for path in demo_pages()})[:15]
_NAMES_MS, _PASSAGES_MS = (30, 60), (90, 120)
"""What is promised of the palette: p50 and p95 of suggestions and of passages."""
_PAUSE_MS = 120
"""How long the palette waits after the last key before it asks for passages."""
_PATIENCE_MS = 1_000
"""Less than the pause after which the palette searches again and shows what is only near."""
_WATCH_PALETTE = """() => {
    let typed = 0;
    window.painted = {};
    document.querySelector("#semantic-palette input").addEventListener("keydown", () => {
        typed = performance.now();
        window.painted = {};
    }, true);
    for (const name of ["names", "passages"]) {
        new MutationObserver(() => {
            const since = typed;
            requestAnimationFrame(() => setTimeout(() => {
                if (since === typed) window.painted[name] ??= performance.now() - since;
            }));
        }).observe(document.querySelector(`[data-part=${name}]`), {childList: true});
    }
}"""


def measure(_options: Options) -> list[Figure]:
    """Return the times from the last key to the frame that shows what it found, in the palette and on the search page."""
    if CHROMIUM is None:
        return [missing("first result after the last key", "ms", NEEDS_CHROMIUM, f"≤ {_MOST_MS}")]
    figures = [figure for server in (GUNICORN, FLASK) for figure in _under(server)]
    with scratch() as place:
        repository = make_repository(place / "repository", demo_pages())
        with ServedWiki(repository, place / "index") as wiki:
            wiki.wait_until_indexed()
            return figures + _in_palette(wiki, "demo wiki")


def _in_palette(wiki: ServedWiki, name: str) -> list[Figure]:
    say(f"{len(_QUESTIONS)} questions are typed into the palette, {name}")
    with started_chromium() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(wiki.url)
        page.keyboard.press("Control+k")
        page.evaluate(_WATCH_PALETTE)
        _painted(page, "what if the heating fails")
        names = [_painted(page, page_name).get("names") for page_name in _PAGE_NAMES]
        passages = [_painted(page, question).get("passages") for question in _QUESTIONS]
    return [
        *_figures("last key to names", name, names, 0, _NAMES_MS),
        *_figures("end of the pause to passages", name, passages, _PAUSE_MS, _PASSAGES_MS),
    ]


def _figures(what: str, wiki: str, waits: Sequence[float | None], pause: int, bounds: tuple[int, int]) -> Iterator[Figure]:
    """Yield p50 and p95 of what was painted in time; the note tells how much was."""
    painted = [wait - pause for wait in waits if wait is not None]
    note = f"{len(painted)} of {len(waits)} were painted within {_PATIENCE_MS} ms"
    for label, percentile, bound in zip(("p50", "p95"), (p50, p95), bounds, strict=True):
        title = f"palette, {what}, {label}, {wiki}"
        yield at_most(title, percentile(painted), "ms", bound, note) if painted else missing(title, "ms", note, f"≤ {bound}")


def _painted(page: Page, question: str) -> dict[str, float]:
    """Type a question and return the milliseconds from its last key to the frames that show names and passages."""
    field = page.get_by_role("combobox", name="Search")
    field.fill("")
    field.press_sequentially(question, delay=_KEY_MS)
    page.wait_for_timeout(_PATIENCE_MS)
    return dict(page.evaluate("painted"))


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
