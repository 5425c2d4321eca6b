"""A day of a wiki's life in minutes: edits, pushes, restarts, kills, outages and a full disk, and searches all the while.

The wiki is served by gunicorn, its model by a scripted server, and its data directory is a small disk of its own if the kernel
lets anybody mount one. First comes a storm with every event; then a calm in which no process is ended, so that what grows
shows. At the end the index has to equal a fresh one, and nothing may be left over.
"""

from __future__ import annotations

import faulthandler
import http.client
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from tests.chaos.contents import differences, read_contents
from tests.chaos.footprint import Footprint, excess, measure, processes_of
from tests.chaos.wikis import Pages, Wiki, marks
from tests.support.live_wiki import KEY, LiveWiki, commit, eventually, git, head_of, make_repository
from tests.support.model_servers import ModelServer, ollama_told, serving
from tests.support.paths import ROOT
from tests.support.processes import owners_of
from tests.support.wiki_servers import GUNICORN, Served, search

_PAGES, _FEWEST, _MOST = 60, 45, 80
_DISK_SIZE = "64m"
_SEARCHERS = 2
_SEARCH_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 1.5
_OUTAGE_SECONDS = (3.0, 15.0)
"""How long the model server is away, and the disk full."""
_RECOVERY_SECONDS = 10.0
"""How long after a kill or restart searches may fail."""
_SETTLED_SECONDS = 120.0
_EDIT_SECONDS = 15.0
_QUIET_SECONDS = 3.0
_ENDED_SECONDS = 60.0
_HANGING_SECONDS = 60.0
"""Longer than anything may take to happen; where it hangs is shown."""
_CHECK_SECONDS = 90.0
_FIRST, _STORM = 0.15, 0.6
"""The parts of the time before the first measurement (a minute at most), and before the calm."""
_MARKS_ASKED = 25
_MOST_SHOWN, _LONGEST_SHOWN = 20, 400
_SLEEPERS = ("ferdinand", "hieronymus", "mortimer", "wilhelmina")
"""Otters whose pages nobody changes, so that they have to be found all the while."""


@dataclass
class Searcher:
    """Asks without end, and notes each answer that is wrong, and each that there was none."""

    life: Life
    random: Random
    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[float, float, str, str]] = field(default_factory=list)
    """When it was asked and answered, the status, and what was answered."""
    wrong: list[str] = field(default_factory=list)

    def ask_until_the_end(self) -> None:
        while not self.life.ended.is_set():
            self.life.may_search.wait()
            self._ask(*self._question())
            time.sleep(_SEARCH_PAUSE_SECONDS)

    def _question(self) -> tuple[str, set[str], bool]:
        """Return a query, the pages that may be found, and whether one must be."""
        name = self.random.choice(_SLEEPERS)
        mark = self.random.choice(self.life.marks)
        right = {f"otters/{name}"}
        lasting = [(f'"{name}"', right, True), (f"where does {name} sleep", right, True)]
        return self.random.choice([*lasting, (f'"{mark}"', self.life.places[mark], False)])

    def _ask(self, query: str, right: set[str], must_find: bool) -> None:
        asked = time.monotonic()
        status, answer = ask(self.life.live.port, query, 10 if query.startswith('"') else 1)
        answered = time.monotonic()
        self.statuses[f"{status} degraded" if "degraded" in answer else status] += 1
        if status != "200":
            self.failures.append((asked, answered, status, str(answer)))
            return
        found = {hit["path"] for hit in answer["results"]}
        if not found <= right or (must_find and not found):
            state = answer.get("degraded") or answer.get("message") or "not degraded"
            self.wrong.append(f"{query} found {sorted(found)} instead of {sorted(right)}; {state}")


def ask(port: int, query: str, limit: int) -> tuple[str, Any]:
    """Return the status, or the error's name, and what was answered."""
    path = f"/api/v1/semantic-search?{urllib.parse.urlencode({'q': query, 'n': limit})}"
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
            connection.request("GET", path, headers={"Authorization": f"Bearer {KEY}"})
            response = connection.getresponse()
            return str(response.status), json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        return type(error).__name__, {"error": str(error)}


class Disk:
    """The data directory's own disk, which a file fills."""

    def __init__(self, data_dir: Path) -> None:
        self.exists = data_dir.is_mount()
        self._filler = data_dir / "filler"

    @contextmanager
    def full(self) -> Iterator[None]:
        with self._filler.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        try:
            yield
        finally:
            self._filler.unlink()


