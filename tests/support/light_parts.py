"""Light stand-ins for what an index starts: the reading process, ChromaDB, and a model's session of its own.

A test that is about one of them is marked `real_parts`, and gets what users get.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import pytest

from otterwiki_semantic.core.errors import LimitExceededError
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, BundledModel
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from otterwiki_semantic.embedding.local.onnx_session import OpenedGraph

P = ParamSpec("P")
T = TypeVar("T")

_open_model = BundledModel.open
_shared_model: list[OpenedGraph] = []


def install(patch: pytest.MonkeyPatch) -> None:
    """Replace the heavy parts of this process until `patch` is undone."""
    patch.setattr(WorkerProcess, "call", _call_inline)
    patch.setattr(EmbeddedChromaStore, "_open", _open_in_memory)
    patch.setattr(BundledModel, "open", _open_shared)


def _call_inline(
    worker: WorkerProcess, _seconds: float, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs
) -> T:
    """Call a function in this process, without limits."""
    if worker._is_closed:
        raise LimitExceededError("was stopped")
    return function(*arguments, **keywords)


def _open_shared(model: BundledModel) -> OpenedGraph:
    """Return one session for all bundled models of this process: opening one takes 0.1 s."""
    if model._directory != BUNDLED_MODEL:
        return _open_model(model)
    if not _shared_model:
        _shared_model.append(_open_model(model))
    model._opened = _shared_model[0]
    return model._opened


def _open_in_memory(store: EmbeddedChromaStore) -> Collection:
    with store._opening:
        store._check_open()
        if store._opened is None:
            store._opened = MemoryCollection(store.directory, store._own_metadata())  # type: ignore[assignment]
        assert store._opened is not None
        return store._opened


class MemoryStore(EmbeddedChromaStore):
    """A vector store without ChromaDB, which compares all vectors with each other."""

    _open = _open_in_memory


class MemoryCollection:
    """What a store needs of ChromaDB's `Collection`. Vectors are kept in a file, so that they outlive an engine."""

    def __init__(self, directory: Path, metadata: dict[str, Any]) -> None:
        self._file = directory / "vectors.pickle"
        self._vectors: dict[str, Matrix] = pickle.loads(self._file.read_bytes()) if self._file.exists() else {}
        self.modify(metadata)

    def modify(self, metadata: dict[str, Any]) -> None:
        self.metadata = metadata
        self._save()

    def upsert(self, ids: Sequence[str], embeddings: Matrix, **contents: Any) -> None:
        assert all(len(each) == len(ids) for each in contents.values())
        json.dumps(contents)  # nothing else can be stored
        self._vectors.update(zip(ids, embeddings, strict=True))
        self._save()

    def update(self, ids: Sequence[str], metadatas: Sequence[Any]) -> None:
        assert len(ids) == len(metadatas)
        json.dumps(metadatas)

    def delete(self, ids: Sequence[str]) -> None:
        for each in ids:
            self._vectors.pop(each, None)
        self._save()

    def query(self, query_embeddings: Matrix, n_results: int, include: Sequence[str]) -> dict[str, Any]:
        assert include == ["distances"]
        if not self._vectors:
            return {"ids": [[]], "distances": [[]]}
        ids, distances = list(self._vectors), 1 - np.stack(list(self._vectors.values())) @ query_embeddings[0]
        nearest = np.argsort(distances, kind="stable")[:n_results]
        return {"ids": [[ids[place] for place in nearest]], "distances": [distances[nearest].tolist()]}

    def get(self, include: Sequence[str], limit: int, offset: int) -> dict[str, Any]:
        assert include == []
        return {"ids": list(self._vectors)[offset : offset + limit]}

    def count(self) -> int:
        return len(self._vectors)

    def _save(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_bytes(pickle.dumps(self._vectors))
