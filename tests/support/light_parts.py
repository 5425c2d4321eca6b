"""Light stand-ins for what an index starts: the reading process, ChromaDB, and a model's session of its own.

A module of tests that is about one of them is marked `real_parts`, and gets what users get. This one is imported by every
process that tests start, and therefore imports little.
"""

from __future__ import annotations

import json
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from chromadb.api.models.Collection import Collection

    from otterwiki_semantic.core.worker_process import WorkerProcess
    from otterwiki_semantic.embedding.base import Matrix
    from otterwiki_semantic.embedding.local.bundled import BundledModel
    from otterwiki_semantic.embedding.local.onnx_session import OpenedGraph
    from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore

P = ParamSpec("P")
T = TypeVar("T")
Set = Callable[[Any, str, object], None]
Replace = Callable[[Any, Set], None]

PYTHON, LIMITED_PYTHON = "TEST_PYTHON", "TEST_LIMITED_PYTHON"
"""The environment variables with the interpreters of processes that tests start, and of workers that read pages.

See `tests.support.fork_server`.
"""
NICE = {
    "otterwiki_semantic.storage.chroma.embedded": "_NICENESS",
    "otterwiki_semantic.daemon.wiki_map.builder": "_NICENESS",
    "otterwiki_semantic.embedding.local.onnx_session": "_BACKGROUND_NICENESS",
    "otterwiki_semantic.indexing.page_loader": "_NICENESS",
}
"""What works in the background yields to everything else: other tests on a busy machine would hold it up for minutes."""
SESSION = "TEST_SESSION"
"""The environment variable with the directory of a session of tests: what was embedded and compiled, and fork servers."""
REAL = "TEST_REAL_PARTS"
"""The environment variable that has processes use real parts, though they are forked."""
GRAPH_AFTER = "TEST_GRAPH_AFTER"
"""The environment variable with the number of vectors after which ChromaDB writes its graph to files: else after a thousand."""
SITE = Path(__file__).with_name("site")
"""With this directory in PYTHONPATH, a process has light parts from its start."""

_shared_model: list[OpenedGraph] = []


@contextmanager
def installed(*, real: bool = False) -> Iterator[None]:
    """Have light parts in this process, and in those started while the block runs, unless searches are to use ChromaDB.

    With `real`, parts are what users get, but processes are forked.
    """
    import pytest

    from tests.support import fork_server

    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("SEMANTIC_VECTOR_SEARCH") != "chroma":
            patch.setenv(REAL, "1") if real else patch.delenv(REAL, raising=False)
            for name, replace in REPLACEMENTS.items():
                replace(import_module(name), patch.setattr)
            for place in (SITE.parent.parent.parent, SITE):
                patch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
            patch.setenv(PYTHON, fork_server.started("index"))
            if real:
                patch.setenv(LIMITED_PYTHON, fork_server.started("limited"))
        yield


def _share_model(module: Any, set_attribute: Set) -> None:
    """Have all bundled models of this process share a session, and those of all processes what they embedded."""
    open_own, run = module.BundledModel.open, module.BundledModel._run

    def open_shared(model: BundledModel) -> OpenedGraph:
        if model._directory != module.BUNDLED_MODEL:
            return open_own(model)  # type: ignore[no-any-return]
        if not _shared_model:
            _shared_model.append(open_own(model))
        model._opened = _shared_model[0]
        return model._opened

    def run_once(model: BundledModel, ids: Sequence[int]) -> Any:
        import numpy as np

        if model._directory != module.BUNDLED_MODEL or SESSION not in os.environ:
            return run(model, ids)
        known = Path(os.environ[SESSION]) / "vectors" / blake2b(repr(ids).encode(), digest_size=16).hexdigest()
        with suppress(FileNotFoundError):
            return np.frombuffer(known.read_bytes(), np.float32)
        vector = run(model, ids)
        unfinished = known.with_suffix(f".{threading.get_native_id()}")
        unfinished.write_bytes(vector.tobytes())
        unfinished.replace(known)
        return vector

    set_attribute(module.BundledModel, "open", open_shared)
    set_attribute(module.BundledModel, "_run", run_once)


def _fork_daemon(module: Any, set_attribute: Set) -> None:
    find = module._python
    set_attribute(module, "_python", lambda: os.environ.get(PYTHON) or find())


