"""Export the collection to its own directory, for use by other programs."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from otterwiki_semantic.core.errors import IndexUnavailableError, SemanticError
from otterwiki_semantic.embedding import model_config
from otterwiki_semantic.storage.catalog import Catalog
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.vector_store import CollectionSpec

_BATCH = 100
_ATTEMPTS, _PAUSE_SECONDS = 50, 0.2

Progress = Callable[[int, int], None]
"""Called with the number of records written and the total."""


def export_collection(catalog_path: Path, directory: Path, name: str, progress: Progress | None = None) -> int:
    """Write one state of the index as a ChromaDB database with texts and metadata; return the number of records.

    The catalog may be in use. Errors: `SemanticError` if the directory is not empty, and the errors of the catalog and of
    ChromaDB. Leaves nothing behind on an error.
    """
    if directory.exists() and any(directory.iterdir()):
        raise SemanticError(f"{directory} is not empty: name a new directory")
    part = directory.with_name(f"{directory.name}.part")
    if part.exists():
        raise SemanticError(f"{part} exists: another export is writing it, or was killed; remove it")
    with TemporaryDirectory(prefix="otterwiki-semantic-") as place:
        copy = Path(place) / catalog_path.name
        with closing(Catalog(catalog_path)) as source:
            for _ in range(_ATTEMPTS):  # pages may be changing
                if source.commit is not None:
                    break
                time.sleep(_PAUSE_SECONDS)
            source.copy_to(copy)
        part.mkdir(parents=True)
        try:
            with closing(Catalog(copy)) as catalog:
                count = _fill(catalog, part, name, progress)
            if directory.exists():
                directory.rmdir()
            part.rename(directory)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    return count


def _fill(catalog: Catalog, directory: Path, name: str, progress: Progress | None) -> int:
    commit = catalog.commit
    if not catalog.is_current or commit is None:
        raise IndexUnavailableError("the index is not complete yet; wait for it with: otterwiki-semantic index")
    spec = replace(CollectionSpec(name), model=model_config(json.loads(catalog.meta("settings") or "{}")))
    catalog.outbox.refill()
    total, done, dimension = catalog.outbox.count()[0], 0, catalog.outbox.dimension
    with closing(EmbeddedChromaStore(directory, spec)) as store:
        while vectors := catalog.outbox.upserts(_BATCH):
            store.upsert(vectors)
            catalog.outbox.mark_upserted(vectors)
            done += len(vectors)
            if progress is not None:
                progress(done, total)
        store.describe(commit, dimension)
    return done
