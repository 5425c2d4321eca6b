"""A temporary index, built to evaluate a model or a chunk profile."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.storage import Catalog

_CLOSE_SECONDS = 120.0
"""Longer than any step takes: a running step would write to the directory after its removal."""

_REPEAT_SECONDS = 0.01


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on SIGTERM as well, so that a scratch index, which has the wiki's text, is removed.

    Python ignores exceptions in destructors and callbacks of weak references; an interrupt that arrives there is repeated.
    """
    signals, hook = (signal.SIGTERM, signal.SIGALRM), sys.unraisablehook

    def repeat(ignored: sys.UnraisableHookArgs) -> None:
        if issubclass(ignored.exc_type, KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_SECONDS)
        else:
            hook(ignored)

    handlers = [signal.signal(each, signal.default_int_handler) for each in signals]
    sys.unraisablehook = repeat
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = hook
        for each, handler in zip(signals, handlers, strict=True):
            signal.signal(each, handler)


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
            words = _words_of_chunks(own.data_dir / "generations" / str(index.status().generation) / "catalog.sqlite3")
            mean = round(fmean(words), 1) if words else 0.0
            yield index, {"chunks": len(words), "words_per_chunk": mean, "build_seconds": round(seconds, 1)}
        finally:
            index.close(_CLOSE_SECONDS)


def _words_of_chunks(path: Path) -> list[int]:
    """Return the number of words of each chunk in a catalog, with overlaps, without heading paths."""
    with closing(Catalog(path, vectors="disk")) as catalog:
        chunks = catalog.reader.chunks(catalog.reader.exact_index().columns.ids.tolist()).values()
        return [count_words(chunk.text[chunk.prefix_length :]) for chunk in chunks]
