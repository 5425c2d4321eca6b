"""Run `projection` in a process of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from typing import IO

import numpy as np

from otterwiki_semantic.core.errors import MapError
from otterwiki_semantic.daemon.wiki_map.projection import LENGTH_BYTES, LIBRARY_MISSING, Places
from otterwiki_semantic.embedding import Matrix

_COMMAND = (sys.executable, "-P", "-m", "otterwiki_semantic.daemon.wiki_map.projection")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_REASON_BYTES = 500
_MISSING = 'scikit-learn is not installed: pip install "otterwiki-semantic[map]", then restart the wiki'

Process = subprocess.Popen[bytes]


class ProjectionProcess:
    """Runs one projection at a time; its process ends with this one in any case, because its input is closed then."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Process | None = None
        self._is_stopped = False

    def project(self, vectors: Matrix, last: Places) -> Places:
        """Return the positions that `projection.project` computes. Errors: `MapError` says why it failed and what to do."""
        try:
            with tempfile.TemporaryFile() as errors, self._start(errors) as process:
                answer, status = _exchange(process, _message(vectors, last))
                reason = _last_line(errors)
        except OSError as error:
            raise MapError(f"the map cannot be made: {error}") from error
        if status == LIBRARY_MISSING:
            raise MapError(f"the map cannot be made, because {_MISSING}{reason}")
        if status:
            raise MapError(f"the process that makes the map ended with status {status}{reason}; it is retried automatically")
        return _places(answer, len(vectors))

    def _start(self, errors: IO[bytes]) -> Process:
        environment = os.environ | dict.fromkeys(_THREADS, "1")
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        with self._lock:
            if self._is_stopped:
                raise MapError("the index daemon is ending")
            self._running = subprocess.Popen(
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
            )
            return self._running

    def stop(self) -> None:
        """Kill the process, if one runs, and start no other."""
        with self._lock:
            self._is_stopped = True
            if self._running is not None:
                self._running.kill()


def _message(vectors: Matrix, last: Places) -> bytes:
    arrays = io.BytesIO()
    np.savez(arrays, vectors=vectors, last=last)
    return len(arrays.getvalue()).to_bytes(LENGTH_BYTES, "big") + arrays.getvalue()


def _exchange(process: Process, message: bytes) -> tuple[bytes, int]:
    """Return the answer and the exit status; the input stays open until then, because the process ends when it is closed."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        process.stdin.write(message)
        process.stdin.flush()
    answer, status = process.stdout.read(), process.wait()
    with suppress(BrokenPipeError):
        process.stdin.close()
    return answer, status


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode("utf-8", errors="replace").strip().splitlines()
    return f" ({lines[-1][:_REASON_BYTES]})" if lines else ""


def _places(answer: bytes, count: int) -> Places:
    try:
        places: Places = np.load(io.BytesIO(answer))
    except (ValueError, EOFError) as error:
        raise MapError(f"the process that makes the map returned no positions: {error}; it is retried automatically") from error
    if places.shape != (count, 2) or not np.isfinite(places).all():
        raise MapError("the process that makes the map returned invalid positions; it is retried automatically")
    return places
