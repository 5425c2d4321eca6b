"""Which generation serves."""

from __future__ import annotations

import os
from pathlib import Path

from otterwiki_semantic.storage import Generation, GenerationStore


def test_without_its_pointer_the_newest_complete_generation_serves(tmp_path: Path) -> None:
    store = GenerationStore(tmp_path)
    for hour, (name, commit) in enumerate({"old": "1", "new": "2", "unfinished": None}.items()):
        place = tmp_path / "generations" / name
        place.mkdir()
        generation = Generation(place)
        if commit:
            generation.catalog.set_meta("commit", commit)
        generation.close()
        os.utime(place / "catalog.sqlite3", (hour, hour))
    serving = store.open_current()
    assert serving is not None
    assert serving.catalog.meta("commit") == "2"
    serving.close()
    assert (tmp_path / "current").read_text().strip() == "new"
