"""What takes minutes at full size; `make test` does the same with less."""

from __future__ import annotations

from pathlib import Path

from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.large_wikis import chunks_of_large_page, index_and_move


def test_twenty_thousand_pages_are_indexed_and_moved(tmp_path: Path) -> None:
    index_and_move(tmp_path, 20_000)


def test_a_page_of_ten_megabytes_is_read(model: BundledModel) -> None:
    assert len(chunks_of_large_page(10_000_000, model)) > 5_000