class Life:
    """A served wiki, what happens to it, and what it should hold."""

    def __init__(self, place: Path, seed: int, models: ExitStack) -> None:
        self.random = Random(f"soak {seed}")
        self.place = place
        self.data_dir = place / "index"
        self.disk = Disk(self.data_dir)
        self.model = ModelServer(told=ollama_told("m"))
        self.ended, self.may_search = Event(), Event()
        self.may_search.set()
        self.happened: Counter[str] = Counter()
        self.faults: list[str] = []
        self.longest_recovery = 0.0
        self.rough: list[tuple[float, float]] = []
        """The times in which searches may fail."""
        self.places: dict[str, set[str]] = {}
        """The marks that were ever in the wiki, each with all the pages that it was on."""
        self._outages: dict[str, tuple[float, ExitStack]] = {}
        """The outages under way, each with the time of its end."""
        self.wiki = Wiki(f"soak {seed}", _PAGES)
        otters = {f"otters/{name}.md": _otter(name) for name in _SLEEPERS}
        self.repository = make_repository(place / "repository", {**self.wiki.pages, **otters})
        self._otters = otters.keys()
        self._note_marks()
        self._clone = place / "clone"
        git(place, "clone", "-q", str(self.repository), str(self._clone))
        (place / "tmp").mkdir()
        self._models = models
        self._models.enter_context(serving(self.model))
        os.environ.update(SEMANTIC_MODEL="ollama:m", SEMANTIC_MODEL_URL=self.model.url, TMPDIR=str(place / "tmp"))
        self.served = self._serve(self.data_dir)
        self.live = self.served.live

    def _serve(self, data_dir: Path) -> Served:
        return Served(GUNICORN[0], GUNICORN[0].wiki(self.repository, data_dir))

    # What the wiki should hold

    def _note_marks(self) -> None:
        found = marks(self.wiki.pages)
        self.places = self.places | {mark: paths | self.places.get(mark, set()) for mark, paths in found.items()}
        self.marks = sorted(found)

    def _read_pages(self) -> None:
        """Know the wiki as it is: saving changes line ends, and a reset takes pages away."""
        files = {str(path.relative_to(self.repository)): path for path in self.repository.rglob("*.md")}
        self.wiki.pages = {name: path.read_text() for name, path in files.items() if name not in self._otters}
        self._note_marks()

    # Events

    def edit(self) -> None:
        name = self.wiki.some(1)[0]
        self.random.choice((self.wiki.edit, self.wiki.edit, self.wiki.rewrite))(name)
        self._save(name)

    def add(self) -> None:
        if len(self.wiki.pages) < _MOST:
            self._save(self.wiki.add())

    def rename(self) -> None:
        name = self.wiki.some(1)[0]
        new = f"{name.removesuffix('.md')}-moved.md" if len(name) < 60 else f"again-{self.happened.total()}.md"
        self.wiki.rename(name, new)
        self._note_marks()
        page = name.removesuffix(".md")
        self.live.post_form(f"/{page}/rename", f"/{page}/rename", new_pagename=new.removesuffix(".md"), message="rename")
        self._read_pages()

    def remove(self) -> None:
        if len(self.wiki.pages) > _FEWEST:
            name = self.wiki.some(1)[0]
            self.wiki.remove(name)
            page = name.removesuffix(".md")
            self.live.post_form(f"/{page}/delete", f"/{page}/delete", message="remove")
            self._read_pages()

    def push(self) -> None:
        """Push a few commits of changes to many pages."""
        git(self._clone, "fetch", "-q")
        git(self._clone, "reset", "-q", "--hard", "origin/main")
        for _ in range(self.random.randint(1, 3)):
            before = dict(self.wiki.pages)
            for name in self.wiki.some(4):
                self.wiki.edit(name)
            for name in self.wiki.some(2):
                self.wiki.rename(name, f"pushed/{name.rpartition('/')[2]}")
            self.wiki.add()
            for name in self.wiki.some(max(1, len(self.wiki.pages) - _MOST)):
                self.wiki.remove(name)
            self._note_marks()
            commit(self._clone, _change(before, self.wiki.pages))
        git(self._clone, "push", "-q")
        self._read_pages()

    def reset(self) -> None:
        """Take the last commits back, as an administrator does on the server."""
        git(self.repository, "reset", "-q", "--hard", f"HEAD~{self.random.randint(1, 3)}")
        self._read_pages()

    def reindex(self, *, full: bool = False) -> None:
        """Ask for a rebuild, which is refused while one runs, or there is no daemon or no space for it."""
        start = time.monotonic()
        reply = self.live.api("POST", "/reindex", full=str(full).lower())
        is_excused = reply.status in {409, 507} or (reply.status == 503 and self.is_rough(start, time.monotonic()))
        assert reply.status == 202 or is_excused, reply.text

    def model_away(self) -> None:
        def leave(outage: ExitStack) -> None:
            self._models.close()
            outage.callback(lambda: self._models.enter_context(serving(self.model)))

        self._begin("model away", leave)

    def disk_full(self) -> None:
        if self.disk.exists:
            self._begin("disk full", lambda outage: outage.enter_context(self.disk.full()))

    def kill_daemon(self) -> None:
        """Kill the daemon, perhaps while it indexes."""
        if self.random.random() < 0.5:
            self.push()
            time.sleep(self.random.uniform(0, 1))
        with self._rough():
            for pid in owners_of(self.data_dir):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def kill_worker(self) -> None:
        with self._rough():
            os.kill(self.random.choice(self.workers()), signal.SIGKILL)

    def reload(self) -> None:
        assert self.live.process is not None
        with self._rough():
            self.live.process.send_signal(signal.SIGHUP)

    def restart(self) -> None:
        with self._rough():
            self.live.restart()

    def restart_all(self) -> None:
        """Restart the wiki after the daemon has ended, too."""
        with self._rough():
            self.live.stop()
            eventually(lambda: not owners_of(self.data_dir), _ENDED_SECONDS, "the daemon ends")
            self.live.__enter__()

    def _save(self, name: str) -> None:
        self._note_marks()
        self.live.save(name.removesuffix(".md"), self.wiki.pages[name])
        self._read_pages()

    @contextmanager
    def _rough(self) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.rough.append((start, time.monotonic() + _RECOVERY_SECONDS))

    def is_rough(self, start: float, end: float) -> bool:
        """Whether a kill or a restart may have been felt in a span of time."""
        return any(rough_start <= end and start <= rough_end for rough_start, rough_end in self.rough)

    def _begin(self, name: str, enter: Callable[[ExitStack], None]) -> None:
        """Begin an outage, unless it is under way."""
        if name not in self._outages:
            outage = ExitStack()
            enter(outage)
            self._outages[name] = (time.monotonic() + self.random.uniform(*_OUTAGE_SECONDS), outage)

    def end_outages(self, now: float) -> None:
        for name, (end, outage) in list(self._outages.items()):
            if end <= now:
                del self._outages[name]
                outage.close()

    # How it is

    def workers(self) -> list[int]:
        assert self.live.process is not None
        pid = self.live.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def settle(self) -> None:
        """End all outages, and wait until the index is whole; edits and rebuilds try again what the outages prevented."""
        self.end_outages(math.inf)
        edited = -math.inf

        def settled() -> bool:
            nonlocal edited
            if time.monotonic() > edited + _EDIT_SECONDS:
                edited = time.monotonic()
                self.edit()
                if self.live.api("GET", "/reindex/status").json["state"] == "failed":
                    self.reindex()
            return is_whole(self.live)

        start = time.monotonic()
        eventually(settled, _SETTLED_SECONDS, "the index is whole")
        self.longest_recovery = max(self.longest_recovery, time.monotonic() - start)

    def check(self) -> None:
        """Settle, and see that what the wiki has is found where it is, and that what it had is not."""
        self.settle()
        here = marks(self.wiki.pages)
        gone = sorted(self.places.keys() - here.keys())
        for mark in self.random.sample(sorted(here), _MARKS_ASKED) + self.random.sample(gone, min(_MARKS_ASKED, len(gone))):
            status, answer = ask(self.live.port, f'"{mark}"', 10)
            found = {hit["path"] for hit in answer.get("results", ())}
            right = here.get(mark, set())
            if status != "200" or not found <= right or bool(found) != bool(right):
                self.faults.append(f'"{mark}" found {sorted(found)} instead of {sorted(right)} in a whole index: {status}')
        self.model.asked.clear()

    def footprint(self) -> Footprint:
        """Return what the settled wiki holds while nobody searches."""
        self.check()
        self.may_search.clear()
        try:
            time.sleep(_QUIET_SECONDS)
            roles = {"the index daemon": [self.served.owner()], "the workers": self.workers()}
            return measure(roles, [self.data_dir, self.place / "tmp"])
        finally:
            self.may_search.set()

    def close(self) -> None:
        self.end_outages(math.inf)
        self.live.stop()
        eventually(lambda: not owners_of(self.data_dir), _ENDED_SECONDS, "the daemon ends")

    def differences_from_afresh(self) -> list[str]:
        """Return how the stopped index differs from one that is built now."""
        data_dir = self.place / "afresh"
        fresh = self._serve(data_dir).live
        with fresh:
            eventually(lambda: is_whole(fresh), why="the fresh index is whole")
        eventually(lambda: not owners_of(data_dir), _ENDED_SECONDS, "the daemon ends")
        return differences(read_contents(self.data_dir), read_contents(data_dir))


