"""Any exported encoder: a directory with an ONNX graph and its tokenizer.json, as on model hubs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from otterwiki_semantic.content.chunking import word_counter_of
from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.model_files import ModelDirectory, Numbers, files_digest
from otterwiki_semantic.embedding.local.onnx_session import BackgroundThreads, open_graph
from otterwiki_semantic.embedding.model_info import check_known, model_options

_OUTPUTS = (
    ("sentence_embedding", 2),
    ("embedding", 2),
    ("last_hidden_state", 3),
    ("token_embeddings", 3),
    ("pooler_output", 2),
)
"""Common outputs by preference, with their ranks: 2 for a vector of the whole text, 3 for vectors of its tokens."""
_USUAL_WINDOWS = (512, 256, 128, 64)
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_GPU_BATCH = 32


class OnnxEncoder:
    """An `Encoder`; `batch` is the number of passages to embed at a time. Errors: `ModelError`."""

    def __init__(self, settings: Settings, batch: int | None = None) -> None:
        check_known(model_options(settings), (), "onnx")
        self._files = ModelDirectory(Path(settings.model.partition(":")[2]))
        self._prompts = {True: settings.query_prompt, False: settings.passage_prompt}
        opened = open_graph(self._files.graph, self._files.tokenizer, is_optimised=False, device=settings.device)
        self._tokenizer, self._session = opened
        self.device = opened.device
        self._inputs = self._input_types()
        self._output, self._is_pooled = self._choose_output()
        if not self._is_pooled:
            self._check_pooling()
        self._background = BackgroundThreads(settings.threads or None)
        self._batch = batch or (1 if self.device == "cpu" else _GPU_BATCH)
        if "attention_mask" not in self._inputs:  # the graph would treat padding as text
            self._batch = 1
        self.special_tokens = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.word_counter = word_counter_of(self._files.tokenizer)
        self.dimension = len(self._run(["a text"])[0])
        self.window = settings.model_window or self._files.window() or self._probe_window()
        self.digest = files_digest(self._files.root, self._files.files())

    def prompt(self, *, is_query: bool) -> str:
        configured = self._prompts[is_query]
        return self._files.prompt(is_query=is_query) if configured is None else configured

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    def encode(self, texts: Sequence[str], *, is_query: bool) -> list[Numbers]:
        """Run queries one by one on the calling thread, and passages in batches of similar length."""
        prompt = self.prompt(is_query=is_query)
        prompted = [prompt + text for text in texts]
        if is_query:
            return [self._run([text])[0] for text in prompted]
        return self._background.map(self._run, prompted, self._batch)

    def _run(self, texts: Sequence[str]) -> list[Numbers]:
        encodings = map(self._tokenizer.encode, texts)
        return self._infer([(encoding.ids, encoding.type_ids) for encoding in encodings])

    def _infer(self, texts: Sequence[tuple[list[int], list[int]]]) -> list[Numbers]:
        """Return the vectors of texts, given as token ids and types; shorter texts are padded."""
        sizes = [len(ids) for ids, _ in texts]
        longest = max(sizes)
        given = {
            "input_ids": [ids + [0] * (longest - len(ids)) for ids, _ in texts],
            "attention_mask": [[1] * size + [0] * (longest - size) for size in sizes],
            "token_type_ids": [types + [0] * (longest - len(types)) for _, types in texts],
            "position_ids": [list(range(longest))] * len(texts),
        }
        inputs = {name: np.array(given[name], dtype=kind) for name, kind in self._inputs.items()}
        try:
            output: Numbers = self._session.run([self._output], inputs)[0]
        except Exception as error:  # the library raises bare exceptions
            raise ModelError(f"the model in {self._files.root} fails on a text of {longest} tokens: {error}") from error
        return [row if self._is_pooled else self._files.pool(row[:size]) for row, size in zip(output, sizes, strict=True)]

    def _probe_window(self) -> int:
        """Return the largest common context window that the graph accepts. Errors: `ModelError`."""
        for size in _USUAL_WINDOWS:
            with suppress(ModelError):
                self._infer([([1] * size, [0] * size)])
                return size
        raise ModelError(f"the model in {self._files.root} fails on texts of {_USUAL_WINDOWS[-1]} tokens")

    def _check_pooling(self) -> None:
        """Raise `ModelError` if token vectors cannot be pooled as the model was trained."""
        self._files.check_modules()
        if not self._files.pools_prompt and (self.prompt(is_query=True) or self.prompt(is_query=False)):
            raise ModelError(f"{self._files.root} pools without its prompts, which only sentence-transformers: can do")

    def _input_types(self) -> dict[str, Any]:
        found = {given.name: _TYPES.get(given.type) for given in self._session.get_inputs()}
        unknown = sorted(set(found) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
        if unknown or "input_ids" not in found or None in found.values():
            what = f"takes {', '.join(unknown)}" if unknown else "takes no input_ids of whole numbers"
            raise ModelError(
                f"{self._files.graph} {what}; it has to be a text encoder as sentence-transformers or optimum export it"
            )
        return found

    def _choose_output(self) -> tuple[str, bool]:
        """Return the output to use, and whether it is a single vector for the whole text."""
        ranks = {output.name: len(output.shape or ()) for output in self._session.get_outputs()}
        others = sorted(((name, rank) for name, rank in ranks.items() if rank in {2, 3}), key=itemgetter(1))
        for name, rank in (*_OUTPUTS, *others):
            if ranks.get(name) == rank:
                return name, rank == 2
        raise ModelError(f"{self._files.graph} gives {', '.join(ranks)}, none of which is a vector of a text or of its tokens")
