"""Many rounds, two at a time, a line for each, and a table at the end."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import count
from pathlib import Path

from tests.chaos.laboratory import Laboratory
from tests.chaos.rounds import Round, run_round
from tests.chaos.scenarios import SCENARIOS

_ROUNDS_AT_A_TIME = 2


def run_rounds(laboratory: Laboratory, kills: int) -> Iterator[Round]:
    """Run rounds until there were so many kills, and give them as they end."""
    numbers = count()
    done = 0
    with ThreadPoolExecutor(_ROUNDS_AT_A_TIME) as pool:
        running: set[Future[Round]] = set()
        while done < kills or running:
            while done + len(running) < kills and len(running) < _ROUNDS_AT_A_TIME:
                running.add(pool.submit(run_round, laboratory, next(numbers)))
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                done += len(future.result().kills)
                yield future.result()


def line(result: Round, seed: int) -> str:
    """Return a round as a line; as several with all that is wrong, and the way to see it again, if it failed."""
    verdict = "FAILED" if result.faults else "ok"
    shown = f"{result.number:4} {result.scenario.name:14} {verdict:6} {result.seconds:5.1f} s  {', then '.join(result.kills)}"
    if result.stumbles:
        shown += f"  (on the way: {'; '.join(result.stumbles)})"
    if result.faults:
        again = f"again: python -m tests.chaos --seed {seed} --round {result.number}"
        shown = "\n       ".join((shown, *result.faults, f"kept: {result.place} (killed/ is the index as it was left)", again))
    return shown


def table(results: Sequence[Round]) -> str:
    """Return kills, rounds, failures and recovery times, for each scenario and in all."""
    rows = [f"{'scenario':16}{'kills':>7}{'rounds':>8}{'failures':>10}{'recovery p50':>15}{'max':>9}"]
    for name in (*(scenario.name for scenario in SCENARIOS), "all"):
        chosen = [result for result in results if name in {result.scenario.name, "all"}]
        times = [result.seconds for result in chosen if result.seconds]
        if chosen:
            middle, most = (statistics.median(times), max(times)) if times else (0.0, 0.0)
            kills, failures = sum(len(result.kills) for result in chosen), sum(bool(result.faults) for result in chosen)
            rows.append(f"{name:16}{kills:7}{len(chosen):8}{failures:10}{middle:13.1f} s{most:7.1f} s")
    return "\n".join(rows)


def prove_crash_safety(place: Path, seed: int, kills: int, only: int | None = None, only_at: str = "") -> bool:
    """Kill so many times, or run only one round; prints what happened and tells whether the index was right each time.

    With `only_at`, the kills from inside happen at locations that it is part of.
    """
    laboratory = Laboratory(place, seed, only_at)
    results: list[Round] = []
    done = 0
    for result in [run_round(laboratory, only)] if only is not None else run_rounds(laboratory, kills):
        results.append(result)
        done += len(result.kills)
        print(f"[{done:4}/{kills}] {line(result, seed)}", flush=True)
    print(f"\n{table(results)}\n", flush=True)
    return not any(result.faults for result in results)
