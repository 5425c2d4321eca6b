"""How long a search takes over HTTP, on an index at rest: for one client, with filters, and for several clients at once.

And how long suggestions take, for every key that is typed.

Every question is a new one, so that no embedding is remembered, and the wiki is warm: the first questions are not counted.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from statistics import median
from time import sleep

from benchmarks.support.corpus import SELECTIVITY, questions, title_of
from benchmarks.support.load import Load, LoadReport
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_least, at_most, say
from benchmarks.support.serving import FLASK, GUNICORN, ServedWiki, Server, served

_WARM_UP = 50
_SEARCHES = 400
_CLIENTS = 4
_RUSH_SECONDS = 8.0
_RUSH_QUESTIONS = 2_000
"""More than the index remembers: asked in a circle, none is known when its turn comes again."""
_SMALL_BOUNDS, _LARGE_BOUNDS = (6.0, 15.0), (12.0, 30.0)
"""Milliseconds: the median, the 95th percentile."""
_TITLES, _SUGGESTION_MS = 50, 10.0


def measure(options: Options) -> list[Figure]:
    """Return the times of searches at each size, with tags of different selectivity, and the rate for four clients at once."""
    cases = [(pages, GUNICORN) for pages in options.sizes] + [(options.small_pages, FLASK)]
    return [figure for pages, server in cases for figure in _measure(pages, server, options)]


def _measure(pages: int, server: Server, options: Options) -> list[Figure]:
    is_large = pages == options.large_pages
    with served(pages, server) as wiki:
        case = f"{wiki.status()['chunks']:,} chunks, {server.name}"
        say(f"searches at {case}")
        asked = iter(questions(_WARM_UP + _SEARCHES * (2 + len(SELECTIVITY)), pages))
        figures = _times(_ask(wiki, asked), _LARGE_BOUNDS if is_large else _SMALL_BOUNDS, case, server)
        if server is GUNICORN:
            figures += _filtered(wiki, asked, case)
            figures += _typed(wiki, pages, case)
            figures.append(_rush(wiki, questions(_RUSH_QUESTIONS, pages, seed=2), options.rounds, case, is_large=is_large))
    return figures


def _ask(wiki: ServedWiki, asked: Iterator[str]) -> list[float]:
    """Return the milliseconds of one search after another, over one connection where the server keeps it open."""
    with wiki.client() as client:
        times = [1e3 * client.search(next(asked)).seconds for _ in range(_WARM_UP + _SEARCHES)]
    return times[_WARM_UP:]


def _times(times: Sequence[float], bounds: tuple[float, float], case: str, server: Server) -> list[Figure]:
    connections = "one connection" if server.keeps_connections else "a new connection for each"
    return [
        at_most(f"search, p50, {case}", p50(times), "ms", bounds[0], f"{len(times)} distinct queries, {connections}"),
        at_most(f"search, p95, {case}", p95(times), "ms", bounds[1], f"longest {max(times):.1f} ms"),
    ]


def _filtered(wiki: ServedWiki, asked: Iterator[str], case: str) -> list[Figure]:
    """Search with each tag and without one in turns, in an order left to chance."""
    chance = random.Random(1)
    times: dict[str, list[float]] = {tag: [] for tag in ("", *SELECTIVITY)}
    with wiki.client() as client:
        for _ in range(_SEARCHES):
            for tag in chance.sample(list(times), len(times)):
                times[tag].append(1e3 * client.search(next(asked), **({"tag": tag} if tag else {})).seconds)
    plain = times.pop("")
    return [
        at_most(
            f"search of the {SELECTIVITY[tag]:.0%} of pages with a tag, {percentile.__name__}, of one without a filter, {case}",
            percentile(filtered) / percentile(plain),
            "times",
            2,
            f"{percentile(filtered):.1f} and {percentile(plain):.1f} ms",
        )
        for tag, filtered in times.items()
        for percentile in (p50, p95)
    ]


def _typed(wiki: ServedWiki, pages: int, case: str) -> list[Figure]:
    """Ask for suggestions with every key of the titles of some pages, one title after another."""
    chance = random.Random(1)
    titles = [title_of(chance.randrange(pages)) for _ in range(_TITLES)]
    keys = [title[:end] for title in titles for end in range(1, len(title) + 1)]
    with wiki.client() as client:
        times = [1e3 * client.suggest(typed).seconds for typed in keys]
    note = f"every key of {_TITLES} titles, longest {max(times):.1f} ms"
    return [
        Figure(f"suggestions, p50, {case}", p50(times), "ms", note=f"{len(times):,} keys"),
        at_most(f"suggestions, p95, {case}", p95(times), "ms", _SUGGESTION_MS, note),
    ]


def _rush(wiki: ServedWiki, asked: Sequence[str], rounds: int, case: str, *, is_large: bool) -> Figure:
    """Let clients search without pause, each round over new connections."""
    reports = [_one_rush(wiki, asked[number:]) for number in range(rounds)]
    rate = median(report.rate for report in reports)
    times = [1e3 * seconds for report in reports for seconds in report.seconds]
    cores = median(report.cores for report in reports)
    note = f"p50 {p50(times):.1f} ms, p95 {p95(times):.1f} ms; the clients themselves took {cores:.2f} cores"
    name = f"searches by {_CLIENTS} clients at once, {case}"
    return Figure(name, rate, "/s", note=note) if is_large else at_least(name, rate, "/s", 150, note)


def _one_rush(wiki: ServedWiki, asked: Sequence[str]) -> LoadReport:
    with Load(wiki.port, asked, _CLIENTS) as load:
        sleep(_RUSH_SECONDS)
    return load.report