def _replace_workers(module: Any, set_attribute: Set) -> None:
    """Have pages read in this process, without limits; with real parts, fork worker processes.

    Page readers have a server of their own: their memory limit leaves no room for other imports.
    """
    init, call_process = module.WorkerProcess.__init__, module.WorkerProcess.call

    def start_forked(worker: WorkerProcess, *arguments: Any, **keywords: Any) -> None:
        init(worker, *arguments, **keywords)
        interpreter = LIMITED_PYTHON if worker._command[-1] == str(module.MEMORY_BYTES) else PYTHON
        worker._command = (os.environ.get(interpreter) or worker._command[0], *worker._command[1:])

    def call(worker: WorkerProcess, seconds: float, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        if REAL in os.environ:
            return cast("T", call_process(worker, seconds, function, *arguments, **keywords))
        if worker._is_closed:
            raise module.LimitExceededError("was stopped")
        return function(*arguments, **keywords)

    set_attribute(module.WorkerProcess, "__init__", start_forked)
    set_attribute(module.WorkerProcess, "call", call)


def _share_templates(module: Any, set_attribute: Set) -> None:
    """Have the wiki's templates compiled once in a session."""
    from jinja2.bccache import FileSystemBytecodeCache

    init = module.Environment.__init__

    def init_with_cache(environment: Any, **options: Any) -> None:
        cache = FileSystemBytecodeCache(str(Path(os.environ[SESSION]) / "templates"))
        init(environment, **{"bytecode_cache": cache, **options})

    set_attribute(module.Environment, "__init__", init_with_cache)


def _hash_quickly(module: Any, set_attribute: Set) -> None:
    """Have passwords hashed in 3 ms instead of 110, when somebody registers or logs in."""
    hash_slowly = module._hash_internal

    def hash_quickly(method: str, salt: str, password: str) -> tuple[str, str]:
        found: tuple[str, str] = hash_slowly("scrypt:1024:8:1" if method == "scrypt" else method, salt, password)
        return found

    set_attribute(module, "_hash_internal", hash_quickly)


def _build_urls_late(module: Any, set_attribute: Set) -> None:
    """Have what builds the URLs of a route compiled for the first of them: the wiki has 133 routes, in 90 ms."""
    compile_now = module.Rule._compile_builder

    def compile_late(rule: Any, append_unknown: bool = True) -> Callable[..., Any]:
        compiled = cache(lambda: compile_now(rule, append_unknown))
        return lambda _, /, **values: compiled()(rule, **values)

    set_attribute(module.Rule, "_compile_builder", compile_late)


def _replace_chroma(module: Any, set_attribute: Set) -> None:
    """Have vectors stored in memory; with real parts, have ChromaDB write its graph to files when `GRAPH_AFTER` says so."""
    open_store, open_collection = module.EmbeddedChromaStore._open, module._opened

    def opened(*arguments: Any) -> Any:
        if after := os.environ.get(GRAPH_AFTER):
            module.HNSW["sync_threshold"] = int(after)
        return open_collection(*arguments)

    def open_light_or_real(store: EmbeddedChromaStore) -> Collection:
        return cast("Collection", open_store(store)) if REAL in os.environ else open_in_memory(store)

    set_attribute(module.EmbeddedChromaStore, "_open", open_light_or_real)
    set_attribute(module, "_opened", opened)
    _work_at_full_priority(module, set_attribute)


def _compare_less(module: Any, set_attribute: Set) -> None:
    """Have other models compared by 24 headings and 32 passages: the bundled one embeds all of them."""
    set_attribute(module, "_QUESTIONS", 24)
    set_attribute(module, "_PASSAGES", 32)


def _work_at_full_priority(module: Any, set_attribute: Set) -> None:
    set_attribute(module, NICE[module.__name__], 0)


REPLACEMENTS: Mapping[str, Replace] = {
    **dict.fromkeys(NICE, _work_at_full_priority),
    "otterwiki_semantic.daemon.launcher": _fork_daemon,
    "otterwiki_semantic.core.worker_process": _replace_workers,
    "otterwiki_semantic.storage.chroma.embedded": _replace_chroma,
    "otterwiki_semantic.embedding.local.bundled": _share_model,
    "otterwiki_semantic.search.similarity_scale": _compare_less,
    "jinja2.environment": _share_templates,
    "werkzeug.routing.rules": _build_urls_late,
    "werkzeug.security": _hash_quickly,
}
"""What replaces parts of a module, by its name."""


def open_in_memory(store: EmbeddedChromaStore) -> Collection:
    """Return the collection of a store, without ChromaDB."""
    with store._opening:
        store._check_open()
        if "in_memory" not in vars(store):
            vars(store)["in_memory"] = MemoryCollection(store.directory, store._own_metadata())
        return cast("Collection", vars(store)["in_memory"])


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
        import numpy as np

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
