"""Pages that break the parser or the model: the others are found, and so are their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.records import Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.page_loader import CrashLog
from tests.support.live_wiki import commit, eventually

pytestmark = pytest.mark.real_parts


def opened(settings: Settings) -> IndexEngine:
    index = IndexEngine(settings)
    index.start()
    eventually(lambda: index.status().index.commit is not None and index.status().status != "indexing")
    return index


def best(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> str | None:
    hits = index.search([query], SearchOptions(1, 1, mode))[0].results
    return hits[0].path if hits else None


POISON = {"poison.md": "# Poison\n\nThe quokka makes it choke.\n", "after.md": "# After\n\nThe wombat comes after it.\n"}

BOMB = "".join(" " * (2 * (depth % 400)) + "- x\n" for depth in range(4_000)) + "\nThe quokka is at the end.\n"
"""Each list in a list is read again from its beginning: 800 KB that take minutes."""


def test_a_page_that_takes_too_long_is_plain_text_and_named(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader.parse_seconds", lambda _: 0.5)
    monkeypatch.setattr("otterwiki_semantic.core.worker_process._CLOCK_FACTOR", 100)  # the machine may be busy
    commit(settings.repository, {"bomb.md": BOMB, "after.md": "# After\n\nThe wombat comes after it.\n"})
    index = opened(settings)
    assert best(index, "quokka") == "bomb"
    assert best(index, "wombat") == "after"
    (problem,) = index.status().problems
    assert "1 page is not indexed as it should be: bomb: it is indexed as plain text, because parsing it" in problem.message
    assert "took longer than 0.5 s of processor time" in problem.message
    commit(settings.repository, {"bomb.md": "# Mended\n\nThe quokka.\n"})
    index.notify()
    eventually(lambda: index.status().problems == ())
    index.close()


def test_only_the_beginning_of_a_huge_page_is_indexed(settings: Settings) -> None:
    begin, end = "# Huge\n\nThe quokka begins.\n", "\nThe wombat ends.\n"
    commit(settings.repository, {"huge.md": begin + 200 * (" " * 9_999 + "\n") + end})
    index = opened(settings)
    assert best(index, "quokka") == "huge"
    assert best(index, '"wombat"') is None
    (problem,) = index.status().problems
    assert "huge: only its first 1,990,027 of 2,000,045 bytes are indexed" in problem.message
    commit(settings.repository, {"huge.md": begin + end})
    index.notify()
    eventually(lambda: best(index, '"wombat"') == "huge")
    eventually(lambda: index.status().problems == ())
    index.close()


def test_a_page_at_which_processes_ended_is_plain_text(settings: Settings) -> None:
    commit(settings.repository, POISON)
    (file,) = (page for path, page in Repository(settings.repository).pages("HEAD").items() if path == "poison")
    settings.data_dir.mkdir()
    for _ in range(3):
        with suppress(RuntimeError), CrashLog(settings.data_dir / "reading").reading(file):
            raise RuntimeError("the process ends")
    index = opened(settings)
    assert best(index, "quokka") == "poison"
    (problem,) = index.status().problems
    assert "poison: it is indexed as plain text, because the index daemon ended 3 times in a row" in problem.message
    index.close()


def failing(method: Callable[..., Matrix], is_bad: Callable[[str], bool]) -> Callable[..., Matrix]:
    def embed(self: BundledModel, texts: Sequence[str]) -> Matrix:
        if any(map(is_bad, texts)):
            raise RuntimeError("a node of the graph failed")
        return method(self, texts)

    return embed


def test_a_page_that_breaks_the_model_is_found_by_its_words(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BundledModel, "embed", failing(BundledModel.embed, lambda text: "quokka" in text))
    commit(settings.repository, POISON)
    index = opened(settings)
    assert best(index, "quokka") == "poison"
    assert best(index, "wombat", Mode.SEMANTIC) == "after"
    assert best(index, "choking on a small marsupial", Mode.SEMANTIC) != "poison"
    status = index.status()
    assert status.index.pending_pages == 1
    (problem,) = status.problems
    assert "poison: a node of the graph failed" in problem.message
    assert index.related("after", 5).results
    monkeypatch.undo()
    commit(settings.repository, {"more.md": "# More\n\nAnd more.\n"})
    index.notify()
    eventually(lambda: index.status().index.pending_pages == 0 and index.status().pages == 8)
    eventually(lambda: best(index, "choking on a small marsupial", Mode.SEMANTIC) == "poison")
    assert index.status().problems == ()
    index.close()


def test_a_model_that_fails_on_everything_leaves_the_words(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(text: str) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(BundledModel, "embed", failing(BundledModel.embed, note))
    monkeypatch.setattr(BundledModel, "embed_queries", failing(BundledModel.embed_queries, lambda _: True))
    index = opened(settings)
    eventually(lambda: index.insight().syncs)  # it is listed when it has ended
    assert len(asked) < 12, "it is not asked again and again"
    answer = index.search(["radiator"], SearchOptions(1, 1))[0]
    assert answer.results[0].path == "house/heating"
    assert "the embedding model failed" in (answer.degraded or "")
    status = index.status()
    assert status.index.pending_pages == 5
    assert len(status.problems) == 2
    monkeypatch.undo()
    index._manager.syncs._unfinished_backoff.reset()
    index.notify()
    eventually(lambda: index.status().index.pending_pages == 0)
    assert best(index, "insects that make honey", Mode.SEMANTIC)
    eventually(lambda: index.status().problems == ())  # once the sync has ended, a moment later
    index.close()
