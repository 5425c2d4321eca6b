"""What readers notice, on one screen: searches as people type them, suggestions, saves, memory and starts.

With `make bench BASE=COMMIT` an earlier state of the project is served beside this one, with an index of its own, and every
figure says the ratio. The two take turns of about a second, so that a machine that becomes slower does so for both.
Queries are questions about the wiki; a tenth has a typing error, and a tenth words of another language.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.parts.memory import memory_of
from benchmarks.support.client import Timed
from benchmarks.support.corpus import questions, title_of
from benchmarks.support.load import Load
from benchmarks.support.options import ROOT, Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_least, at_most, say, shown
from benchmarks.support.serving import ServedWiki
from benchmarks.support.wikis import KEPT, generated

_SEARCHES, _WARM_UP = 300, 30
_CLIENTS, _RUSH_TURNS, _RUSH_SECONDS, _RUSH_QUESTIONS = 4, 8, 1.0, 2_000
_SAVES_TURNS, _SAVES, _SAVES_PAUSE = 6, 2, 1.0
_TYPED = 30
_TURN = 50
"""Requests of one state before it is the other's turn."""
_FOREIGN = ("wie kann ich", "où trouve-t-on", "cómo se cambia", "hvor finder jeg", "jak ustawić", "come si fa")
_TARGETS = {
    "search, p50": ("ms", 4.5),
    "search, p95": ("ms", 7.0),
    "search while pages are saved, p95": ("ms", 14.0),
    "search as drafts grow, p95": ("ms", 7.0),
    "suggestions, p95": ("ms", 8.0),
    "searches by 4 clients": ("/s", 220.0),
    "saved page found, p50": ("ms", 150.0),
    "first search after a start": ("ms", 1_500.0),
    "memory of the index's process": ("MB", 200.0),
}
"""The unit of each figure, and what is promised."""

Times = dict[str, list[float]]


def measure(options: Options) -> list[Figure]:
    """Return the figures, each the median of the rounds, beside those of the commit to compare with."""
    roots = {"": ROOT} | ({options.base: _checkout(options.base)} if options.base else {})
    found: dict[str, Times] = {name: defaultdict(list) for name in roots}
    for number in range(options.rounds):
        say(f"round {number + 1} of {options.rounds}")
        names = list(roots)[:: 1 if number % 2 else -1]
        for _turn in zip(*(_round(roots[name], options.small_pages, number, found[name]) for name in names), strict=True):
            pass
    return [_figure(name, found, options.base) for name in _TARGETS]


def _figure(name: str, found: dict[str, Times], base: str | None) -> Figure:
    unit, target = _TARGETS[name]
    value = median(found[""][name])
    note = f"{min(found[''][name]):.1f} to {max(found[''][name]):.1f}"
    if base:
        before = median(found[base][name])
        note += f"; {base}: {shown(before)} {unit}, ratio {value / before:.2f}"
    return (at_least if unit == "/s" else at_most)(name, value, unit, target, note)


def _checkout(commit: str) -> Path:
    """Return a checkout of a commit of this repository."""
    git = ("git", "-C", str(ROOT))
    digest = subprocess.run(
        [*git, "rev-parse", f"{commit}^{{commit}}"], check=True, capture_output=True, text=True
    ).stdout.strip()
    place = KEPT / f"base-{digest[:12]}"
    if not place.exists():
        subprocess.run([*git, "worktree", "add", "--quiet", "--detach", str(place), digest], check=True)
    return place


