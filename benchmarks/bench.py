"""Measure what the project promises: make bench [WIKIS="DIR ..."].

Prints, for each wiki (a directory of markdown; the demo's pages when none is named):

- the chunker's promises: the largest chunk in word pieces, and the words that the wiki's own renderer shows and no chunk holds,
- speed: pages parsed and passages embedded a second, and a query's embedding in milliseconds,

then, with a real wiki, what a save costs with and without the plugin, after how long its new section is found, and the memory
of the wiki's process and of the index's. Times are medians; the two kinds of save are taken in one run.
"""

from __future__ import annotations

import http.client
import os
import re
import statistics
import sys
import tempfile
import time
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from otterwiki_semantic.chunking import Profile  # noqa: E402
from otterwiki_semantic.embedding.minilm_model import MiniLM  # noqa: E402
from otterwiki_semantic.markdown import parse  # noqa: E402
from otterwiki_semantic.pages import read_page  # noqa: E402
from tests.live_wiki import LiveWiki, make_repository  # noqa: E402

SAVES = 30
WORD = re.compile(r"\w+")
FENCE = re.compile(r"^(\s*(?:>\s*)*(?:`{3,}|~{3,})).*$", re.MULTILINE)
SUBJECTS = ("aardvark", "zeppelin", "quinoa", "volcano", "saxophone", "glacier", "tariff", "beekeeping", "chess", "origami")
HOSTILE = (
    "[",
    "![",
    "> ",
    "> - ",
    "`a ",
    "*a ",
    "**a *b ",
    "<a ",
    "[a](b ",
    "|a",
    "a\n",
    "<!-- ",
    "$$\n",
    ":::\n",
    "# a\n",
    "- a\n",
)


def make_renderer(place: Path) -> Any:
    """Give the wiki's own markdown renderer."""
    os.environ.update(REPOSITORY=str(make_repository(place, {})), SECRET_KEY="0123456789abcdef0123456789")
    from otterwiki.renderer import OtterwikiRenderer
    from otterwiki.server import app

    return OtterwikiRenderer(config=app.config)


def shown_words(renderer: Any, source: str) -> list[str]:
    """Give the words of the page that a reader sees, without what the wiki adds: numbers of notes, titles of boxes."""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(renderer.markdown(FENCE.sub(r"\1", source))[0], "html.parser")
    for added in soup.select("#frontmatter, .quote-alert-header, sup a, .footnotes sup, .footnotes a.footnote"):
        added.decompose()
    joined = set(WORD.findall(soup.get_text()))
    return [word for word in WORD.findall(soup.get_text(" ")) if word in joined]


