"""What the served wiki's processes keep in memory: the index's own, and what the plugin adds to each of the wiki's workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.support.corpus import path_of, questions
from benchmarks.support.options import Options
from benchmarks.support.report import Figure, at_most, say
from benchmarks.support.serving import ServedWiki, gunicorn, served
from benchmarks.support.wikis import built, copied, scratch

_SEARCHES = 200
_SMALL_MB, _LARGE_MB, _WORKER_MB = 250.0, 700.0, 30.0
_WORKERS = 4
_REQUESTS_A_WORKER = 50


@dataclass(frozen=True, slots=True)
class Memory:
    """A process's memory in MB (2^20 bytes): all it has, its share of what it has in common with others, and its own alone."""

    resident: float
    proportional: float
    private: float


def memory_of(pid: int) -> Memory:
    """Return a process's memory as Linux counts it."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    sizes = {name: int(rest.split()[0]) / 1024 for name, _, rest in (line.partition(":") for line in lines)}
    return Memory(sizes["Rss"], sizes["Pss"], sizes["Private_Clean"] + sizes["Private_Dirty"])


def measure(options: Options) -> list[Figure]:
    """Return the memory of the index's process after 200 searches, at each size, and what the plugin adds to a worker."""
    figures = [_owner(pages, _LARGE_MB if pages == options.large_pages else _SMALL_MB) for pages in options.sizes]
    return [*figures, _worker(options.small_pages)]


def _owner(pages: int, bound: float) -> Figure:
    with served(pages) as wiki, wiki.client() as client:
        chunks = client.status()["chunks"]
        say(f"memory of the index's process at {chunks:,} chunks")
        for question in questions(_SEARCHES, pages):
            client.search(question)
        taken = memory_of(wiki.owner())
    name = f"index's process, resident, {chunks:,} chunks"
    return at_most(name, taken.resident, "MB", bound, f"its share of shared pages counted: {taken.proportional:.0f} MB (PSS)")


def _worker(pages: int) -> Figure:
    """Compare the workers of two wikis that have answered as many page views, one of them as many searches, too."""
    say(f"memory of {_WORKERS} workers with and without the plugin")
    having, lacking = (_workers(pages, plugin=plugin) for plugin in (True, False))
    more = {
        name: mean(getattr(worker, name) for worker in having) - mean(getattr(worker, name) for worker in lacking)
        for name in ("private", "proportional", "resident")
    }
    private = mean(worker.private for worker in lacking)
    note = f"PSS {more['proportional']:+.1f}, RSS {more['resident']:+.1f} MB; without it {private:.1f} MB are a worker's own"
    return at_most("a further worker's own memory, more with the plugin", more["private"], "MB", _WORKER_MB, note)


def _workers(pages: int, *, plugin: bool) -> Sequence[Memory]:
    """Return the memory of each worker after each has answered many requests."""
    with scratch() as place:
        wiki = copied(built(pages), place)
        with ServedWiki(wiki.repository, wiki.data_dir, gunicorn(_WORKERS), plugin=plugin) as live:
            if plugin:
                live.wait_until_open()
            answered = _ask_each(live, pages)
            return [memory_of(worker) for worker in answered]


def _ask_each(live: ServedWiki, pages: int) -> Counter[int]:
    """View pages, and search where it can be done, until each worker has answered often; gives how often, by worker."""
    answered: Counter[int] = Counter()
    asked = questions(2_000, pages)
    for number, question in enumerate(asked):
        with live.client() as client:  # another connection may go to another worker
            answer = client.get(f"/{path_of(number % pages)}")
            assert answer.status == 200, answer.status
            answered[answer.worker] += 1
            if live.has_plugin:
                client.search(question)
        if len(answered) == _WORKERS and min(answered.values()) >= _REQUESTS_A_WORKER:
            return answered
    raise AssertionError(f"not every worker was asked: {answered}")
