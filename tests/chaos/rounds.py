"""One round: an index is killed at its work, perhaps again at its restart, and must then become what one built afresh is."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from tests.chaos import outside
from tests.chaos.contents import differences, read_contents
from tests.chaos.laboratory import Laboratory, end_of_victim
from tests.chaos.leftovers import facts, held_vectors, remains
from tests.chaos.points import draw_point
from tests.chaos.scenarios import SCENARIOS, Scenario
from tests.chaos.victim import Orders, Recovery, read_report
from tests.chaos.wikis import MARK, move_head

_KILLED = (-signal.SIGKILL, -signal.SIGALRM)
_KINDS = ("outside", "inside")
_DRAWS = 3
_FURTHER_KILLS = (0, 0, 0, 0, 1, 1, 2)
_RESTART_SECONDS = 2.0
_EARLY = 2
_LONGEST_SAID = 1_500


@dataclass(slots=True)
class Round:
    """What happened in a round: the kills, how long the restart took to be whole, and what is wrong after it.

    `stumbles` are errors that the status showed on the way; they pass, and are no faults.
    """

    number: int
    scenario: Scenario
    kind: str
    place: Path
    kills: list[str] = field(default_factory=list)
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    stumbles: list[str] = field(default_factory=list)


def run_round(laboratory: Laboratory, number: int, scenario: Scenario | None = None) -> Round:
    """Run a round; its number and the laboratory's seed decide all that is not left to the clock, the scenario as well."""
    scenario = scenario or SCENARIOS[number // len(_KINDS) % len(SCENARIOS)]
    result = Round(number, scenario, _KINDS[number % len(_KINDS)], laboratory.place / f"round-{number}")
    try:
        _Attempt(laboratory, result).run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding, and the other rounds go on
        result.faults.append(f"{type(error).__name__}: {error}")
    if not result.faults:
        shutil.rmtree(result.place)
    return result


class _Attempt:
    def __init__(self, laboratory: Laboratory, result: Round) -> None:
        self._laboratory = laboratory
        self._result = result
        self._scenario = result.scenario
        self._random = Random(f"round {laboratory.seed} {result.number}")
        self._expected = laboratory.expectation(result.scenario)

    def run(self) -> None:
        orders = self._kill_at_work()
        repository, data_dir = Path(orders.repository), Path(orders.data_dir)
        move_head(repository, self._laboratory.goal(self._scenario))
        restart = replace(orders, moves=(), waits=False, reindex=False, queries=self._expected.queries)
        for _ in range(self._random.choice(_FURTHER_KILLS)):
            self._kill(restart, _RESTART_SECONDS, most=_EARLY)
        killed = self._result.place / "killed"
        shutil.copytree(data_dir, killed, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        held = held_vectors(data_dir, self._laboratory.recipe)
        start = time.time()
        recovery = self._recover(restart)
        self._result.seconds = recovery.ready_at - start
        self._result.stumbles += recovery.stumbles
        if self._is_refilled(killed, data_dir):
            self._result.stumbles.append("ChromaDB was filled again")
        self._result.faults += self._faults(recovery, data_dir, held)

    def _kill_at_work(self) -> Orders:
        """Return the orders that were cut short; a point that is not reached is drawn anew."""
        for _ in range(_DRAWS):
            shutil.rmtree(self._result.place, ignore_errors=True)
            self._result.place.mkdir()
            orders = self._laboratory.begin(self._scenario, self._result.place, persists=self._random.random() < 0.5)
            self._kill(orders, self._scenario.seconds)
            if self._result.kills:
                break
        return orders

    def _kill(self, orders: Orders, seconds: float, most: int | None = None) -> None:
        """Let a process follow orders and kill it; notes how, unless it did not come to it."""
        if self._result.kind == "outside":
            delay = self._random.uniform(0, seconds)
            outside.kill_at_work(orders, delay)
            how = f"owner +{delay:.2f} s"
        else:
            point = draw_point(self._random, self._laboratory.locations(self._scenario), most)
            status, said = end_of_victim(replace(orders, point=point))
            assert status in (0, *_KILLED), f"a process ended with {status} before {point}: {said[-_LONGEST_SAID:]}"
            if not status:
                return
            how = str(point)
        self._result.kills.append(f"{how} [{remains(Path(orders.data_dir))}]")

    def _recover(self, orders: Orders) -> Recovery:
        if self._result.kind == "outside":
            return outside.recover(orders)
        status, said = end_of_victim(orders)
        assert status == 0, f"the restarted process ended with {status}: {said[-_LONGEST_SAID:]}"
        return read_report(Path(orders.report))[0]

    def _is_refilled(self, killed: Path, data_dir: Path) -> bool:
        """Whether the generation that was killed goes on serving, but with another collection."""
        before, after = facts(killed).get("chroma"), facts(data_dir).get("chroma")
        same = (killed / "current").exists() and (killed / "current").read_text() == (data_dir / "current").read_text()
        return same and before != after

    def _faults(self, recovery: Recovery, data_dir: Path, held: set[str]) -> Iterator[str]:
        yield from differences(read_contents(data_dir), self._expected.contents)
        for query, found, right in zip(self._expected.queries, recovery.answers, self._expected.answers, strict=True):
            if found != right:
                yield f"{query!r} finds {found} instead of {right}"
        missing = self._expected.contents.vectors.keys() - held
        if recovery.embedded > len(missing):
            yield f"{recovery.embedded} texts were embedded at the restart; only {len(missing)} had no vector"
        places = self._laboratory.marks(self._scenario)
        for path, text in recovery.strangers:
            if not all(path in places.get(mark, ()) for mark in MARK.findall(text)):
                yield f"a search on the way found on {path} what never stood there: {text!r}"
