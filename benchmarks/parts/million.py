"""A wiki of a million passages: its build by stage, memory, disk, searches, edits and starts; on a server, and embedded.

Pages are generated, and stored in a git repository; vectors are drawn by a model that takes next to no time, so that what is
measured is everything else. Only run if it is named; `--passages 20000` tries it with a smaller wiki.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.parts.edits import seconds_until_found
from benchmarks.parts.memory import memory_of
from benchmarks.support.corpus import questions
from benchmarks.support.drawn_model import write_drawn_model
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.processes import resident, tree_bytes
from benchmarks.support.report import Figure, say, shown
from benchmarks.support.serving import ServedWiki
from benchmarks.support.wikis import generated, scratch
from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexClient
from tests.support.live_wiki import git
from tests.support.running_chroma import RunningChroma

_PASSAGES_A_PAGE = 8
_SMALL = 20_000
_QUESTIONS, _WARM_UP = 200, 20
_EDITS, _EMPTY_COMMITS = 5, 10
_LOOK_SECONDS, _SAY_SECONDS = 1.0, 60.0
_OK, _RETRY_SECONDS = 200, 0.1
_LONGEST_SECONDS = 12 * 3600.0
_WAIT_SECONDS = 10.0
_MB = 2**20
_ON_SERVER: dict[str, dict[str, str]] = {
    "exact search": {"SEMANTIC_VECTOR_SEARCH": "exact", "SEMANTIC_VECTORS": "int8"},
    "a ChromaDB server": {"SEMANTIC_VECTOR_SEARCH": "chroma"},
    "a ChromaDB server and vectors in memory": {"SEMANTIC_VECTOR_SEARCH": "chroma", "SEMANTIC_VECTORS": "int8"},
}
_EMBEDDED: dict[str, dict[str, str]] = {
    "the defaults": {},
    "embedded ChromaDB": {"SEMANTIC_VECTOR_SEARCH": "chroma"},
}


def measure(options: Options) -> Iterator[Figure]:
    """Yield the figures, and say each as soon as it is known: the run is long."""
    for figure in _measure(options):
        say(f"{figure.name}: {shown(figure.value)} {figure.unit} {figure.note}")
        yield figure


def _measure(options: Options) -> Iterator[Figure]:
    """Yield the figures of an index with its vectors on a server, then of the same index with its vectors embedded."""
    pages = (_SMALL if options.small else options.passages) // _PASSAGES_A_PAGE
    say(f"a wiki of {pages:,} pages")
    start = time.perf_counter()
    repository = generated(pages)
    say(f"its repository took {time.perf_counter() - start:.0f} s")
    with scratch() as place:
        model = write_drawn_model(place / "model")
        wiki = _Wiki(shutil.copytree(repository, place / "repository", symlinks=True), place / "index", model, pages)
        server = RunningChroma(place / "server")
        server.start()
        try:
            yield from wiki.build({"SEMANTIC_CHROMA_URL": server.url})
            for name, settings in _ON_SERVER.items():
                yield from wiki.use(name, {"SEMANTIC_CHROMA_URL": server.url, **settings})
            yield Figure("server: resident memory", resident(server.pid), "MB")
            yield Figure("server: disk", tree_bytes(server.directory) / _MB, "MB")
        finally:
            server.stop()
        with wiki.served({}) as live:
            stages = wiki.settle(live)
            yield Figure("embedded: filled from the catalog", stages["ChromaDB filled"], "s")
            yield from _memory("after the filling", live)
        yield from wiki.disk()
        for name, settings in _EMBEDDED.items():
            yield from wiki.use(name, settings)


class _Wiki:
    """One generated wiki, served in different ways, one after another."""

    def __init__(self, repository: Path, data_dir: Path, model: Path, pages: int) -> None:
        self._repository = repository
        self._data_dir = data_dir
        self._model = f"onnx:{model}"
        self._pages = pages

    def served(self, settings: dict[str, str]) -> ServedWiki:
        """Return the wiki with these settings, to be started by a `with` statement."""
        own = {"SEMANTIC_MODEL": self._model, "SEMANTIC_CHUNKS": "minilm", "SEMANTIC_CHROMA_DOCUMENTS": "false"}
        return ServedWiki(self._repository, self._data_dir, settings={**own, "SEMANTIC_PAGES": "none", **settings})

    def build(self, settings: dict[str, str]) -> Iterator[Figure]:
        """Yield the seconds of each stage of a first build."""
        with self.served(settings) as live:
            stages = self.settle(live)
            yield Figure("passages", live.status()["chunks"], "")
            for stage, seconds in stages.items():
                yield Figure(f"first build: {stage}", seconds, "s", note="since the start")
            yield from _memory("after the build", live)

    def settle(self, live: ServedWiki) -> dict[str, float]:
        """Wait until all is done; return the seconds after which each stage was."""
        start = said = time.perf_counter()
        done: dict[str, float] = {}
        while len(done) < 3:
            status = live.status()
            seconds = time.perf_counter() - start
            progress, is_at_head = status["progress"], status["indexed_commit"] == status["head_commit"] is not None
            reached = {
                "all pages found by words": is_at_head or progress["pages_by_words"] >= self._pages,
                "all vectors stored": is_at_head and not status["pending_pages"],
                "ChromaDB filled": is_at_head and status["chroma"] and status["chroma"]["state"] == "ready",
            }
            for stage, is_reached in reached.items():
                if is_reached:
                    done.setdefault(stage, seconds)
            assert seconds < _LONGEST_SECONDS, status
            if time.perf_counter() > said + _SAY_SECONDS:
                said = time.perf_counter()
                say(f"{seconds:.0f} s: {status['progress']} {status['chroma']} {status['last_error'] or ''}")
            time.sleep(_LOOK_SECONDS)
        say(", ".join(f"{stage}: {seconds:.0f} s" for stage, seconds in done.items()))
        return done

    def disk(self) -> Iterator[Figure]:
        """Yield the disk space of each part of the index."""
        (generation,) = (self._data_dir / "generations").iterdir()
        parts = {
            "catalog": (generation / "catalog.sqlite3").stat().st_size,
            "saved vectors": sum(file.stat().st_size for file in generation.glob("exact_index*")),
            "ChromaDB": sum(map(tree_bytes, generation.glob("chroma-*"))),
        }
        for name, size in parts.items():
            yield Figure(f"disk: {name}", size / _MB, "MB")

    def use(self, way: str, settings: dict[str, str]) -> Iterator[Figure]:
        """Yield start, memory, searches and edits of the wiki that is served in some way."""
        say(f"served with {way}")
        start = time.perf_counter()
        with self.served(settings) as live:
            with live.client() as reader:
                while reader.get("/-/semantic-search/results?q=the+first+question+of+all").status != _OK:
                    time.sleep(_RETRY_SECONDS)  # it is refused after 15 s, or at once if others have just been
            yield Figure(f"{way}: start until the first answer", time.perf_counter() - start, "s")
            self.settle(live)
            asked = questions(2 * (_WARM_UP + _QUESTIONS), min(self._pages, 10_000), 31)
            with live.client() as reader:
                times = [1e3 * reader.search(question).seconds for question in asked[::2]][_WARM_UP:]
            yield from _percentiles(f"{way}: search over HTTP", times)
            yield from _percentiles(f"{way}: search over the socket", self._over_socket(asked[1::2], settings)[_WARM_UP:])
            yield from _memory(way, live)
            edits = [_edit(live, number) for number in range(_EDITS)]
            yield Figure(f"{way}: saved section found", statistics.median(edits), "ms", note=f"longest {max(edits):.0f} ms")
            commits = [self._empty_commit(live) for _ in range(_EMPTY_COMMITS)]
            note = f"a search that waits for it, longest {max(commits):.0f} ms"
            yield Figure(f"{way}: a commit without a change", statistics.median(commits), "ms", note=note)

    def _over_socket(self, asked: list[str], settings: dict[str, str]) -> list[float]:
        """Return the milliseconds of searches that ask the index daemon directly."""
        client = IndexClient(
            Settings(
                self._repository,
                self._data_dir,
                model=self._model,
                chunks="minilm",
                chroma_documents=False,
                chroma_url=settings.get("SEMANTIC_CHROMA_URL"),
                vector_search=settings.get("SEMANTIC_VECTOR_SEARCH", "auto"),
                vectors=settings.get("SEMANTIC_VECTORS", "auto"),
                pages=(),
            )
        )
        times = []
        for question in asked:
            start = time.perf_counter()
            client.search([question], SearchOptions())
            times.append(1e3 * (time.perf_counter() - start))
        client.close()
        return times

    def _empty_commit(self, live: ServedWiki) -> float:
        """Return the milliseconds of a search that waits for HEAD after a commit that changes nothing."""
        tree, head = git(self._repository, "rev-parse", "HEAD^{tree}", "HEAD").split()
        commit = git(self._repository, "commit-tree", tree, "-p", head, "-m", "nothing changes")
        git(self._repository, "update-ref", "HEAD", commit)
        with live.client() as reader:
            answer = reader.search("anything", wait="true", wait_seconds=_WAIT_SECONDS)
        return 1e3 * answer.seconds


def _edit(live: ServedWiki, number: int) -> float:
    """Return the milliseconds from a save's answer until the page is found by a word that no other page has."""
    word = f"zyx{number}wvut{time.time_ns()}"
    with live.client() as client:
        client.save("an-edited-page", f"# An edited page\n\nThe {word} was written now.\n")
        return 1e3 * seconds_until_found(client, word)


def _percentiles(name: str, times: list[float]) -> Iterator[Figure]:
    yield Figure(f"{name}, p50", p50(times), "ms")
    yield Figure(f"{name}, p95", p95(times), "ms", note=f"of {len(times)}")


def _memory(way: str, live: ServedWiki) -> Iterator[Figure]:
    memory = memory_of(live.owner())
    yield Figure(f"{way}: memory of the index process", memory.resident, "MB", note=f"PSS {memory.proportional:.0f} MB")
