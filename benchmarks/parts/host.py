"""What the plugin costs the wiki's own requests: two wikis side by side, one of them without it, asked in turns.

Noise is dealt with so: both wikis have the same pages, each request to one is followed by the same request to the other, chance
decides which is first, and what came before is over: no request meets the work that another one left, other than in the case
that is named after it. There are many samples, and each difference has the interval that holds it in 95 of 100 resamples of
the pairs: a target within that interval is neither met nor missed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from benchmarks.support.client import Client
from benchmarks.support.corpus import page, path_of
from benchmarks.support.options import Options
from benchmarks.support.percentiles import Percentile, difference, p50, p95
from benchmarks.support.report import Figure, at_most, say
from benchmarks.support.serving import FLASK, GUNICORN, ServedWiki, Server
from benchmarks.support.wikis import built, copied, scratch

_STARTS = 9
_VIEWS = 1_500
_SAVES = 300
_BUSY_ROUNDS = 20
_BUSY_SAVES = 12
_WARM_UP = 20
_MIDDLING = 7
"""The number of a page of middle length: it is viewed, and it is saved under another name, each time with another last line."""
_PAGE = "a-saved-page"


@dataclass(frozen=True, slots=True)
class Sides:
    """Seconds of the same requests, with the plugin and without it, pair by pair."""

    having: list[float]
    lacking: list[float]


def measure(options: Options) -> list[Figure]:
    """Return what start, page view and save cost more with the plugin than without it, under both servers."""
    figures: list[Figure] = []
    for server in (GUNICORN, FLASK):
        with scratch() as place:
            figures += _measure(_two_wikis(options.small_pages, server, place), server)
    return figures


def _two_wikis(pages: int, server: Server, place: Path) -> tuple[ServedWiki, ServedWiki]:
    """Return the same wiki twice, not yet served: with the plugin and its index, and without."""
    wiki = built(pages)
    having, lacking = copied(wiki, place / "having"), copied(wiki, place / "lacking")
    return (
        ServedWiki(having.repository, having.data_dir, server),
        ServedWiki(lacking.repository, lacking.data_dir, server, plugin=False),
    )


def _measure(wikis: tuple[ServedWiki, ServedWiki], server: Server) -> list[Figure]:
    say(f"{_STARTS} starts with and without the plugin, {server.name}")
    starts = _starts(wikis)
    with _clients(wikis) as clients:
        say(f"{_VIEWS} page views and {_SAVES + _BUSY_ROUNDS * _BUSY_SAVES} saves with and without it, {server.name}")
        views = _in_turns([_viewer(client) for client in clients], _VIEWS)
        saves = _in_turns([_saver(wiki, client) for wiki, client in zip(wikis, clients, strict=True)], _SAVES)
        busy = _busy_saves(wikis, clients)
    return [
        _figure("start", p50, starts, 100, server),
        *_figures("page view", views, 1, server),
        *_figures("save", saves, 3, server),
        *_figures("save while the index works on the last one", busy, 3, server),
    ]


def _starts(wikis: Sequence[ServedWiki]) -> Sides:
    """Start the wikis in turns; each time the index process of the start before has ended, and is started, too."""
    for wiki in wikis:
        with wiki:
            pass

    def seconds(wiki: ServedWiki) -> Iterator[float]:
        while True:
            with wiki:
                yield wiki.start_seconds

    return _in_turns([seconds(wiki).__next__ for wiki in wikis], _STARTS, warm_up=0)


@contextmanager
def _clients(wikis: Sequence[ServedWiki]) -> Iterator[list[Client]]:
    with ExitStack() as stack:
        clients = [stack.enter_context(stack.enter_context(wiki).client()) for wiki in wikis]
        wikis[0].wait_until_open()
        yield clients


def _in_turns(sides: Sequence[Callable[[], float]], pairs: int, warm_up: int = _WARM_UP) -> Sides:
    """Take a sample of each side in turns, in an order left to chance; each side gives seconds."""
    chance = random.Random(1)
    taken: list[list[float]] = [[], []]
    for _ in range(warm_up + pairs):
        for side in chance.sample((0, 1), 2):
            taken[side].append(sides[side]())
    return Sides(taken[0][warm_up:], taken[1][warm_up:])


def _viewer(client: Client) -> Callable[[], float]:
    """Return what views a page."""

    def view() -> float:
        answer = client.get(f"/{path_of(_MIDDLING)}")
        assert answer.status == 200, answer.status
        return answer.seconds

    return view


def _saver(wiki: ServedWiki, client: Client) -> Callable[[], float]:
    """Return what saves a page, and waits until the index has followed."""
    versions = count()

    def save() -> float:
        seconds = _save(client, next(versions))
        if wiki.has_plugin:
            wiki.wait_until_open()
        return seconds

    return save


def _save(client: Client, version: int) -> float:
    return client.save(_PAGE, f"{page(_MIDDLING)[1]}\nVersion {version}.\n").seconds


def _busy_saves(wikis: Sequence[ServedWiki], clients: Sequence[Client]) -> Sides:
    """Save again and again without pause, in one wiki and then in the other: the index works on a save during the next ones."""
    taken: list[list[float]] = [[], []]
    for round_number in range(_BUSY_ROUNDS):
        for side in (0, 1) if round_number % 2 else (1, 0):
            start = 1_000 + round_number * (_BUSY_SAVES + 1)
            seconds = [_save(clients[side], start + version) for version in range(_BUSY_SAVES + 1)]
            taken[side] += seconds[1:]  # before the first one the index is at rest
            wikis[0].wait_until_open()
    return Sides(*taken)


def _figures(what: str, sides: Sides, bound: float, server: Server) -> list[Figure]:
    """Return both percentiles of a request; the target is of the 95th."""
    return [_figure(what, p50, sides, None, server), _figure(what, p95, sides, bound, server)]


def _figure(what: str, percentile: Percentile, sides: Sides, bound: float | None, server: Server) -> Figure:
    having, lacking = ([1e3 * seconds for seconds in side] for side in (sides.having, sides.lacking))
    more = difference(percentile, having, lacking)
    name = f"{what} takes longer with the plugin, {percentile.__name__}, {server.name}"
    note = (
        f"{percentile(having):.2f} instead of {percentile(lacking):.2f} ms, {len(having)} pairs, "
        f"95 % interval {more.least:.2f} to {more.most:.2f} ms"
    )
    if bound is None:
        return Figure(name, more.value, "ms", note=note)
    if more.least <= bound < more.most:
        return replace(at_most(name, more.value, "ms", bound, f"{note}: too noisy to say"), met=None)
    return at_most(name, more.value, "ms", bound, note)
