"""What a save costs with and without the plugin on real pages, when its new section is found, and at which rank."""

from __future__ import annotations

import http.client
import statistics
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.support.options import ROOT, Options
from benchmarks.support.processes import resident
from benchmarks.support.report import Figure, at_least
from tests.support.live_wiki import LiveWiki, make_repository

_SAVES = 30
_INDEXING_SECONDS = 900
_FINDING_SECONDS = 10
_SUBJECTS = ("aardvark", "zeppelin", "quinoa", "volcano", "saxophone", "glacier", "tariff", "beekeeping", "chess", "origami")


class _Saves(NamedTuple):
    """Seconds of each save, and, with the plugin, seconds until its section was found and its rank (1 = first)."""

    seconds: list[float]
    found: list[float]
    ranks: list[int]
    memory: list[Figure]


def measure(_options: Options) -> list[Figure]:
    """Return the medians of saves in the demo wiki, served by Flask's development server."""
    directory = ROOT / "demo" / "pages"
    files: dict[str, str | bytes] = {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*.md")}
    with tempfile.TemporaryDirectory() as name:
        with_plugin = _saves(Path(name), files, plugin=True)
        without = _saves(Path(name), files, plugin=False)
    added = statistics.median(with_plugin.seconds) - statistics.median(without.seconds)
    bare = f"{statistics.median(without.seconds) * 1e3:.1f} ms without the plugin"
    first = Counter(with_plugin.ranks)[1] / _SAVES
    return [
        Figure("a save, median", statistics.median(with_plugin.seconds) * 1e3, "ms", note=bare),
        Figure("added to a save by the plugin, median", added * 1e3, "ms"),
        Figure("found after the save's answer, median", statistics.median(with_plugin.found) * 1e3, "ms"),
        Figure("found after the save's answer, at most", max(with_plugin.found) * 1e3, "ms"),
        at_least("new sections found first", first * 100, "%", 100),
        *with_plugin.memory,
    ]


def _saves(place: Path, files: Mapping[str, str | bytes], *, plugin: bool) -> _Saves:
    repository = make_repository(place / f"repository-{plugin}", {**files, "page.md": "# Page\n\nfirst\n"})
    saves = _Saves([], [], [], [])
    with LiveWiki(repository, place / f"index-{plugin}", plugin=plugin) as wiki:
        if plugin:
            wiki.wait_until_indexed(_INDEXING_SECONDS)
        connection = http.client.HTTPConnection("127.0.0.1", wiki.port)
        for number in range(_SAVES):
            subject = _SUBJECTS[number % len(_SUBJECTS)]
            section = f"## {subject} {number}\n\n" + f"All about {subject} and marker {number}. " * 12
            saves.seconds.append(_save(wiki, connection, f"# Page\n\n{section}\n"))
            if plugin:
                seconds, rank = _find(wiki, number, subject)
                saves.found.append(seconds)
                saves.ranks.append(rank)
        if plugin:
            assert wiki.process is not None
            saves.memory.append(Figure("resident memory of the wiki's process", resident(wiki.process.pid), "MB"))
            saves.memory.append(Figure("resident memory of the index's process", resident(wiki.status()["owner_pid"]), "MB"))
    return saves


def _save(wiki: LiveWiki, connection: http.client.HTTPConnection, content: str) -> float:
    """Save a page through the editor's form; gives the seconds until the wiki answers."""
    token = wiki.csrf_token("/page/edit")
    body = urllib.parse.urlencode({"csrf_token": token, "content": content, "commit": "edit"})
    cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in wiki.cookies)
    headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
    start = time.perf_counter()
    connection.request("POST", "/page/save", body, headers)
    response = connection.getresponse()
    response.read()
    assert response.status == 302, response.status
    return time.perf_counter() - start


def _find(wiki: LiveWiki, number: int, subject: str) -> tuple[float, int]:
    """Search until the section is found; gives the seconds and its rank."""
    start = time.perf_counter()
    while time.perf_counter() - start < _FINDING_SECONDS:
        for rank, hit in enumerate(wiki.search(f"{subject} marker {number}"), 1):
            if f"marker {number}." in hit["snippet"]:
                return time.perf_counter() - start, rank
    raise AssertionError(f"section {number} was not found")
