"""After any change in git, a sync leaves the index equal to HEAD, and embeds only new text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.sync import Stopped, changed_pages
from tests.support.large_wikis import LINE, chunks_of_large_page
from tests.support.live_wiki import commit, git
from tests.support.sync_bench import Bench, section


@pytest.fixture
def bench(tmp_path: Path, handbook: dict[str, str | bytes]) -> Iterator[Bench]:
    made = Bench(tmp_path, handbook)
    made.sync()
    yield made
    made.generation.close()


def test_the_index_holds_every_page_of_head(bench: Bench, handbook: dict[str, str | bytes]) -> None:
    assert sorted(bench.snippets()) == sorted(name.removesuffix(".md") for name in handbook)
    assert bench.generation.catalog.meta("commit") == git(bench.repository, "rev-parse", "HEAD")


def test_an_unchanged_repository_costs_nothing(bench: Bench) -> None:
    assert bench.sync() == []
    commit(bench.repository, {}, "an empty commit")
    assert bench.sync() == []


def test_an_edit_embeds_only_the_edited_section(bench: Bench) -> None:
    sections = [section(name) for name in ("one", "two", "three", "four")]
    commit(bench.repository, {"long.md": "# Long\n\n" + "".join(sections)})
    assert len(bench.sync()) == 4
    sections[2] = section("changed")
    commit(bench.repository, {"long.md": "# Long\n\n" + "".join(sections)})
    (text,) = bench.sync()
    assert text.startswith("[Long > changed]")
    assert bench.snippets() == bench.afresh()


def test_an_emptied_repository_empties_the_index(bench: Bench, handbook: dict[str, str | bytes]) -> None:
    commit(bench.repository, dict.fromkeys(handbook))
    bench.sync()
    assert bench.snippets() == {}
    assert bench.generation.mirror.store.count() == 0


def test_pages_without_vectors_are_not_done(bench: Bench) -> None:
    commit(bench.repository, {"one.md": "# One\n\nA text.\n", "two.md": "# Two\n\nAnother one.\n"})
    plan = bench.indexer.plan(bench.generation.catalog, embed=False)
    assert plan is not None
    bench.indexer.sync(bench.generation, plan, bench.tracker)
    found = bench.tracker.snapshot()
    assert (found.pages_done, found.pages_by_words, found.pages_total) == (0, 2, 2)


def test_a_repository_without_a_commit_is_an_empty_index(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {})
    bench.sync()
    assert bench.snippets() == {}
    commit(bench.repository, {"a.md": "# A\n\nNow there is something.\n"})
    bench.sync()
    assert list(bench.snippets()) == ["a"]
    bench.generation.close()


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00text \x80 that is not UTF-8",
        b">" * 1000 + b" quoted",
        b"- " * 1000 + b"x",
        b"[" * 50_000,
        b'---\ncategory: "\\ud800"\ntitle: "\\ud83d\\ude00"\n---\nhidden',
        b'---\nx: !!int ""\n---\nhidden',
        b"---\na: &a {k: v}\n" + b"b: &b {<<: [*a, *a, *a, *a]}\n" * 20 + b"---\nhidden",
    ],
    ids=["undecodable", "quotes", "lists", "brackets", "surrogates", "tags", "aliases"],
)
def test_a_bad_page_is_indexed_as_well_as_can_be_and_stops_no_other(bench: Bench, content: bytes) -> None:
    commit(bench.repository, {"bad.md": content, "good.md": "# Good\n\nA page like any other.\n"})
    bench.sync()
    snippets = bench.snippets()
    assert "good" in snippets
    assert "bad" in bench.generation.catalog.pages.blobs()
    assert snippets["bad"]


def test_a_large_page_is_read_and_the_small_ones_come_first(tmp_path: Path, model: BundledModel) -> None:
    assert len(chunks_of_large_page(400_000, model)) > 200
    bench = Bench(tmp_path, {"a_big.md": LINE * 500, "b.md": "# B\n\nsmall\n"})
    head = git(bench.repository, "rev-parse", "HEAD")
    changed, _ = changed_pages(Repository(bench.repository), bench.generation.catalog, head)
    assert [file.path for file in changed] == ["b", "a_big"]
    bench.generation.close()


def test_work_that_was_stopped_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.sync._TEXTS_PER_STEP", 4)
    bench = Bench(tmp_path, {f"p{i:03}.md": f"# Page {i}\n\n{section(str(i))}" for i in range(12)})
    bench.model.embed(["warm"])
    embed = bench.model.embed

    def embed_and_stop(texts: Sequence[str]) -> Matrix:
        bench.stop = True
        return embed(texts)

    bench.model.embed = embed_and_stop  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        bench.sync()
    bench.model.embed = embed  # type: ignore[method-assign]
    done = bench.generation.catalog.counts().vectors
    assert 0 < done < 12
    bench.stop = False
    assert len(bench.sync()) == 12 - done
    assert bench.snippets() == bench.afresh()
    bench.generation.close()


def test_a_head_that_moves_back_after_a_broken_sync_is_noticed(bench: Bench) -> None:
    before = bench.snippets()
    start = git(bench.repository, "rev-parse", "HEAD")
    commit(bench.repository, {"garden.md": "# Garden\n\nOnly weeds grow here now.\n"})
    catalog = bench.generation.catalog
    collect, catalog.vectors.collect_garbage = catalog.vectors.collect_garbage, lambda: (_ for _ in ()).throw(Stopped)  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        bench.sync()
    catalog.vectors.collect_garbage = collect  # type: ignore[method-assign]
    assert bench.snippets() != before
    git(bench.repository, "reset", "-q", "--hard", start)
    bench.sync()
    assert bench.snippets() == before
