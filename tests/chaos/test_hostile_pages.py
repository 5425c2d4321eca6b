"""Pages that are made to keep a parser busy, in a served wiki that is searched all the while."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import LiveWiki, commit, eventually, make_repository

PAGES = {
    "spaces in a heading": "# a" + " " * 150_000 + "x\n",
    "tabs in a tag": "".join(f"<a x{number}=" + "\t" * 2_000 + "\n\n" for number in range(100)),
    "tabs in a tag in a paragraph": "a <b x=" + "\t" * 15_000 + "\n",
    "titles without an end": "[a]: b (\n" * 100_000,
    "instructions without an end": ("<?" * 9_000 + "\n\n") * 80,
    "nested lists": "".join(" " * (2 * (depth % 400)) + "- x\n" for depth in range(5_000)),
    "nested quotes": (">" * 500 + " x\n") * 2_000,
    "boxes in boxes": "::: a\n" * 50_000,
    "headings": "".join(f"# {number}\n" for number in range(200_000)),
    "links": ("[" * 400 + "a" + "](b)" * 400 + "\n\n") * 500,
    "one line": "otter " * 600_000,
    "tables": "| a | b |\n|---|---|\n" + "| x | y |\n" * 100_000,
}
LONGEST_SECONDS = 1.0
FOUND_SECONDS = 60.0

REQUESTS: dict[str, tuple[str, str, dict[str, str] | None]] = {
    "spaces between words": ("POST", "/api/v1/related", {"text": "a b c d e f g w" + " " * 99_900 + "!!w"}),
    "an address without an end": ("POST", "/api/v1/related", {"text": "[a](" + "x" * 60_000}),
    "a row that is none": ("GET", "/api/v1/semantic-search?q=quokka+zebrafish&markdown=true", None),
    "what could be linked": ("GET", "/api/v1/semantic-search/health", None),
}
STALLING = {
    "rule.md": "quokka zebrafish\n\na | b\n" + " " * 95_000 + "x-\n",
    "links.md": "The Heating page.\n\n[a](" + "x" * 70_000 + "\n",
    "brackets.md": "The quokka.\n\n" + "[" * 20_000,
}
ANSWER_SECONDS, SEARCH_SECONDS = 0.3, 0.5


@contextmanager
def searching(wiki: LiveWiki) -> Iterator[list[tuple[float, int, str]]]:
    """Search ten times a second while the block runs; yields the seconds, status and first page of each answer."""
    answers: list[tuple[float, int, str]] = []
    stop = threading.Event()

    def search() -> None:
        while not stop.wait(0.1):
            start = time.monotonic()
            reply = wiki.api("GET", "/semantic-search", q="a gurgling radiator")
            found = reply.json.get("results", [])
            answers.append((time.monotonic() - start, reply.status, found[0]["path"] if found else ""))

    thread = threading.Thread(target=search)
    thread.start()
    try:
        yield answers
    finally:
        stop.set()
        thread.join()


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("hostile")
    with LiveWiki(make_repository(place / "repository", HANDBOOK), place / "index", SEMANTIC_SYNC_INTERVAL="1") as live:
        live.wait_until_indexed()
        yield live


@pytest.mark.parametrize("kind", PAGES)
def test_searches_do_not_notice(wiki: LiveWiki, kind: str) -> None:
    word = f"quokka{list(PAGES).index(kind)}"
    with searching(wiki) as answers:
        commit(wiki.repository, {"hostile.md": f"The {word} is here.\n\n{PAGES[kind]}"})
        start = time.monotonic()
        eventually(lambda: wiki.search(f'"{word}"'), FOUND_SECONDS, f"{word} is found")
        found = time.monotonic() - start
        wiki.wait_until_indexed(300)
    assert {answer[1:] for answer in answers} == {(200, "house/heating")}
    slowest = max(answer[0] for answer in answers)
    print(f"{kind}: found after {found:.1f} s, {len(answers)} searches, the slowest took {slowest:.2f} s")
    assert slowest < LONGEST_SECONDS
    reply = wiki.api("GET", "/semantic-search/pages/hostile")
    assert reply.status == 200 or (reply.status, reply.json["error"]["code"]) == (503, "page_unreadable")


def test_no_request_stalls_the_searches(tmp_path: Path) -> None:
    with LiveWiki(make_repository(tmp_path / "repository", HANDBOOK | STALLING), tmp_path / "index") as live:
        live.wait_until_indexed()
        live.api("GET", "/semantic-search/health")  # the first report reads all pages
        taken: dict[str, float] = {}
        with searching(live) as answers:
            for kind, (method, route, asked) in REQUESTS.items():
                start = time.monotonic()
                body = json.dumps(asked).encode() if asked else None
                reply = live.request(method, route, body, {"Content-Type": "application/json"})
                taken[kind] = time.monotonic() - start
                assert reply.status == 200, kind
            for _ in range(3):
                reply = live.request("GET", "/-/semantic-search/preview?path=brackets")
                assert "takes too long to render" in reply.text
    slowest = max(answer[0] for answer in answers)
    print(taken, f"{len(answers)} searches, the slowest took {slowest:.2f} s")
    assert {answer[1] for answer in answers} == {200}
    assert slowest < SEARCH_SECONDS
    assert max(taken.values()) < ANSWER_SECONDS
