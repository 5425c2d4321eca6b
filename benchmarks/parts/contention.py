"""Searches and a build at the same time: what they cost each other in a served wiki.

Two kinds of build. One is a reindex of the unchanged wiki, beside the index that serves: vectors are taken over, so that it is
short, and is begun again until there are enough samples. The other embeds everything: a commit from outside puts another text
on every page. Its speed is taken over whole builds, until every page is found, in turns with no client, with one that searches
without pause, with four that search a quarter of a second after each answer, and with four that search without pause.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from itertools import count, cycle
from pathlib import Path
from statistics import median

from benchmarks.support.client import Client
from benchmarks.support.corpus import questions, write_pages
from benchmarks.support.load import Load, LoadReport
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_most, say
from benchmarks.support.serving import GUNICORN, ServedWiki, served
from tests.support.live_wiki import git

_BOUND_MS = 60.0
_LOST_PERCENT = 20.0
_CLIENTS = 4
_PAUSE_SECONDS = 0.25
_QUESTIONS = 2_000
"""More than the index remembers: asked in a circle, none is known when its turn comes again."""
_REINDEX_SAMPLES = 400
_SAMPLING_SECONDS = 90.0
_LOOK_SECONDS = 0.25
_SEARCHES_A_LOOK = 10
_WARM_UP = 50
_WAKE_SECONDS = 0.01


class _Rush(Enum):
    """Who searches during a build."""

    NOBODY = 0
    ONE = 1
    PACED = 2
    RUSHED = 3


@dataclass(frozen=True, slots=True)
class Builds:
    """Chunks embedded per second of whole builds, and the seconds of the searches meanwhile."""

    speeds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    reports: list[LoadReport] = field(default_factory=list)


def measure(options: Options) -> list[Figure]:
    """Return the times of searches during both kinds of build, at each size, and what searches cost the build."""
    figures: list[Figure] = []
    for pages in options.sizes:
        with served(pages) as wiki:
            case = f"{wiki.status()['chunks']:,} chunks, {GUNICORN.name}"
            asked = cycle(questions(_QUESTIONS, pages))
            say(f"searches during builds at {case}")
            figures.append(_searches("a reindex of the unchanged wiki", _during_reindexes(wiki, asked), case))
            if pages == options.small_pages:
                figures += _mutual(wiki, pages, asked, options.rounds, case)
            else:
                figures.append(_searches("a build of every page", _during_some_of_a_build(wiki, pages, asked), case))
    return figures


def _searches(what: str, seconds: Sequence[float], case: str) -> Figure:
    times = [1e3 * each for each in seconds]
    note = f"p50 {p50(times):.1f} ms, longest {max(times):.0f} ms, {len(times)} distinct queries"
    return at_most(f"search during {what}, p95, {case}", p95(times), "ms", _BOUND_MS, note)


# One kind of build: beside the index that serves


def _during_reindexes(wiki: ServedWiki, asked: Iterator[str]) -> list[float]:
    """Return the seconds of searches during one reindex or several; a long one is left before it ends."""
    seconds: list[float] = []
    end = time.monotonic() + _SAMPLING_SECONDS
    with wiki.client() as client:
        _warm_up(client, asked)
        while len(seconds) < _REINDEX_SAMPLES and time.monotonic() < end:
            client.reindex()
            seconds += _ask_while(client, asked, lambda: _rebuilds(client) and time.monotonic() < end)
    return seconds


def _rebuilds(client: Client) -> bool:
    return bool(client.status()["rebuild"]["state"] == "running")


def _warm_up(client: Client, asked: Iterator[str]) -> None:
    for _ in range(_WARM_UP):
        client.search(next(asked))


def _ask_while(client: Client, asked: Iterator[str], goes_on: Callable[[], bool]) -> list[float]:
    """Return the seconds of one search after another; every few of them it is looked whether this still goes on."""
    seconds: list[float] = []
    while goes_on():
        seconds += [client.search(next(asked)).seconds for _ in range(_SEARCHES_A_LOOK)]
    return seconds


# The other kind: everything is embedded


def _mutual(wiki: ServedWiki, pages: int, asked: Iterator[str], rounds: int, case: str) -> list[Figure]:
    """Build with no client, one, and four that pause or do not, in turns."""
    versions = count(2)
    builds = {rush: Builds() for rush in _Rush}
    chance = random.Random(1)
    for _ in range(rounds):
        for rush in chance.sample(list(builds), len(builds)):
            _build(wiki, pages, next(versions), rush, asked, builds[rush])
    before = builds[_Rush.NOBODY].speeds
    return [
        _searches("a build of every page", builds[_Rush.ONE].seconds, case),
        Figure(f"build, chunks embedded, {case}", median(before), "/s", note=f"median of {rounds} builds"),
        Figure(f"build's speed lost to one client without pause, {case}", _lost_percent(before, builds[_Rush.ONE].speeds), "%"),
        _lost(before, builds[_Rush.PACED], f"{_CLIENTS} clients that pause for {_PAUSE_SECONDS} s", case),
        _lost(before, builds[_Rush.RUSHED], f"{_CLIENTS} clients that search without pause", case),
    ]


def _lost(before: Sequence[float], builds: Builds, to: str, case: str) -> Figure:
    times = [1e3 * seconds for report in builds.reports for seconds in report.seconds]
    rate, cores = median(report.rate for report in builds.reports), median(report.cores for report in builds.reports)
    note = (
        f"{median(builds.speeds):.1f} chunks/s; {rate:.0f} searches/s, p95 {p95(times):.0f} ms,"
        f" the clients themselves took {cores:.2f} cores"
    )
    return at_most(f"build's speed lost to {to}, {case}", _lost_percent(before, builds.speeds), "%", _LOST_PERCENT, note)


def _lost_percent(alone: Sequence[float], disturbed: Sequence[float]) -> float:
    """Return the median of what was lost in each round."""
    return 100 * (1 - median(speed / before for before, speed in zip(alone, disturbed, strict=True)))


def _build(wiki: ServedWiki, pages: int, version: int, rush: _Rush, asked: Iterator[str], builds: Builds) -> None:
    """Build the index of other pages while clients search, and note how fast it was."""
    rewrite(wiki.repository, pages, version)
    with ExitStack() as stack:
        watcher = stack.enter_context(wiki.client())
        _warm_up(watcher, asked)
        texts = watcher.status()["embedded_texts"]
        load = None
        if rush in {_Rush.PACED, _Rush.RUSHED}:
            pause = _PAUSE_SECONDS if rush is _Rush.PACED else 0.0
            load = stack.enter_context(Load(wiki.port, [next(asked) for _ in range(_QUESTIONS)], _CLIENTS, pause))
        start = time.perf_counter()
        _wake(watcher)
        if rush is _Rush.ONE:
            builds.seconds.extend(_ask_while(watcher, asked, lambda: _is_behind(watcher)))
        while _is_behind(watcher):
            time.sleep(_LOOK_SECONDS)
        seconds = time.perf_counter() - start
        builds.speeds.append((watcher.status()["embedded_texts"] - texts) / seconds)
    if load is not None:
        builds.reports.append(load.report)
    wiki.wait_until_open()


def _during_some_of_a_build(wiki: ServedWiki, pages: int, asked: Iterator[str]) -> list[float]:
    """Return the seconds of searches while a build goes on that is too long to wait for."""
    wiki.restart()  # it ends the reindex that may still go on
    wiki.wait_until_open()
    rewrite(wiki.repository, pages, 2)
    with wiki.client() as client:
        _warm_up(client, asked)
        _wake(client)
        end = time.monotonic() + _SAMPLING_SECONDS
        return _ask_while(client, asked, lambda: _is_behind(client) and time.monotonic() < end)


def rewrite(repository: Path, pages: int, version: int) -> None:
    """Put other pages, with other names and texts, in the place of all, as one commit of somebody else's."""
    git(repository, "rm", "-r", "-q", ".")
    write_pages(repository, pages, seed=version)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", f"version {version}")


def _wake(client: Client) -> None:
    """Let the index look at HEAD now, as the hook of a push would."""
    client.search("anything new", wait="true", wait_seconds=_WAKE_SECONDS)


def _is_behind(client: Client) -> bool:
    status = client.status()
    return bool(status["indexed_commit"] != status["head_commit"] or status["pending_pages"])
