"""Pages that are many or large: as many and as large as a test has time for."""

from __future__ import annotations

from pathlib import Path

from otterwiki_semantic.core.records import Chunk
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chunks import chunks_of
from tests.support.live_wiki import commit, git, make_repository
from tests.support.sync_bench import Bench, section

LINE = "The same sentence fills this page from its first line to its last one. "
_KINDS = 10
_FOLDERS = 100


def index_and_move(place: Path, count: int) -> None:
    """Index `count` pages with ten different texts, move half of the folders, and check that no text is embedded twice."""
    repository = make_repository(place / "repository", {})
    texts = [f"---\ntitle: Kind {kind}\n---\n{section(f'kind {kind}')}" for kind in range(_KINDS)]
    for number in range(count):
        path = repository / f"part{number % _FOLDERS}" / f"page{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(texts[number % _KINDS])
    commit(repository, {})
    bench = Bench(place, {})
    assert len(bench.sync()) == _KINDS
    assert bench.generation.catalog.counts().pages == count
    (repository / "moved").mkdir()
    git(repository, "mv", *(f"part{number}" for number in range(_FOLDERS // 2)), "moved/")
    git(repository, "commit", "-qm", "moved")
    assert bench.sync() == []
    paths = set(bench.generation.catalog.pages.blobs())
    assert len(paths) == count
    assert sum(path.startswith("moved/") for path in paths) == count // 2
    bench.generation.close()


def chunks_of_large_page(size: int, model: BundledModel) -> tuple[Chunk, ...]:
    """Return the chunks of a page of `size` bytes."""
    return chunks_of(LINE * (size // len(LINE)), counter=model)
