"""The time that a cross-encoder takes to read the best passages of a search again, on this processor."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Sequence

from benchmarks.parts.embedding import chunks_and_queries
from benchmarks.support.baseline import HOW_TO_GET_IT, PYTHON, is_there
from benchmarks.support.options import ROOT, Options
from benchmarks.support.report import Figure, at_most, missing, say

_PASSAGES = 30
"""As many as a search lets a reranker read."""
_QUERIES = 10
_MOST_MS = 2_000
"""What a search gives a reranker."""
_NAME = f"reading {_PASSAGES} passages again, p95"


def measure(options: Options) -> list[Figure]:
    """Return the milliseconds of a question's passages: median, what 95 % stay below, and of all processors together."""
    if not is_there():
        say(HOW_TO_GET_IT)
        return [missing(_NAME, "ms", HOW_TO_GET_IT, f"≤ {_MOST_MS:,}")]
    texts, queries = chunks_and_queries(_PASSAGES, _QUERIES)
    facts, seconds, work = _seconds(texts, list(queries) * options.rounds)
    p95 = statistics.quantiles(seconds, n=20)[-1] * 1e3
    note = f"{len(seconds)} questions; MiniLM-L6's size, 32-bit; {facts}"
    return [
        Figure(f"reading {_PASSAGES} passages again, median", statistics.median(seconds) * 1e3, "ms", note=note),
        at_most(_NAME, p95, "ms", _MOST_MS),
        Figure("the same, of all processors, median", statistics.median(work) * 1e3, "ms", note="on a busy machine, too"),
    ]


def _seconds(texts: Sequence[str], queries: Sequence[str]) -> tuple[str, list[float], list[float]]:
    """Return the reader's versions, and each question's seconds, and those of all processors; the first one only warms it."""
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1", "PYTHONPATH": str(ROOT)}
    asked = [json.dumps({"query": query, "texts": texts}) for query in [queries[0], *queries]]
    done = subprocess.run(
        [str(PYTHON), "-m", "benchmarks.support.torch_reranker"],
        input="\n".join(asked) + "\n",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, **quiet},
    )
    facts, _, *answers = map(json.loads, done.stdout.splitlines())
    seconds, work = ([float(answer[name]) for answer in answers] for name in ("seconds", "processor_seconds"))
    return str(facts["facts"]), seconds, work