def measure_wiki(directory: Path, model: MiniLM, renderer: Any) -> None:
    """Print the chunker's promises and the speed for one wiki."""
    sources = {path: path.read_bytes() for path in sorted(directory.rglob("*.md"))}
    start = time.perf_counter()
    pages = [read_page(str(path), "", content, model, Profile()) for path, content in sources.items()]
    parsing = time.perf_counter() - start
    texts = [chunk.text for page in pages for chunk in page.chunks]
    missing: Counter[str] = Counter()
    total = 0
    for page, content in zip(pages, sources.values(), strict=True):
        held = set(WORD.findall(" ".join(chunk.text for chunk in page.chunks)))
        words = shown_words(renderer, content.decode(errors="replace"))
        total += len(words)
        missing.update(word for word in words if word not in held)
    sample = texts[:: max(1, len(texts) // 300)]
    start = time.perf_counter()
    model.embed(sample)
    embedding = time.perf_counter() - start
    print(f"{directory}: {len(pages)} pages, {len(texts)} passages")
    print(f"  largest passage          {max(model.count_tokens(texts)) + 2} of {model.max_tokens} word pieces")
    print(f"  words shown, in no chunk {sum(missing.values())} of {total}  {dict(missing.most_common(8))}")
    print(f"  read, parse and chunk    {len(pages) / parsing:.0f} pages/s ({len(texts) / parsing:.0f} passages/s)")
    print(f"  embed                    {len(sample) / embedding:.0f} passages/s")


def measure_queries(model: MiniLM) -> None:
    """Print what embedding a query costs."""
    times = []
    for number in range(60):
        start = time.perf_counter()
        model.embed_queries([f"how do I restore backup number {number} of the server"])
        times.append(time.perf_counter() - start)
    print(f"query embedding: {statistics.median(times) * 1e3:.1f} ms")


def measure_growth() -> None:
    """Print how parsing time grows with hostile text: 8 is linear, 64 quadratic."""

    def seconds(unit: str, size: int) -> float:
        source = unit * (size // len(unit))
        times = []
        for _ in range(3):
            start = time.perf_counter()
            parse(source)
            times.append(time.perf_counter() - start)
        return min(times)

    growth = {unit: seconds(unit, 256_000) / max(seconds(unit, 32_000), 1e-3) for unit in HOSTILE}
    worst = max(growth, key=lambda unit: growth[unit])
    print(f"parsing 8 times as much hostile text: at most {growth[worst]:.1f} times as long ({worst!r})")


def resident(pid: int) -> float:
    """Give a process's resident memory in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def save(wiki: LiveWiki, connection: http.client.HTTPConnection, content: str) -> float:
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


def find(wiki: LiveWiki, number: int, subject: str) -> tuple[float, int]:
    """Search until the section is found; gives the seconds and its rank."""
    start = time.perf_counter()
    while time.perf_counter() - start < 10:
        for rank, hit in enumerate(wiki.search(f"{subject} marker {number}"), 1):
            if f"marker {number}." in hit["snippet"]:
                return time.perf_counter() - start, rank
    raise AssertionError(f"section {number} was not found")


def measure_saves(place: Path, files: dict[str, str | bytes]) -> None:
    """Print what a save costs with and without the plugin, how soon it is found, and the memory that takes."""
    times: dict[bool, list[float]] = {}
    found = []
    for plugin in (True, False):
        repository = make_repository(place / f"repository-{plugin}", {**files, "page.md": "# Page\n\nfirst\n"})
        with LiveWiki(repository, place / f"index-{plugin}", plugin=plugin) as wiki:
            if plugin:
                wiki.wait_until_indexed(900)
            connection = http.client.HTTPConnection("127.0.0.1", wiki.port)
            times[plugin] = []
            for number in range(SAVES):
                subject = SUBJECTS[number % len(SUBJECTS)]
                section = f"## {subject} {number}\n\n" + f"All about {subject} and marker {number}. " * 12
                times[plugin].append(save(wiki, connection, f"# Page\n\n{section}\n"))
                if plugin:
                    found.append(find(wiki, number, subject))
            if plugin:
                assert wiki.process is not None
                owner = resident(wiki.status()["owner_pid"])
                memory = f"wiki {resident(wiki.process.pid):.0f} MB, index {owner:.0f} MB"
    medians = {plugin: statistics.median(seconds) * 1e3 for plugin, seconds in times.items()}
    seconds = sorted(second for second, _ in found)
    ranks = Counter(rank for _, rank in found)
    print(f"save, median of {SAVES}: {medians[True]:.1f} ms with the plugin, {medians[False]:.1f} ms without")
    print(
        f"found after the save's answer: median {statistics.median(seconds) * 1e3:.0f} ms, at most {seconds[-1] * 1e3:.0f} ms"
    )
    print(f"  ranks: {dict(ranks)}")
    print(f"resident memory: {memory}")


def main() -> None:
    """Measure and print."""
    wikis = [Path(argument) for argument in sys.argv[1:]] or [ROOT / "demo" / "pages"]
    model = MiniLM()
    model.open()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        renderer = make_renderer(place / "renderer")
        for wiki in wikis:
            measure_wiki(wiki, model, renderer)
        measure_queries(model)
        measure_growth()
        files: dict[str, str | bytes] = {str(p.relative_to(wikis[0])): p.read_bytes() for p in wikis[0].rglob("*.md")}
        measure_saves(place, files)


if __name__ == "__main__":
    main()
