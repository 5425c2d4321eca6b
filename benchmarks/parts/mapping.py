"""The map of the wiki: how long it takes to make one, and how long a browser takes to draw a frame of ten thousand pages."""

from __future__ import annotations

import json
import random
import resource
import time
from typing import Any

import numpy as np
from playwright.sync_api import Page, Route

from benchmarks.support.options import LARGE_PAGES, Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_most, missing, say
from benchmarks.support.serving import FLASK, ServedWiki
from benchmarks.support.wikis import scratch
from otterwiki_semantic.daemon.wiki_map.process import ProjectionProcess
from otterwiki_semantic.embedding.base import Matrix
from tests.support.browser import CHROMIUM, NEEDS_CHROMIUM, opened, started_chromium
from tests.support.live_wiki import demo_pages, eventually, make_repository

_DIMENSION, _PAGES_OF_A_CLUSTER, _NOISE = 384, 50, 0.8
_FRAMES = 240
_FRAME_MS = 1000 / 60
_PAN = """async frames => {
    const canvas = document.getElementById("semantic-map-canvas");
    const box = canvas.getBoundingClientRect();
    const point = (type, x, y) => canvas.dispatchEvent(new PointerEvent(
        type, {clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true, pointerType: "mouse"}));
    canvas.setPointerCapture = () => {};
    const real = window.requestAnimationFrame.bind(window);
    const spent = [];
    window.requestAnimationFrame = draw => real(now => {
        const begin = performance.now();
        draw(now);
        spent.push(performance.now() - begin);
    });
    point("pointerdown", 400, 300);
    for (let frame = 0; frame < frames; frame++) {
        point("pointermove", 400 + 120 * Math.sin(frame / 12), 300 + 90 * Math.sin(frame / 9));
        await new Promise(done => real(done));
    }
    point("pointerup", 400, 300);
    window.requestAnimationFrame = real;
    return spent;
}"""


def measure(_options: Options) -> list[Figure]:
    """Return the time and memory of making maps, and of drawing one."""
    figures = [figure for pages in (1_000, LARGE_PAGES) for figure in _made(pages)]
    return figures + _drawn()


def _made(pages: int) -> list[Figure]:
    """Return what a map of pages takes: their vectors are of clusters, as the pages of a wiki are."""
    say(f"a map of {pages:,} pages is made, and made again when one of them has changed")
    vectors, process = _vectors(pages), ProjectionProcess()
    begin = time.perf_counter()
    places = process.project(vectors, np.full((pages, 2), np.nan))
    afresh = time.perf_counter() - begin
    vectors[0] = vectors[1]
    begin = time.perf_counter()
    process.project(vectors, places)
    carried_on = time.perf_counter() - begin
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
    name = f"drawing {LARGE_PAGES:,} pages while they are moved"
    if CHROMIUM is None:
        return [missing(name, "ms", NEEDS_CHROMIUM)]
    say(f"{LARGE_PAGES:,} pages are drawn in Chromium")
    with scratch() as place, started_chromium() as browser:
        repository = make_repository(place / "repository", demo_pages())
        with ServedWiki(repository, place / "index", FLASK) as wiki, opened(browser, wiki) as page:
            spent = _frames(page, wiki.url)
    return [at_most(f"{name}, p50", p50(spent), "ms", round(_FRAME_MS, 1)), Figure(f"{name}, p95", p95(spent), "ms")]


def _frames(page: Page, site: str) -> list[float]:
    """Return the milliseconds that the map's script took for each frame."""
    body = json.dumps(_large_map())
    page.route("**/api/v1/semantic-search/map", lambda route: _answer(route, body))
    page.goto(f"{site}/-/semantic-search/map")
    eventually(page.locator("#semantic-map-canvas").is_visible, why="the map is drawn")
    spent: list[float] = page.evaluate(_PAN, _FRAMES)
    return spent


def _answer(route: Route, body: str) -> None:
    route.fulfill(body=body, content_type="application/json")


def _large_map() -> dict[str, Any]:
    chance = random.Random(1)
    centres = [(chance.random(), chance.random()) for _ in range(60)]
    points = []
    for number in range(LARGE_PAGES):
        cluster = min(int(chance.expovariate(1) * 12), len(centres) - 1)
        x, y = (min(1.0, max(0.0, chance.gauss(place, 0.045))) for place in centres[cluster])
        folder = f"folder {cluster % 14}"
        path = f"{folder}/page {number}"
        labels = {"path": path, "title": f"Page about {number}", "name": f"page {number}", "url": f"/{path}"}
        points.append({**labels, "x": x, "y": y, "folder": folder, "category": None, "is_new": False})
    return {"state": "ready", "made": "2026-01-01T00:00:00+00:00", "total": LARGE_PAGES, "points": points, "index": {}}
