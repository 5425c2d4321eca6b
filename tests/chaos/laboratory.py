"""What the rounds of one seed share: the repository, stopped indexes to begin with, and what each must become."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from tests.chaos.contents import Contents, differences, read_contents
from tests.chaos.leftovers import facts
from tests.chaos.scenarios import SCENARIOS, Scenario
from tests.chaos.victim import DEADLINE_SECONDS, Orders, Passage, Recovery, read_report
from tests.chaos.wikis import Pages, Wiki, make_history, marks, move_head
from tests.support.fork_server import started

_KNOWN_MARKS, _GONE_MARKS = 4, 3
_FIRST_BUILD = SCENARIOS[0]

_CARRY_OUT = "import pickle, sys; from tests.chaos.victim import run; run(pickle.loads(bytes.fromhex(sys.argv[1])))"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What an index must be at a commit: its contents, and the passages that answer queries."""

    contents: Contents
    queries: tuple[str, ...]
    answers: list[list[Passage]]


class Laboratory:
    """Makes, each once and when it is needed, what rounds begin with and are judged by."""

    def __init__(
        self, place: Path, seed: int, only_at: str = "", scenarios: Sequence[Scenario] = SCENARIOS, size: int = 16
    ) -> None:
        self.place = place
        self.seed = seed
        self._only_at = only_at
        self.repository = place / "repository"
        self._locks: dict[Hashable, threading.Lock] = {}
        self._locking = threading.Lock()
        self._made: dict[Hashable, Any] = {}
        self._base = Wiki(seed, size).pages
        branches = {}
        for scenario in scenarios:
            wiki = Wiki(seed, size)
            wiki.random = Random(f"{scenario.name} {seed}")
            branches[scenario.name] = scenario.change(wiki)
        self._states = branches
        self._commits = make_history(self.repository, self._base, branches)

    def commits(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the commits that HEAD moves along, that of the index first."""
        return tuple(self._commits[scenario.name])

    def goal(self, scenario: Scenario) -> str:
        """Return the commit that HEAD is at when the index is restarted."""
        return self._commits[scenario.name][0 if scenario.back else -1]

    def begin(self, scenario: Scenario, place: Path, *, persists: bool) -> Orders:
        """Put a repository and an index into a directory as they are before the scenario's work; gives the orders for it."""
        shutil.copytree(self.repository / ".git", place / "repository" / ".git")
        data_dir = place / "index"
        if scenario.built:
            shutil.copytree(self._index(persists=persists), data_dir, symlinks=True)
            if scenario.spoil:
                scenario.spoil(data_dir)
        else:
            data_dir.mkdir()
        moves = self.commits(scenario)[1:]
        if not scenario.runs and moves:
            move_head(place / "repository", moves[-1])
        return Orders(
            repository=str(place / "repository"),
            data_dir=str(data_dir),
            report=str(place / "report.json"),
            moves=moves if scenario.runs else (),
            waits=scenario.runs,
            reindex=scenario.reindex,
            leaves=(data_dir / "current").read_text().strip() if scenario.is_outdated else None,
            persists=persists,
        )

    def locations(self, scenario: Scenario) -> dict[str, int]:
        """Return how often each location is reached when the scenario is left to end; only those that `only_at` is part of."""

        def count() -> dict[str, int]:
            place = self._new_place(f"{scenario.name} counted")
            orders = self.begin(scenario, place, persists=False)
            _, counts = run_victim(replace(orders, counts=True))
            chosen = {location: number for location, number in counts.items() if self._only_at in location}
            return chosen or counts

        return self._once(("locations", scenario.name), count)

    def expectation(self, scenario: Scenario) -> Expectation:
        """Return what an index built afresh from the scenario's last HEAD is."""
        return self._once(("expectation", scenario.name), lambda: self._build_afresh(scenario))

    @property
    def recipe(self) -> str:
        """What this version says its vectors are made by."""
        return self._once("recipe", lambda: facts(self._index(persists=False))["recipe"])

    def marks(self, scenario: Scenario) -> dict[str, set[str]]:
        """Return the marks that were ever in the scenario's wiki, each with the paths of all the pages it ever stood on."""
        found: dict[str, set[str]] = {}
        for pages in (self._base, *self._states[scenario.name]):
            for mark, paths in marks(pages).items():
                found.setdefault(mark, set()).update(paths)
        return found

    def _index(self, *, persists: bool) -> Path:
        """Return a stopped index of the first commit, to be copied."""
        if persists:
            self._once("index", lambda: self._build("persistent", self.goal(_FIRST_BUILD), persists=True))
            return self._place("persistent") / "index"
        self.expectation(_FIRST_BUILD)
        return self._place(_FIRST_BUILD.name) / "index"

    def _build(self, name: str, commit: str, **told: Any) -> Recovery:
        """Let a process build the index of a commit in a new place."""
        place = self._new_place(name)
        shutil.copytree(self.repository / ".git", place / "repository" / ".git")
        move_head(place / "repository", commit)
        (place / "index").mkdir()
        orders = Orders(str(place / "repository"), str(place / "index"), str(place / "report.json"), **told)
        return run_victim(orders)[0]

    def _build_afresh(self, scenario: Scenario) -> Expectation:
        states = [self._base, *self._states[scenario.name]]
        pages = states[0 if scenario.back else -1]
        queries = _queries(pages, states)
        recovery = self._build(scenario.name, self.goal(scenario), queries=queries)
        contents = read_contents(self._place(scenario.name) / "index")
        assert differences(contents, contents) == []
        _check_answers(recovery, queries, pages)
        return Expectation(contents, queries, recovery.answers)

    def _new_place(self, name: str) -> Path:
        self._place(name).mkdir()
        return self._place(name)

    def _place(self, name: str) -> Path:
        return self.place / name.replace(" ", "-")

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        with self._locking:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
            made: T = self._made[key]
            return made


def _queries(pages: Pages, states: list[Pages]) -> tuple[str, ...]:
    """Return a text as it stands, texts by their marks, and marks of texts that are no more."""
    here = marks(pages)
    gone = sorted({mark for state in states for mark in marks(state)} - here.keys())
    random = Random(len(here))
    known = random.sample(sorted(here), _KNOWN_MARKS)
    lines = [line for line in "\n".join(pages[name] for name in sorted(pages)).split("\n") if known[0] in line]
    asked = (*known, *random.sample(gone, min(_GONE_MARKS, len(gone))))
    return (lines[0][:500].replace("[[", "").replace("]]", ""), *(f'"{mark}"' for mark in asked))


def _check_answers(recovery: Recovery, queries: tuple[str, ...], pages: Pages) -> None:
    """See that the index built afresh finds each known text, and nothing for what is gone."""
    here = marks(pages)
    for query, passages in list(zip(queries, recovery.answers, strict=True))[1:]:
        mark = query.strip('"')
        assert {path for path, _ in passages} <= here.get(mark, set()), (query, passages)
        assert bool(passages) == (mark in here), (query, passages)
        assert all(mark in text.lower() for _, text in passages), (query, passages)


def run_victim(orders: Orders) -> tuple[Recovery, dict[str, int]]:
    """Let a process carry out orders to their end, and give its report; fails if it does not come that far."""
    status, said = end_of_victim(orders)
    assert status == 0, f"a process ended with {status} that was to live:\n{said}"
    return read_report(Path(orders.report))


def end_of_victim(orders: Orders) -> tuple[int, str]:
    """Let a process carry out orders until it ends; gives its status, the number of a signal below zero, and what it said."""
    command = [started("index"), "-c", _CARRY_OUT, pickle.dumps(orders).hex()]
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=3 * DEADLINE_SECONDS, check=False)
    return ended.returncode, ended.stderr
