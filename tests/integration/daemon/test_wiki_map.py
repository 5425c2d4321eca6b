"""The map of the wiki: made in the background, kept, and always of the pages that the index has.

Its process ends with the index daemon, and needs a library that need not be there.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.records import MapPoint, MapState, RebuildState, WikiMap
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.interface import IndexService
from otterwiki_semantic.daemon.wiki_map import builder as mapping
from tests.support.live_wiki import commit, eventually, make_repository
from tests.support.processes import is_running

pytestmark = pytest.mark.real_parts

Open = Callable[..., IndexEngine]

SUBJECTS = {
    "garden": ("tomatoes", "compost", "roses", "a hedge", "the lawn", "apple trees", "weeds", "bees"),
    "network": ("a router", "the firewall", "DNS", "a switch", "a VPN", "packets", "a subnet", "TLS certificates"),
    "kitchen": ("bread dough", "onion soup", "a roast", "pancakes", "pickles", "pasta", "a cheese cake", "rice"),
}
SENTENCES = {
    "garden": "How to grow and tend {} in our garden: water, soil, sun, pruning and the seasons.",
    "network": "How {} is set up on our servers: addresses, ports, packets, configuration and logs.",
    "kitchen": "A recipe for {}: ingredients, oven temperature, minutes of cooking, and how to serve it.",
}
PAGES = {
    f"{subject}/{number}.md": f"# About {thing}\n\n{SENTENCES[subject].format(thing)}\n"
    for subject, things in SUBJECTS.items()
    for number, thing in enumerate(things)
}


@pytest.fixture
def wiki_of_three(tmp_path: Path) -> Settings:
    return Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", sync_interval=3600)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, pages=("map",))


@pytest.fixture
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map is made as soon as anything changes."""
    monkeypatch.setattr(mapping, "_DELAY_SECONDS", 0.05)
    for name in ("_MIN_PAUSE_SECONDS", "_PAUSE_FACTOR", "_RETRY_SECONDS"):
        monkeypatch.setattr(mapping, name, 0)


def ready(index: IndexService, since: WikiMap | None = None) -> WikiMap:
    """Wait for a map, of the index as it is, or for another one than there was."""

    def made() -> WikiMap | None:
        found = index.map()
        is_whole = found.state is MapState.READY and not any(point.is_new for point in found.points)
        is_other = since is None or places(found) != places(since)
        return found if is_whole and is_other and found.index.commit == found.index.head else None

    return eventually(made)


def points(found: WikiMap) -> dict[str, MapPoint]:
    return {point.path: point for point in found.points}


def places(found: WikiMap) -> dict[str, tuple[float, float]]:
    return {point.path: (point.x, point.y) for point in found.points}


