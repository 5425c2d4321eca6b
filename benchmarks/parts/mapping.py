"""The map of the wiki: how long it takes to make one, and how often a browser shows ten thousand pages while they are moved."""

from __future__ import annotations

import random
import re
import resource
import time
from urllib.request import urlopen

import numpy as np
from jinja2 import Environment, PackageLoader
from playwright.sync_api import Page, Route

from benchmarks.support.options import LARGE_PAGES, Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_most, missing, say
from benchmarks.support.serving import FLASK, ServedWiki
from benchmarks.support.wikis import scratch
from otterwiki_semantic.core.records import MapPoint
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.daemon.wiki_map.projection import project
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.web.pages.wiki_map import picture_of
from tests.support.browser import CHROMIUM, NEEDS_CHROMIUM, opened, started_chromium
from tests.support.live_wiki import demo_pages, eventually, make_repository

_DIMENSION, _PAGES_OF_A_CLUSTER, _NOISE = 384, 50, 0.8
_FRAMES = 240
_SMOOTH_MS = 33
_PAN = """async frames => {
    const plot = document.getElementById("semantic-map-plot"), box = plot.getBoundingClientRect(), spent = [];
    const point = (type, x, y) => plot.dispatchEvent(new PointerEvent(
        type, {clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true, pointerType: "mouse"}));
    plot.setPointerCapture = () => {};
    point("pointerdown", 400, 300);
    for (let frame = 0, last = performance.now(); frame < frames; frame++) {
        point("pointermove", 400 + 120 * Math.sin(frame / 12), 300 + 90 * Math.sin(frame / 9));
        await new Promise(requestAnimationFrame);
        spent.push(performance.now() - last);
        last = performance.now();
    }
    point("pointerup", 400, 300);
    return spent;
}"""


def measure(_options: Options) -> list[Figure]:
    """Return the time and memory of making maps, and of drawing one."""
    figures = [figure for pages in (1_000, LARGE_PAGES) for figure in _made(pages)]
    return figures + _drawn()


def _made(pages: int) -> list[Figure]:
    """Return what a map of pages takes: their vectors are of clusters, as the pages of a wiki are."""
    say(f"a map of {pages:,} pages is made, and made again when one of them has changed")
    vectors, worker = _vectors(pages), WorkerProcess()
    titles = [f"Page about {number % 97}" for number in range(pages)]
    begin = time.perf_counter()
    places, _ = worker.call(600, project, vectors, np.full((pages, 2), np.nan), titles)
    afresh = time.perf_counter() - begin
    vectors[0] = vectors[1]
    begin = time.perf_counter()
    worker.call(600, project, vectors, places, titles)
    carried_on = time.perf_counter() - begin
    worker.close()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return [
        Figure(f"a first map of {pages:,} pages", afresh, "s"),
        Figure(f"the next one, of {pages:,} pages", carried_on, "s"),
        Figure(f"memory of the process that makes it, {pages:,} pages", peak, "MB", note="the largest so far"),
    ]


def _vectors(pages: int) -> Matrix:
    chance = np.random.default_rng(0)
    clusters = chance.normal(size=(max(5, pages // _PAGES_OF_A_CLUSTER), _DIMENSION))
    vectors = clusters[chance.integers(0, len(clusters), pages)] + _NOISE * chance.normal(size=(pages, _DIMENSION))
    found: Matrix = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return found


def _drawn() -> list[Figure]:
    name = f"between two frames of {LARGE_PAGES:,} pages that are moved"
    if CHROMIUM is None:
        return [missing(name, "ms", NEEDS_CHROMIUM)]
    say(f"{LARGE_PAGES:,} pages are drawn in Chromium")
    with scratch() as place, started_chromium() as browser:
        repository = make_repository(place / "repository", demo_pages())
        with ServedWiki(repository, place / "index", FLASK) as wiki, opened(browser, wiki) as page:
            picture = _picture()
            spent = _frames(page, wiki.url, picture)
    size = Figure(f"the picture of {LARGE_PAGES:,} pages", len(picture) / 1000, "KB")
    return [at_most(f"{name}, p50", p50(spent), "ms", _SMOOTH_MS), Figure(f"{name}, p95", p95(spent), "ms"), size]


def _frames(page: Page, site: str, picture: str) -> list[float]:
    """Return the milliseconds from each frame to the next while a map is dragged."""

    def answer(route: Route) -> None:
        reply = route.fetch()
        page_of_few = re.sub(r"(?s)<svg viewBox.*?</svg>", lambda _: picture, reply.text(), count=1)
        route.fulfill(response=reply, body=page_of_few)

    eventually(lambda: '"ready"' in urlopen(f"{site}/api/v1/semantic-search/map").read().decode(), why="there is a map")
    page.route("**/-/semantic-search/map", answer)
    page.goto(f"{site}/-/semantic-search/map")
    page.locator(".semantic-map-labels text").first.wait_for(state="attached")
    spent: list[float] = page.evaluate(_PAN, _FRAMES)
    return spent


def _picture() -> str:
    """Return the picture of the map as the wiki writes it, for the pages of `_points`."""
    points = _points()
    templates = Environment(loader=PackageLoader("otterwiki_semantic.web"), autoescape=True)
    template = templates.get_template("semantic_search/map_picture.html")
    return template.render(**picture_of(points, "folder"))


def _points() -> list[MapPoint]:
    chance = random.Random(1)
    centres = [(chance.random(), chance.random()) for _ in range(60)]
    points = []
    for number in range(LARGE_PAGES):
        cluster = min(int(chance.expovariate(1) * 12), len(centres) - 1)
        x, y = (min(1.0, max(0.0, chance.gauss(place, 0.045))) for place in centres[cluster])
        folder, name = f"folder {cluster % 14}", f"page {number}"
        path = f"{folder}/{name}"
        points.append(MapPoint(path, f"Page about {number}", name, x, y, folder, None, False, f"/{path}"))
    return points