def is_whole(live: LiveWiki) -> bool:
    """Whether an index equals HEAD, and nothing is wrong or under way."""
    reply = live.api("GET", "/semantic-search/status")
    if reply.status != 200:
        return False
    status = reply.json
    is_equal = status["indexed_commit"] == status["head_commit"] == head_of(live.repository) and not status["pending_pages"]
    is_quiet = status["rebuild"]["state"] in {"idle", "done"} and not status["problems"]
    return is_equal and is_quiet and status["chroma"]["state"] == "ready"


Happening = tuple[int, Callable[[Life], None]]
CALM: list[Happening] = [
    (40, Life.edit),
    (8, Life.add),
    (8, Life.rename),
    (5, Life.remove),
    (8, Life.push),
    (2, Life.reset),
    (1, Life.reindex),
    (1, Life.model_away),
    (1, Life.disk_full),
]
STORM: list[Happening] = [
    *CALM,
    (4, Life.kill_daemon),
    (4, Life.kill_worker),
    (2, Life.reload),
    (2, Life.restart),
    (1, Life.restart_all),
]


def live_on(life: Life, happenings: list[Happening], until: float) -> None:
    """Let things happen until a time, and check the index every minute or so."""
    weights = [weight for weight, _ in happenings]
    check_at = time.monotonic() + _CHECK_SECONDS
    while (now := time.monotonic()) < until:
        life.end_outages(now)
        if now > check_at:
            life.check()
            check_at = time.monotonic() + _CHECK_SECONDS
        ((_, happening),) = life.random.choices(happenings, weights)
        happen(life, happening)
        time.sleep(life.random.uniform(0, _LONGEST_PAUSE_SECONDS))