def apart(one: tuple[float, float], other: tuple[float, float]) -> float:
    return float(((one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2) ** 0.5)


def subject_beside(path: str, where: dict[str, tuple[float, float]]) -> str:
    others = [other for other in where if other != path]
    return min(others, key=lambda other: apart(where[path], where[other])).split("/")[0]


def end_process(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def without_library(*_: object) -> None:
    raise ModuleNotFoundError("No module named 'sklearn'")


def projecting(parent: int) -> list[int]:
    """Return the processes of this parent that make a map."""
    ending = f"otterwiki_semantic.core.worker_process {mapping._NICENESS} {mapping._MEMORY_BYTES} ".replace(" ", "\0").encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_one = (place / "cmdline").read_bytes().endswith(ending)
            if is_one and int((place / "stat").read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(place.name))
    return found


def test_the_owner_makes_a_map_and_keeps_it(wiki_of_three: Settings) -> None:
    repository = wiki_of_three.repository
    index = IndexClient(wiki_of_three)
    first = ready(index)
    assert list(points(first)) == sorted(path.removesuffix(".md") for path in PAGES)
    assert all(0 <= value <= 1 for place in places(first).values() for value in place)
    right = [subject_beside(path, places(first)) == path.split("/")[0] for path in points(first)]
    assert sum(right) >= 0.9 * len(right), "near in meaning is near on the map"
    cluster = points(first)["garden/0"].cluster
    assert (first.message, points(first)["garden/0"]) == (
        None,
        MapPoint("garden/0", "About tomatoes", "0", *places(first)["garden/0"], "garden", None, False, cluster=cluster),
    )
    assert cluster

    new = "---\ncategory: food\n---\n# About lentils\n\n" + SENTENCES["kitchen"].format("lentils")
    head = commit(repository, {"lentils.md": new, "garden/3.md": None})
    index.notify()
    eventually(lambda: index.map().index.commit == head)
    changed = index.map()
    assert set(points(changed)) == set(points(first)) - {"garden/3"} | {"lentils"}
    lentils = points(changed)["lentils"]
    assert (lentils.is_new, lentils.folder, lentils.category) == (True, "", "food")
    assert subject_beside("lentils", places(changed)) == "kitchen"
    assert places(first).items() - places(changed).items() == {("garden/3", places(first)["garden/3"])}
    assert changed.made == first.made

    owner = index.status().owner_pid
    os.kill(owner, signal.SIGKILL)
    eventually(lambda: not is_running(owner))
    again = eventually(lambda: found if (found := index.map()).state is MapState.READY else None)
    assert (again.points, again.made) == (changed.points, changed.made)
    index.close()


@pytest.mark.usefixtures("restless")
def test_pages_keep_their_places_when_others_change(wiki_of_three: Settings, opened: Open) -> None:
    index = opened(wiki_of_three)
    first = ready(index)
    changes: dict[str, str | bytes | None] = {
        "garden/0.md": "# About tomatoes\n\n" + SENTENCES["kitchen"].format("tomato soup"),
        "network/new.md": "# About a proxy\n\n" + SENTENCES["network"].format("a proxy"),
    }
    commit(wiki_of_three.repository, changes)
    index.notify()
    second = ready(index, since=first)
    assert set(points(second)) == set(points(first)) | {"network/new"}
    kept = set(points(first)) - {"garden/0"}
    moved = [apart(places(first)[path], places(second)[path]) for path in kept]
    assert median(moved) < 0.1, "of the map's side"
    assert subject_beside("garden/0", places(first)) == "garden"
    assert subject_beside("garden/0", places(second)) == "kitchen"
    assert subject_beside("network/new", places(second)) == "network"


@pytest.mark.usefixtures("restless")
def test_a_rebuild_keeps_the_places(settings: Settings, opened: Open) -> None:
    index = opened(settings)
    first, before = ready(index), index.status()
    index.reindex(full=True)
    eventually(lambda: index.status().rebuild.state is RebuildState.DONE)
    after = index.status()
    assert after.generation != before.generation
    assert (index.map().points, index.map().made) == (first.points, first.made)


@pytest.mark.usefixtures("restless")
def test_a_kept_map_that_is_damaged_is_made_again(settings: Settings, opened: Open) -> None:
    index = opened(settings)
    first = ready(index)
    index.close()
    kept = settings.data_dir / "map.json"
    whole = json.loads(kept.read_bytes())
    for damaged in (
        b"",
        b'{"places"',
        b"[]",
        json.dumps(whole | {"span": "wide"}).encode(),
        json.dumps({**whole, "places": {"a": [2, 0]}}).encode(),
    ):
        kept.write_bytes(damaged)
        assert mapping.WikiMapBuilder(settings, index._manager, index._map._reader)._map is None
    assert places(ready(opened(settings))) == places(first), "the same pages begin afresh in the same way"


@pytest.mark.usefixtures("restless")
def test_a_killed_process_is_made_good(settings: Settings, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "project", end_process)
    index = opened(settings)
    failed = eventually(lambda: found if (found := index.map()).message else None)
    assert (failed.state, failed.points) == (MapState.UNAVAILABLE, ())
    assert failed.message == "making the map ended the process that does it, with status -9; it is retried automatically"
    monkeypatch.undo()
    index.notify()
    assert ready(index).message is None


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_the_process_does_not_outlive_the_daemon(settings: Settings, how: int) -> None:
    with closing(IndexClient(settings)) as index:
        owner = eventually(lambda: index.status().owner_pid)
        (child,) = eventually(lambda: projecting(owner))
        os.kill(owner, how)
        eventually(lambda: not is_running(owner) and not is_running(child), 10)
        assert index.map().state is not MapState.UNAVAILABLE


@pytest.mark.usefixtures("restless")
def test_without_the_library_it_says_what_to_install(settings: Settings, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapping, "project", without_library)
    index = opened(settings)
    found = eventually(lambda: found if (found := index.map()).message else None)
    assert (found.state, pip_install("map") in str(found.message)) == (MapState.UNAVAILABLE, True)
    assert index.status().status == "ready"


@pytest.mark.usefixtures("restless")
def test_few_pages_and_none(tmp_path: Path, opened: Open) -> None:
    repository = make_repository(tmp_path / "repository", {})
    index = opened(Settings(repository, tmp_path / "index", sync_interval=3600))
    assert eventually(lambda: index.map().state) is MapState.EMPTY
    last: WikiMap | None = None
    for count, text in enumerate(("", "# Two\n\nA page.\n", "# Three\n\nAnother one.\n", "# Four\n\nA page.\n"), start=1):
        commit(repository, {f"page {count}.md": text})
        index.notify()
        last = ready(index, since=last)
        assert len(last.points) == count
    for count in (4, 3, 2, 1):
        commit(repository, {f"page {count}.md": None})
    index.notify()
    eventually(lambda: index.map().state is MapState.EMPTY)


@pytest.mark.usefixtures("restless")
def test_a_map_that_is_not_wanted_is_not_made(settings: Settings, opened: Open) -> None:
    index = opened(replace(settings, pages=()))
    eventually(lambda: index.status().status == "ready")
    found = index.map()
    assert (found.state, found.points) == (MapState.UNAVAILABLE, ())
    assert "add map to SEMANTIC_PAGES" in str(found.message)
    assert index._map._worker._process is None
