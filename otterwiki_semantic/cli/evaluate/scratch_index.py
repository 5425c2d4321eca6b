"""A temporary index, built to evaluate a model or a chunk profile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.chunking import Profile, TokenCounter, count_words
from otterwiki_semantic.content.pages import read_page
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding import profile_for

_CLOSE_SECONDS = 120.0
"""Longer than any step takes: a running step would write to the directory after its removal."""


@contextmanager
def scratch_index(
    settings: Settings, chunks: str, wait: Callable[[IndexService], object]
) -> Iterator[tuple[IndexService, dict[str, Any]]]:
    """Build an index with this chunk profile in this process and a temporary directory; yield it and the facts for `runs.Run`.

    `wait` returns when it is built.
    """
    with TemporaryDirectory(prefix="otterwiki-semantic-", ignore_cleanup_errors=True) as place:
        start = time.perf_counter()
        own = replace(settings, chunks=chunks, data_dir=Path(place), pages=())
        index = IndexEngine(replace(own, chroma_url=None, eval_queries=None, search_log=False))  # leaves no trace
        try:
            index.start()
            wait(index)
            seconds = time.perf_counter() - start
            profile = profile_for(index.embedder, chunks)
            words = _mean_words(Repository.of(settings), index.embedder, profile)
            yield index, {"chunks": index.status().chunks, "words_per_chunk": words, "build_seconds": round(seconds, 1)}
        finally:
            index.close(_CLOSE_SECONDS)


def _mean_words(repository: Repository, counter: TokenCounter, profile: Profile) -> float:
    """Return the mean number of words of HEAD's chunks, with overlaps, without heading paths."""
    head = repository.head()
    files = list(repository.pages(head).values()) if head else []
    contents = repository.read_blobs(file.blob for file in files)
    chunks = (
        chunk
        for file, content in zip(files, contents, strict=True)
        for chunk in read_page(file.path, file.blob, content, counter, profile).chunks
    )
    words = [count_words(chunk.text[chunk.prefix_length :]) for chunk in chunks]
    return round(fmean(words), 1) if words else 0.0
