"""Any exported encoder: a directory with an ONNX graph and its tokenizer.json, as model hubs have them.

What the graph takes and gives is asked of the graph; how its outputs become one vector, how much text it reads and what is put
before queries and passages is read from the files that sentence-transformers keeps beside it, where they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.embedding.local.model_files import OnnxDirectory, digest_of
from otterwiki_semantic.embedding.local.onnx_runtime import BackgroundThreads, open_graph
from otterwiki_semantic.embedding.options import check_names, options_of

_WHOLE_TEXT = ("sentence_embedding", "embedding", "pooler_output")
_EACH_TOKEN = ("last_hidden_state", "token_embeddings")
_USUAL_WINDOWS = (512, 256, 128, 64)
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
Numbers = npt.NDArray[Any]


class OnnxEncoder:
    """See `Encoder`. Errors: `ModelError` when a file is missing, or the graph is of another kind."""

    def __init__(self, settings: Settings) -> None:
        check_names(options_of(settings), (), "onnx")
        self._place = OnnxDirectory(Path(settings.model.partition(":")[2]))
        self._prompts = {True: settings.query_prompt, False: settings.passage_prompt}
        opened = open_graph(self._place.graph, self._place.tokenizer, is_optimised=False)
        self._tokenizer, self._session = opened
        self._inputs = self._known_inputs()
        self._output, self._is_pooled = self._chosen_output()
        if not self._is_pooled:
            self._check_pooling()
        self._background = BackgroundThreads(settings.threads or None)
        self.special_tokens = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self.dimension = len(self._run("a text"))
        self.window = settings.model_window or self._place.window() or self._tried_window()
        self.digest = digest_of(self._place.root, self._place.files())

    def prompt(self, *, is_query: bool) -> str:
        """Give the prompt that was set, else the one that the model's files have."""
        told = self._prompts[is_query]
        return self._place.prompt(is_query=is_query) if told is None else told

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """See `Encoder`."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    def encode(self, texts: Sequence[str], *, is_query: bool) -> list[Numbers]:
        """See `Encoder`; queries on the calling thread."""
        prompt = self.prompt(is_query=is_query)
        prompted = [prompt + text for text in texts]
        return [self._run(text) for text in prompted] if is_query else self._background.each(self._run, prompted, len)

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
        except Exception as error:  # the library raises bare exceptions of its own
            raise ModelError(f"the model in {self._place.root} fails on a text of {size} word pieces: {error}") from error
        return output[0] if self._is_pooled else self._place.pool(output[0])

    def _tried_window(self) -> int:
        """Give the largest of the usual windows that the graph does not fail on. Errors: `ModelError` of the least."""
        for size in _USUAL_WINDOWS:
            with suppress(ModelError):
                self._infer({"input_ids": [1] * size, "attention_mask": [1] * size, "token_type_ids": [0] * size})
                return size
        raise ModelError(f"the model in {self._place.root} fails on texts of {_USUAL_WINDOWS[-1]} word pieces")

    def _check_pooling(self) -> None:
        """See that vectors of tokens can be pooled as the model was trained. Errors: `ModelError`."""
        self._place.check_modules()
        if not self._place.pools_prompt and (self.prompt(is_query=True) or self.prompt(is_query=False)):
            raise ModelError(f"{self._place.root} pools without its prompts, which only sentence-transformers: can do")

    def _known_inputs(self) -> dict[str, Any]:
        found = {given.name: _TYPES.get(given.type) for given in self._session.get_inputs()}
        unknown = sorted(set(found) - {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
        if unknown or "input_ids" not in found or None in found.values():
            what = f"takes {', '.join(unknown)}" if unknown else "takes no input_ids of whole numbers"
            raise ModelError(
                f"{self._place.graph} {what}; it has to be a text encoder as sentence-transformers or optimum export it"
            )
        return found

    def _chosen_output(self) -> tuple[str, bool]:
        """Give the output to use, and whether it is one vector for the whole text."""
        ranks = {output.name: len(output.shape or ()) for output in self._session.get_outputs()}
        named = [(name, 2) for name in _WHOLE_TEXT[:2]] + [(name, 3) for name in _EACH_TOKEN] + [(_WHOLE_TEXT[2], 2)]
        any_of = [(name, rank) for wanted in (2, 3) for name, rank in ranks.items() if rank == wanted]
        for name, rank in [*named, *any_of]:
            if ranks.get(name) == rank:
                return name, rank == 2
        raise ModelError(f"{self._place.graph} gives {', '.join(ranks)}, none of which is a vector of a text or of its tokens")