def _round(root: Path, pages: int, number: int, found: Times) -> Iterator[None]:
    """Serve the wiki with the code below a directory, add what is measured, and yield after each turn."""
    data_dir = KEPT / f"promises-{root.name if root != ROOT else 'now'}" / f"wiki-{pages}"
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    chance = random.Random(number)
    asked = _typed(chance, questions(_SEARCHES * 3 + _WARM_UP + _RUSH_QUESTIONS, pages, seed=number + 1))
    plain, busy, drafts, rushed = (asked[at:] for at in (0, _SEARCHES + _WARM_UP, 2 * _SEARCHES + _WARM_UP, 3 * _SEARCHES))
    with ServedWiki(generated(pages), data_dir, root=root) as wiki:
        wiki.wait_until_open()
    yield
    with ServedWiki(generated(pages), data_dir, root=root) as wiki, wiki.client() as client:
        found["first search after a start"].append(1e3 * (wiki.start_seconds + client.search(asked[-1]).seconds))
        wiki.wait_until_open()
        yield
        times = (yield from _in_turns(client.search, plain[: _WARM_UP + _SEARCHES]))[_WARM_UP:]
        found["search, p50"].append(p50(times))
        found["search, p95"].append(p95(times))
        letters = [query[:end] for query in drafts[:_TYPED] for end in range(3, len(query), 2)]
        drafted = yield from _in_turns(partial(client.search, draft="true"), letters)
        found["search as drafts grow, p95"].append(p95(drafted))
        titles = [title_of(chance.randrange(pages)) for _ in range(_TYPED)]
        keys = [title[:end] for title in (*titles, *_misspelled(chance, titles)) for end in range(1, len(title) + 1)]
        found["suggestions, p95"].append(p95((yield from _in_turns(client.suggest, keys))))
        reports = []
        for turn in range(_RUSH_TURNS):
            with Load(wiki.port, rushed[turn * _RUSH_QUESTIONS // _RUSH_TURNS : _RUSH_QUESTIONS], _CLIENTS) as load:
                time.sleep(_RUSH_SECONDS)
            reports.append(load.report)
            yield
        answers = sum(len(report.seconds) for report in reports)
        found["searches by 4 clients"].append(answers / sum(report.elapsed for report in reports))
        saves: list[float] = []
        searches: list[float] = []
        for turn in range(_SAVES_TURNS):
            _search_while_saving(wiki, busy[turn * len(busy) // _SAVES_TURNS :], f"zebu{number}x{turn}", searches, saves)
            yield
        found["search while pages are saved, p95"].append(p95(searches))
        found["saved page found, p50"].append(p50(saves))
        found["memory of the index's process"].append(memory_of(wiki.owner()).resident)


def _in_turns(ask: Callable[[str], Timed], texts: Sequence[str]) -> Generator[None, None, list[float]]:
    """Return the milliseconds until each text is answered, and yield after each turn."""
    times: list[float] = []
    for start in range(0, len(texts), _TURN):
        times += [1e3 * ask(text).seconds for text in texts[start : start + _TURN]]
        yield
    return times


def _search_while_saving(wiki: ServedWiki, asked: Sequence[str], name: str, searches: list[float], saves: list[float]) -> None:
    """Save pages, about one a second, and search at the same time.

    Append the milliseconds of each search to `searches`, and those until each saved page was found to `saves`.
    """

    def save() -> None:
        with wiki.client() as editor:
            for each in range(_SAVES):
                word = f"{name}x{each}"
                editor.save("a-saved-page", f"# A saved page\n\nThe {word} grazes behind the mill.\n")
                start = time.perf_counter()
                while word not in str(editor.results(word, mode="keyword")):
                    assert time.perf_counter() - start < 30, f"not found: {word}"
                    time.sleep(0.005)
                saves.append(1e3 * (time.perf_counter() - start))
                time.sleep(_SAVES_PAUSE)

    saving = threading.Thread(target=save)
    saving.start()
    with wiki.client() as client:
        for query in asked:
            searches.append(1e3 * client.search(query).seconds)
            time.sleep(0.02)
            if not saving.is_alive():
                break
    saving.join()


def _typed(chance: random.Random, queries: Sequence[str]) -> list[str]:
    """Return queries as people type them: a tenth with a typing error, a tenth with words of another language."""
    misspelled = _misspelled(chance, queries)
    foreign = (f"{chance.choice(_FOREIGN)} {query}" for query in queries)
    kinds = zip(misspelled, foreign, *[queries] * 8, strict=True)
    return [each[number % 10] for number, each in enumerate(kinds)]


def _misspelled(chance: random.Random, queries: Sequence[str]) -> list[str]:
    """Return queries with a wrong letter in their longest words."""
    found = []
    for query in queries:
        word = max(query.split(), key=len)
        place = chance.randrange(1, max(2, len(word)))
        found.append(query.replace(word, f"{word[:place]}{chance.choice('aeinrst')}{word[place + 1 :]}", 1))
    return found
