"""What a sync finds to do: git and the catalog are real, no model is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.records import Chunk, Page
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer, SyncPlan
from otterwiki_semantic.storage import StoredVector
from otterwiki_semantic.storage.catalog import Catalog
from tests.support.live_wiki import commit, git, make_repository

CHUNK = Chunk("a text that the model fails on", 0, 0, "", (), (), "", 1, 1)
VECTOR = vector_id(CHUNK.text)


class Bench:
    """A repository, and a catalog that follows the plans without reading a page."""

    def __init__(self, place: Path) -> None:
        self.place = make_repository(place / "repository", {"long.md": "# Long\n\n" + "text " * 99, "short.md": "# Short\n"})
        self.repository = Repository(self.place)
        self.catalog = Catalog(place / "catalog.sqlite3")
        self.indexer = Indexer(self.repository, IndexRecipe(BundledModel(), "auto"))

    def follow(self, plan: SyncPlan | None, lacking: tuple[str, ...] = ()) -> None:
        assert plan is not None
        self.catalog.remove_pages(plan.removed)
        self.catalog.put_pages(
            (Page(file.path, file.blob, file.path, None, (), 1, (CHUNK,) if file.path in lacking else ()), [VECTOR])
            if file.path in lacking
            else (Page(file.path, file.blob, file.path, None, (), 1, ()), ())
            for file in plan.changed
        )
        self.catalog.set_last_changes(plan.last_changes)
        self.catalog.end_change(plan.head)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.catalog.close()


def paths(plan: SyncPlan | None) -> list[str]:
    assert plan is not None
    return [file.path for file in plan.changed]


def test_a_first_sync_indexes_every_page_smallest_first(bench: Bench) -> None:
    plan = bench.indexer.plan(bench.catalog)
    assert plan is not None
    assert (plan.head, paths(plan), plan.removed) == (bench.repository.head(), ["short", "long"], [])
    assert plan.last_changes.keys() == {"short", "long"}
    assert (plan.embed, plan.previous) == (True, None)


def test_an_index_that_equals_head_has_nothing_to_do(bench: Bench) -> None:
    bench.follow(bench.indexer.plan(bench.catalog))
    assert bench.indexer.plan(bench.catalog) is None


def test_only_what_differs_is_planned_and_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.follow(bench.indexer.plan(bench.catalog))
    monkeypatch.delattr(Repository, "page_blobs")
    commit(bench.place, {"short.md": "# Shorter\n", "new.md": "# New page\n", "long.md": None})
    plan = bench.indexer.plan(bench.catalog, embed=False, previous=bench.catalog)
    assert plan is not None
    assert (sorted(paths(plan)), list(plan.removed)) == (["new", "short"], ["long"])
    assert plan.last_changes.keys() >= {"new", "short"}
    assert (plan.embed, plan.previous) == (False, bench.catalog)


def test_a_sync_that_was_broken_off_compares_every_page(bench: Bench) -> None:
    bench.follow(bench.indexer.plan(bench.catalog))
    bench.catalog.begin_change("another commit")
    bench.catalog.remove_pages(["short"])
    assert paths(bench.indexer.plan(bench.catalog)) == ["short"]


def test_unfinished_pages_are_retried_when_they_are_due_or_head_moves(bench: Bench) -> None:
    bench.follow(bench.indexer.plan(bench.catalog), lacking=("long",))
    assert bench.catalog.unfinished == 1
    assert bench.indexer.plan(bench.catalog) is None
    assert paths(bench.indexer.plan(bench.catalog, retry_unfinished=True)) == []
    assert [path for path, *_ in bench.catalog.vectors.pending_pages()] == ["long"]
    commit(bench.place, {"new.md": "# New\n"})
    assert paths(bench.indexer.plan(bench.catalog)) == ["new"]
    bench.follow(bench.indexer.plan(bench.catalog))
    assert bench.catalog.unfinished == 1
    bench.catalog.vectors.add([StoredVector(VECTOR, np.eye(1, 384, dtype=np.float32)[0])])
    bench.catalog.end_change(bench.catalog.commit)
    assert bench.catalog.unfinished == 0
    assert bench.indexer.plan(bench.catalog, retry_unfinished=True) is None


def test_pages_that_were_invalidated_are_indexed_again(bench: Bench) -> None:
    bench.follow(bench.indexer.plan(bench.catalog))
    bench.catalog.invalidate_pages(["short"])
    assert paths(bench.indexer.plan(bench.catalog)) == ["short"]


def test_an_emptied_wiki_removes_every_page(bench: Bench) -> None:
    bench.follow(bench.indexer.plan(bench.catalog))
    git(bench.place, "rm", "-q", "*.md")
    git(bench.place, "commit", "-qm", "empty")
    plan = bench.indexer.plan(bench.catalog)
    assert plan is not None
    assert (paths(plan), sorted(plan.removed)) == ([], ["long", "short"])


def test_a_commit_without_a_page_leaves_what_searches_have_loaded(bench: Bench) -> None:
    bench.follow(bench.indexer.plan(bench.catalog))
    before = bench.catalog.reader.page_names()
    head = commit(bench.place, {"picture.txt": "no page"})
    plan = bench.indexer.plan(bench.catalog)
    assert plan is not None
    assert (plan.head, paths(plan), plan.removed, plan.last_changes) == (head, [], [], {})
    bench.catalog.set_last_changes(plan.last_changes)
    assert bench.catalog.reader.page_names() is before
