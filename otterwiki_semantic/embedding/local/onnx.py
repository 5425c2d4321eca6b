"""Any exported encoder: a directory with an ONNX graph and its tokenizer.json, as model hubs have them.

The graph itself says what it takes and returns. Pooling, context window and prompts are read from the files that
sentence-transformers keeps next to it, if there are any.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.model_files import ModelDirectory, Numbers, files_digest
from otterwiki_semantic.embedding.local.onnx_session import BackgroundThreads, open_graph
from otterwiki_semantic.embedding.options import check_known, model_options

_OUTPUTS = (
    ("sentence_embedding", 2),
    ("embedding", 2),
    ("last_hidden_state", 3),
    ("token_embeddings", 3),
    ("pooler_output", 2),
)
"""The usual outputs by preference, with their ranks: 2 for a vector of the whole text, 3 for those of its tokens."""
_USUAL_WINDOWS = (512, 256, 128, 64)
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class OnnxEncoder:
    """An `Encoder`. Errors: `ModelError` if a file is missing, or the graph is of another kind."""

    def __init__(self, settings: Settings) -> None:
        check_known(model_options(settings), (), "onnx")
        self._files = ModelDirectory(Path(settings.model.partition(":")[2]))
        self._prompts = {True: settings.query_prompt, False: settings.passage_prompt}
        self._tokenizer, self._session = open_graph(self._files.graph, self._files.tokenizer, is_optimised=False)
        self._inputs = self._input_types()
        self._output, self._is_pooled = self._choose_output()
        if not self._is_pooled:
            self._check_pooling()
        self._background = BackgroundThreads(settings.threads or None)
        self.special_tokens = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.dimension = len(self._run("a text"))
        self.window = settings.model_window or self._files.window() or self._probe_window()
        self.digest = files_digest(self._files.root, self._files.files())

    def prompt(self, *, is_query: bool) -> str:
        """Return the configured prompt, else the one in the model's files."""
        configured = self._prompts[is_query]
        return self._files.prompt(is_query=is_query) if configured is None else configured

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    def encode(self, texts: Sequence[str], *, is_query: bool) -> list[Numbers]:
        """Queries run on the calling thread."""
        prompt = self.prompt(is_query=is_query)
        prompted = [prompt + text for text in texts]
        return [self._run(text) for text in prompted] if is_query else self._background.map(self._run, prompted, len)

    def _run(self, text: str) -> Numbers:
        encoding = self._tokenizer.encode(text)
        given = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
        return self._infer(given)

    def _infer(self, given: dict[str, list[int]]) -> Numbers:
        size = len(given["input_ids"])
        given = given | {"position_ids": list(range(size))}
        inputs = {name: np.array([given[name]], dtype=kind) for name, kind in self._inputs.items()}
        try:
            output: Numbers = self._session.run([self._output], inputs)[0]
        except Exception as error:  # the library raises bare exceptions
            raise ModelError(f"the model in {self._files.root} fails on a text of {size} tokens: {error}") from error
        return output[0] if self._is_pooled else self._files.pool(output[0])

    def _probe_window(self) -> int:
        """Return the largest of the usual context windows that the graph does not fail on. Errors: `ModelError`."""
        for size in _USUAL_WINDOWS:
            with suppress(ModelError):
                self._infer({"input_ids": [1] * size, "attention_mask": [1] * size, "token_type_ids": [0] * size})
                return size
        raise ModelError(f"the model in {self._files.root} fails on texts of {_USUAL_WINDOWS[-1]} tokens")

    def _check_pooling(self) -> None:
        """Raise `ModelError` if the vectors of tokens cannot be pooled as the model was trained."""
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
        """Return the output to use, and whether it is one vector for the whole text."""
        ranks = {output.name: len(output.shape or ()) for output in self._session.get_outputs()}
        others = sorted(((name, rank) for name, rank in ranks.items() if rank in {2, 3}), key=itemgetter(1))
        for name, rank in (*_OUTPUTS, *others):
            if ranks.get(name) == rank:
                return name, rank == 2
        raise ModelError(f"{self._files.graph} gives {', '.join(ranks)}, none of which is a vector of a text or of its tokens")
