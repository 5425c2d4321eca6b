"""What an index process does before the first person asks."""

from __future__ import annotations

import threading
from pathlib import Path

from otterwiki_semantic.core.records import SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import generation_of, opened
from tests.support.live_wiki import eventually, make_repository

PAGES = {
    "boiler.md": "# Boiler\n\nThe boiler in the cellar heats every radiator of the house.\n",
    "roof.md": "# Roof\n\nThe roof of the house was covered again before winter.\n",
}


def test_a_search_is_run_after_a_start_and_counted_nowhere(tmp_path: Path) -> None:
    settings = Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", pages=())
    opened(settings).close()
    index = IndexEngine(settings)
    index.start()
    serving = generation_of(index)
    assert serving.catalog.keywords.common_words(1) == ["house"]
    eventually(lambda: serving.catalog.reader._heading_words)  # the last that the search reads before it ranks
    eventually(lambda: not any(thread.name in {"warm-up", "follow-up"} for thread in threading.enumerate()))
    assert index._searcher.queries.cache_hits_and_misses == (0, 0)
    assert not any(hour.count for hour in index.insight().searches)
    index.search(["boiler"], SearchOptions())
    index.search(["boiler"], SearchOptions())
    assert index._searcher.queries.cache_hits_and_misses == (1, 1)
    index.close()
