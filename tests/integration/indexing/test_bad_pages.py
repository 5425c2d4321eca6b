"""Pages that break the parser or the model: the others are found, and so are their words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.records import Document, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.live_wiki import commit, eventually


def opened(settings: Settings) -> IndexEngine:
    index = IndexEngine(settings)
    index.start()
    eventually(lambda: index.status().index.commit is not None and index.status().status != "indexing")
    return index


def best(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> str | None:
    hits = index.search([query], SearchOptions(1, 1, mode))[0].results
    return hits[0].path if hits else None


POISON = {"poison.md": "# Poison\n\nThe quokka makes it choke.\n", "after.md": "# After\n\nThe wombat comes after it.\n"}


def test_a_page_that_breaks_the_parser_is_plain_text(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def choke(text: str) -> Document:
        if "quokka" in text:
            raise RecursionError("too deep")
        return parse_markdown(text)

    monkeypatch.setattr("otterwiki_semantic.indexing.sync.parse_markdown", choke)
    commit(settings.repository, POISON)
    index = opened(settings)
    assert best(index, "quokka") == "poison"
    assert best(index, "wombat") == "after"
    assert index.status().problems == ()
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
    assert best(index, "choking on a small marsupial", Mode.SEMANTIC) == "poison"
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
    index._manager._unfinished_backoff.reset()
    index.notify()
    eventually(lambda: index.status().index.pending_pages == 0)
    assert best(index, "insects that make honey", Mode.SEMANTIC)
    eventually(lambda: index.status().problems == ())  # once the sync has ended, a moment later
    index.close()