def happen(life: Life, happening: Callable[[Life], None]) -> None:
    """Let something happen; if it fails or hangs, that is a finding, and life goes on."""
    name = happening.__name__
    life.happened[name] += 1
    start = time.monotonic()
    faulthandler.dump_traceback_later(_HANGING_SECONDS)
    try:
        happening(life)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        life.faults.append(f"{name} failed: {type(error).__name__}: {error}")
    faulthandler.cancel_dump_traceback_later()
    if (seconds := time.monotonic() - start) > _HANGING_SECONDS:
        life.faults.append(f"{name} took {seconds:.0f} s")


def begin_anew(life: Life) -> Footprint:
    """Return the footprint of processes that are new, and have done each thing that happens in a calm."""
    happen(life, Life.restart_all)
    life.settle()
    life.reindex(full=True)  # which loads the bundled model, for the scale of the similarities; a copied index has one
    life.settle()
    for _, happening in CALM:
        happen(life, happening)
        life.end_outages(math.inf)
    # A page and its history: the wiki itself starts git processes at the first one, and keeps them.
    for path in (
        f"/otters/{_SLEEPERS[0]}",
        f"/otters/{_SLEEPERS[0]}/history",
        "/-/semantic-search?q=otter",
        "/api/v1/semantic-search/status",
        *map(search, _SLEEPERS),
    ) * 3:
        life.served.ask_each(path)
    return life.footprint()


def lasting(life: Life, seconds: float) -> None:
    """Live through a storm and a calm, and note what is left over."""
    start = time.monotonic()
    live_on(life, STORM, start + min(60, _FIRST * seconds))
    first = begin_anew(life)
    print(f"after {time.monotonic() - start:.0f} s: {first}", flush=True)
    live_on(life, STORM, start + _STORM * seconds)
    anew = begin_anew(life)
    print(f"after {time.monotonic() - start:.0f} s, of new processes: {anew}", flush=True)
    live_on(life, CALM, start + seconds)
    last = life.footprint()
    print(f"after {time.monotonic() - start:.0f} s, of the same processes: {last}", flush=True)
    life.faults += [f"left over by the storm: {fault}" for fault in excess(first, anew)]
    life.faults += [f"left over by the calm: {fault}" for fault in excess(anew, last)]


