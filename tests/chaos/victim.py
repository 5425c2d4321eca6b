"""A process that opens an index, does what it is ordered to, and may die on the way."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from otterwiki_semantic.core.errors import DaemonUnavailableError, IndexUnavailableError
from otterwiki_semantic.core.records import IndexStatus, RebuildState, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.interface import IndexService
from tests.chaos.points import Point, Watch
from tests.chaos.wikis import move_head
from tests.support.light_parts import GRAPH_AFTER, REAL, SITE
from tests.support.live_wiki import is_settled

DEADLINE_SECONDS = 90.0
RESULTS = 5
_PAUSE_SECONDS, _GROWTH = 0.005, 0.1
"""How long to pause between looks at an index: the first pause, and how much longer for each second waited."""

Passage = tuple[str, str]
"""The path of a page, and the text of a passage on it."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What a victim is to do in `data_dir`.

    Once it is open `reindex` asks for a new generation, and HEAD moves from one of `moves` to the next; if `waits`, the index
    is whole before that. It is not whole while the generation `leaves` serves. At the end it answers `queries`, closes, and
    writes to `report`. `persists` lets ChromaDB write its graph to disk after few vectors already. It dies at `point`; `counts`
    counts the points instead.
    """

    repository: str
    data_dir: str
    report: str
    moves: tuple[str, ...] = ()
    waits: bool = False
    reindex: bool = False
    leaves: str | None = None
    queries: tuple[str, ...] = ()
    persists: bool = False
    point: Point | None = None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Recovery:
    """How an index came to equal HEAD.

    `ready_at` is the Unix time. `embedded` is the number of texts it gave to its model, `answers` holds the passages for each
    query, `stumbles` the errors that its status showed on the way, `strangers` passages that were found on the way.
    """

    ready_at: float
    embedded: int
    answers: list[list[Passage]]
    stumbles: list[str]
    strangers: list[Passage]


def wait_until_whole(index: IndexService, queries: Sequence[str] = (), leaves: str | None = None) -> Recovery:
    """Wait until an index equals HEAD with nothing running, searching it meanwhile, and ask it what it found; else fail.

    `leaves` is the name of a generation that must not serve any more.
    """
    start = time.monotonic()
    stumbles: dict[str, None] = {}
    seen: dict[Passage, None] = {}
    status: IndexStatus | None = None
    while (waited := time.monotonic() - start) < DEADLINE_SECONDS:
        try:
            status = index.status()
            if status.last_error:
                stumbles[status.last_error] = None
            if _is_whole(status) and status.generation != leaves:
                ready_at = time.time()
                answers = search(index, queries)
                return Recovery(ready_at, status.embedded_texts, answers, list(stumbles), list(seen))
            for passages in search(index, queries[:1]):
                seen.update(dict.fromkeys(passages))
        except (IndexUnavailableError, DaemonUnavailableError) as error:
            stumbles[str(error)] = None
        time.sleep(_PAUSE_SECONDS + _GROWTH * waited)
    raise AssertionError(f"not whole within {DEADLINE_SECONDS:.0f} s: {status}; {list(stumbles)}")


def _is_whole(status: IndexStatus) -> bool:
    """Return whether an index says that it equals HEAD, and that nothing is left to do."""
    is_equal = status.index.commit == status.index.head and status.index.pending_pages == 0
    is_idle = status.last_sync is not None and status.rebuild.state is not RebuildState.RUNNING
    is_filled = status.chroma is not None and status.chroma.complete_commit == status.index.commit
    return is_settled(status) and is_equal and is_idle and is_filled


def search(index: IndexService, queries: Sequence[str]) -> list[list[Passage]]:
    """Return the passages found for each query."""
    answers = index.search(queries, SearchOptions(RESULTS, 1)) if queries else []
    return [[(hit.path, hit.snippet) for hit in answer.results] for answer in answers]


def run(orders: Orders) -> None:
    """Carry out orders in a process of their own."""
    if orders.persists:
        os.environ |= {REAL: "1", GRAPH_AFTER: "8"}
        sys.path.insert(0, str(SITE))  # for the process that writes to ChromaDB
    watch = Watch(orders.point) if orders.point or orders.counts else None
    if watch:
        watch.install()
    with watch.here() if watch else nullcontext():
        index = IndexEngine(Settings(Path(orders.repository), Path(orders.data_dir), sync_interval=3600, pages=()))
        index.start()
    work(index, orders, watch)
    recovery = wait_until_whole(index, orders.queries, orders.leaves)
    with watch.here() if watch else nullcontext():
        index.close()
    Path(orders.report).write_text(json.dumps({**asdict(recovery), "counts": watch.counts if watch else {}}))


def work(index: IndexService, orders: Orders, watch: Watch | None = None) -> None:
    """Let happen to an open index what the orders say."""
    if orders.waits:
        wait_until_whole(index)
    if orders.reindex:
        with watch.here() if watch else nullcontext():
            index.reindex()
    for commit in orders.moves:
        move_head(Path(orders.repository), commit)
        with watch.here() if watch else nullcontext():
            index.notify()


def read_report(report: Path) -> tuple[Recovery, dict[str, int]]:
    """Return what a victim reported: how the index was at the end, and how often each location was reached."""
    values = json.loads(report.read_text())
    counts: dict[str, int] = values.pop("counts")
    recovery = Recovery(**values)
    answers = [[(path, text) for path, text in passages] for passages in recovery.answers]
    return replace(recovery, answers=answers, strangers=[(path, text) for path, text in recovery.strangers]), counts
