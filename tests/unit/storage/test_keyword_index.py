"""How many chunks have a word, while pages change."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from otterwiki_semantic.storage import keyword_index
from tests.support.small_index import SmallIndex


def test_only_counts_of_common_words_are_used_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(keyword_index, "time", SimpleNamespace(monotonic=lambda: clock.now))
    small = SmallIndex(tmp_path / "index")
    words = ("sail", "hull", "mast")
    small.put("old", *((f"sail {number}", None) for number in range(1_000)), ("hull", None))
    frequencies = small.catalog.keywords.frequencies
    assert frequencies(words) == {"sail": 1_000, "hull": 1, "mast": 0}
    small.put("new", ("sail hull mast", None))
    assert frequencies(words) == {"sail": 1_000, "hull": 2, "mast": 1}
    clock.now += 0.06
    assert frequencies(words) == {"sail": 1_001, "hull": 2, "mast": 1}
    small.generation.close()
