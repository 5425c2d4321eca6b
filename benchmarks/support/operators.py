"""What ONNX Runtime's profiler says of the bundled model: the share of each kind of operator in the time of a text."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL
from otterwiki_semantic.embedding.local.onnx_session import session_options

_KINDS = {
    "MultiHeadAttention": "attention: scores, softmax, weighted sum",
    "Gelu": "GELU",
    "Add": "additions and normalisations",
    "LayerNormalization": "additions and normalisations",
}
_PRODUCT = "DynamicQuantizeMatMul"
_PARTS = {
    ".attention.self.": "8-bit products: query, key, value",
    ".attention.output.": "8-bit products: output of attention",
    ".intermediate.": "8-bit products: first of the feed-forward pair",
    ".output.": "8-bit products: second of the feed-forward pair",
}
_REST = "embeddings, pooling and all else"
_KERNEL = "_kernel_time"
_WARM_UP = 5


def operator_seconds(texts: Sequence[Sequence[int]]) -> dict[str, float]:
    """Return the seconds that each kind of operator takes for texts, given as token ids; on one thread, first runs left out."""
    import onnxruntime

    options = session_options(is_optimised=True)
    options.enable_profiling = True
    with tempfile.TemporaryDirectory() as place:
        options.profile_file_prefix = f"{place}/operators"
        session = onnxruntime.InferenceSession(BUNDLED_MODEL / "model.onnx", options, providers=["CPUExecutionProvider"])
        for ids in [*texts[:_WARM_UP], *texts]:
            session.run(["embedding"], {"input_ids": np.array([ids], dtype=np.int64)})
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    kernels = [event for event in events if event.get("cat") == "Node" and event["name"].endswith(_KERNEL)]
    counted = kernels[len(kernels) * _WARM_UP // (_WARM_UP + len(texts)) :]
    seconds: Counter[str] = Counter()
    for event in counted:
        seconds[_kind(event["args"]["op_name"], event["name"])] += event["dur"] / 1e6
    return dict(seconds.most_common())


def _kind(operator: str, name: str) -> str:
    if operator == _PRODUCT:
        return next(kind for part, kind in _PARTS.items() if part in name)
    return _KINDS.get(operator, _REST)
