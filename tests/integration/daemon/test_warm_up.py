"""What an index process does before the first person asks."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import IndexUnavailableError
from otterwiki_semantic.core.records import DraftRequest, SearchOptions, SuggestRequest
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import generation_of, opened
from tests.support.live_wiki import eventually, make_repository

PAGES = {
    "boiler.md": "# Boiler\n\nThe boiler in the cellar heats every radiator of the house.\n",
    "roof.md": "# Roof of the house\n\nThe roof was covered again before winter.\n",
}


def test_a_search_is_run_after_a_start_and_counted_nowhere(tmp_path: Path) -> None:
    settings = Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", pages=())
    opened(settings).close()
    index, frozen = IndexEngine(settings), gc.get_freeze_count()
    index.start()
    serving = generation_of(index)
    assert serving.catalog.keywords.common_words(1) == ["house"]
    eventually(lambda: serving.catalog.reader._heading_words)  # the last that the search reads before it ranks
    eventually(lambda: not any(thread.name in {"warm-up", "follow-up"} for thread in threading.enumerate()))
    assert gc.get_freeze_count() > frozen
    assert index._searcher.queries.cache_hits_and_misses == (0, 0)
    assert not any(hour.count for hour in index.insight().searches)
    index.search(["boiler"], SearchOptions())
    index.search(["boiler"], SearchOptions())
    assert index._searcher.queries.cache_hits_and_misses == (1, 1)
    index.close()


def test_what_needs_the_loaded_index_is_refused_while_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.storage.generation._LOADING_SECONDS", 0.0)
    index = opened(Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", pages=()))
    with generation_of(index)._loading:
        for ask in (
            lambda: index.search(["boiler"], SearchOptions()),
            lambda: index.suggest(SuggestRequest("boi", 3)),
            lambda: index.related("boiler", 3),
            lambda: index.draft_links(DraftRequest("The boiler hums.", "draft")),
        ):
            with pytest.raises(IndexUnavailableError, match="being loaded"):
                ask()
        assert index.status().pages == len(PAGES)
    assert index.search(["boiler"], SearchOptions())[0].results[0].path == "boiler"
    index.close()