def unexcused(life: Life, searchers: list[Searcher]) -> Iterator[str]:
    """Yield the failures of searches that no kill and no restart explains: these may cost a connection, or give a 503."""
    for searcher in searchers:
        for asked, answered, status, said in searcher.failures:
            is_outage = status == "503" or not status.isdigit()
            if not (is_outage and life.is_rough(asked, answered)):
                yield f"a search failed: {status} {said}"


def leftovers(life: Life) -> Iterator[str]:
    """Yield what a stopped wiki has left behind outside its index."""
    for pid in processes_of(str(life.data_dir)):
        yield f"process {pid} is left: {Path(f'/proc/{pid}/cmdline').read_text()[:200]!r}"
    for path in (life.place / "tmp").rglob("*"):
        yield f"a temporary file is left: {path}"


def soak(place: Path, seed: int, minutes: float) -> bool:
    """Soak an index for so many minutes; prints what happened and tells whether nothing was wrong."""
    with ExitStack() as models:
        life = Life(place, seed, models)
        if not life.disk.exists:
            print("soak: no user namespaces here, so the disk is never full", flush=True)
        searchers = [Searcher(life, Random(f"searcher {seed} {number}")) for number in range(_SEARCHERS)]
        with life.live:
            life.live.wait_until_indexed()
            try:
                with searching(life, searchers):
                    lasting(life, 60 * minutes)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                life.faults.append(f"{type(error).__name__}: {error}")
        life.close()
        life.faults += [*leftovers(life), *unexcused(life, searchers), *life.differences_from_afresh()]
    life.faults += [wrong for searcher in searchers for wrong in searcher.wrong]
    if life.faults and life.disk.exists:
        shutil.copytree(life.data_dir, place / "index-kept", symlinks=True)
    print(report(life, searchers), flush=True)
    return not life.faults


@contextmanager
def searching(life: Life, searchers: list[Searcher]) -> Iterator[None]:
    """Let searchers ask while the block runs."""
    with ThreadPoolExecutor(len(searchers)) as pool:
        asking = [pool.submit(searcher.ask_until_the_end) for searcher in searchers]
        try:
            yield
        finally:
            life.ended.set()
            life.may_search.set()
    for future in asking:
        future.result()


def report(life: Life, searchers: list[Searcher]) -> str:
    """Return what happened, what was answered, and what is wrong."""
    happened = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in life.happened.most_common())
    statuses = sum((searcher.statuses for searcher in searchers), Counter())
    answers = ", ".join(f"{number} × {status}" for status, number in statuses.most_common())
    lines = [f"happened: {happened}", f"searches: {answers}", f"whole again after at most {life.longest_recovery:.1f} s"]
    faults = [f"FAILED: {fault[:_LONGEST_SHOWN]}" for fault in life.faults]
    more = [f"and {len(faults) - _MOST_SHOWN} more"] if len(faults) > _MOST_SHOWN else []
    return "\n".join((*lines, *faults[:_MOST_SHOWN], *more, "ok" if not faults else f"kept: {life.place}"))


def prove_endurance(place: Path, seed: int, minutes: float) -> bool:
    """Soak an index, in a process of its own that has a small disk if it may mount one; tells whether nothing was wrong."""
    disk = place / "soak" / "index"
    disk.mkdir(parents=True)
    own = [sys.executable, "-m", "tests.chaos.soak", str(disk.parent), str(seed), str(minutes)]
    mount = f'mount -t tmpfs -o size={_DISK_SIZE} tmpfs "$1"'
    namespace = ["unshare", "-rm", "sh", "-c"]
    try:
        can_mount = not subprocess.run([*namespace, mount, "sh", str(disk)], capture_output=True, check=False).returncode
    except FileNotFoundError:
        can_mount = False
    command = [*namespace, f'{mount} && shift && exec "$@"', "sh", str(disk), *own] if can_mount else own
    return not subprocess.run(command, cwd=ROOT, check=False).returncode


def _otter(name: str) -> str:
    return f"# The otter {name}\n\nThe otter {name} sleeps on the ferry {name} from dusk until the cook gets up.\n"


def _change(before: Pages, after: Pages) -> dict[str, str | bytes | None]:
    """Return what to write, and as None what to remove, to make pages of others."""
    written: dict[str, str | bytes | None] = {name: text for name, text in after.items() if before.get(name) != text}
    return written | dict.fromkeys(before.keys() - after.keys())


if __name__ == "__main__":
    sys.exit(not soak(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
