"""Runs a graph with ONNX Runtime, on the CPU or a GPU. On the CPU, each thread runs one text at a time.

A vector must not depend on the other texts of its batch: padding costs time, and dynamic quantisation scales activations by the
largest value in the batch. On the machines measured, this arrangement is also the fastest.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from otterwiki_semantic.core.errors import ModelError

if TYPE_CHECKING:
    from onnxruntime import InferenceSession, SessionOptions
    from tokenizers import Tokenizer

T = TypeVar("T", bound=Sized)
R = TypeVar("R")
_BACKGROUND_NICENESS = 10
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


class OpenedGraph(NamedTuple):
    """A graph that is ready to run, and its tokenizer, which neither pads nor truncates."""

    tokenizer: Tokenizer
    session: InferenceSession

    @property
    def device(self) -> str:
        """The device that runs the graph: `cuda` or `cpu`."""
        return "cuda" if _CUDA in self.session.get_providers() else "cpu"


def open_graph(graph: Path, tokenizer: Path, *, is_optimised: bool, device: str = "cpu") -> OpenedGraph:
    """Open a model's files; an optimised graph runs unchanged. For `device` see `Settings`. Errors: `ModelError`."""
    import onnxruntime
    from tokenizers import Tokenizer

    providers = execution_providers(device, onnxruntime.get_available_providers())
    if _CUDA in providers and hasattr(onnxruntime, "preload_dlls"):  # 1.21 and later: finds the CUDA that pip installs
        onnxruntime.preload_dlls()
    try:
        session = onnxruntime.InferenceSession(graph, session_options(is_optimised=is_optimised), providers=providers)
        opened = OpenedGraph(Tokenizer.from_file(str(tokenizer)), session)
    except Exception as error:  # both libraries raise bare exceptions
        raise ModelError(f"the model in {graph.parent} cannot be opened: {error}") from error
    if device == "cuda" and opened.device != "cuda":  # the library falls back to the CPU
        raise ModelError(
            "SEMANTIC_DEVICE is 'cuda', but ONNX Runtime cannot use the GPU: driver, CUDA or cuDNN are missing or of another "
            'version; install them, such as with: pip install "onnxruntime-gpu[cuda,cudnn]"; or set SEMANTIC_DEVICE=cpu'
        )
    opened.tokenizer.no_padding()
    opened.tokenizer.no_truncation()
    return opened


def session_options(*, is_optimised: bool) -> SessionOptions:
    """Return the session options: one thread per text; an optimised graph runs unchanged."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised
    options.enable_mem_pattern = False  # texts differ in length: buffers planned for a single shape accumulate
    options.add_session_config_entry("session.use_device_allocator_for_initializers", "1")  # an arena rounds weights up
    if is_optimised:  # more fusions would slow it down
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return options


def execution_providers(device: str, available: Sequence[str]) -> list[str]:
    """Return the execution providers to use from `available`, by preference. Errors: `ModelError` if there is none."""
    if device == "cuda" and _CUDA not in available:
        raise ModelError(
            f"SEMANTIC_DEVICE is 'cuda', but the installed ONNX Runtime has only {', '.join(available)}; replace it with: "
            'pip uninstall onnxruntime && pip install "onnxruntime-gpu[cuda,cudnn]"; or set SEMANTIC_DEVICE=cpu'
        )
    return [_CPU] if device == "cpu" or _CUDA not in available else [_CUDA, _CPU]


class BackgroundThreads:
    """Low-priority threads, started on first use; by default one per CPU available to this process."""

    def __init__(self, threads: int | None) -> None:
        self._pool = ThreadPoolExecutor(threads or len(os.sched_getaffinity(0)), "embedding", _lower_priority)

    def map(self, run: Callable[[list[T]], Sequence[R]], items: Sequence[T], batch: int) -> list[R]:
        """Return the results of `run`, called with up to `batch` items of similar length, in the order of `items`."""
        longest_first = sorted(range(len(items)), key=lambda index: -len(items[index]))
        batches = [longest_first[start : start + batch] for start in range(0, len(items), batch)]
        results = self._pool.map(lambda indexes: run([items[index] for index in indexes]), batches)
        by_index = dict(zip(longest_first, chain.from_iterable(results), strict=True))
        return [by_index[index] for index in range(len(items))]


def _lower_priority() -> None:
    """Lower the priority of the calling thread, unless it is lower still; Linux supports this for single threads."""
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, max(os.getpriority(os.PRIO_PROCESS, thread), _BACKGROUND_NICENESS))
