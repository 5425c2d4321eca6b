"""sentence-transformers on PyTorch, in a process of ``.venv-bench``: what the bundled model is compared with."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.support.options import ROOT

PYTHON = Path(os.environ.get("BENCH_PYTHON", ROOT / ".venv-bench" / "bin" / "python"))
"""The interpreter that has PyTorch."""
HOW_TO_GET_IT = "the baseline is missing; get it with: make bench-deps"


def is_there() -> bool:
    """Whether the interpreter of the baseline was installed."""
    return PYTHON.is_file()


class Baseline:
    """The baseline's process; use it in a `with` statement. It rests while it is not asked. `facts` tells its versions."""

    def __init__(self) -> None:
        quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}
        self._process = subprocess.Popen(
            [str(PYTHON), str(Path(__file__).with_name("torch_baseline.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **quiet},
        )
        self.facts = str(self._answer()["facts"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def seconds(self, texts: Sequence[str], *, one_by_one: bool = False) -> list[float]:
        """Return the seconds that it takes to embed texts: together, a single value, or each by itself."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"texts": list(texts), "one_by_one": one_by_one}) + "\n")
        self._process.stdin.flush()
        return [float(value) for value in self._answer()["seconds"]]

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{PYTHON} ended with {self._process.wait()}; make bench-deps installs what it needs")
        return json.loads(line)
