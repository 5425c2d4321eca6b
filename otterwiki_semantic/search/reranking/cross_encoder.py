"""Cross-encoders of sentence-transformers, run by this process on its processor or its GPU."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from otterwiki_semantic.core.errors import RerankerError

_BATCH = 8
"""Texts of one step; between two it is seen whether there is time for another."""
_LONGEST_REASON = 300

log = logging.getLogger(__name__)


class CrossEncoderReranker:
    """A `Reranker` of a model's name on the hub, which is then downloaded, or of a directory that holds one.

    Scores are what the model makes of its one output; what is longer than its window it cuts off.
    """

    def __init__(self, model: str) -> None:
        directory = Path(model).expanduser()
        is_here = directory.is_dir()
        self.name = f"cross-encoder:{directory.resolve().name if is_here else model}"
        self.is_fast = False
        self._source = str(directory) if is_here else model
        self._model: Any = None
        self._asking = Lock()

    def load(self) -> None:
        """See `Reranker`."""
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise RerankerError(
                f"{self.name} needs sentence-transformers ({error}): "
                'pip install "otterwiki-semantic[sentence-transformers]", and start the wiki again'
            ) from None
        try:
            model = CrossEncoder(self._source)
            outputs = model.predict([("a", "b")], show_progress_bar=False).size
        except Exception as error:
            log.exception("the reranker %s cannot be loaded", self.name)
            told = f"{type(error).__name__}: {error}".replace(self._source, self.name)  # the log tells where it is
            reason = " ".join(told.split())[:_LONGEST_REASON]
            raise RerankerError(f"{self.name} cannot be loaded ({reason}); correct SEMANTIC_RERANKER") from None
        if outputs != 1:
            raise RerankerError(
                f"{self.name} gives {outputs} numbers for a text, a reranker one; set SEMANTIC_RERANKER to another"
            )
        self._model = model
        self.is_fast = model.device.type != "cpu"

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """See `Reranker`. One question is read at a time, the longest of its texts first."""
        deadline = time.monotonic() + seconds
        if not self._asking.acquire(timeout=seconds):
            raise self._late()
        try:
            order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
            model = self._model
            found: dict[int, float] = {}
            for start in range(0, len(order), _BATCH):
                if time.monotonic() > deadline:
                    raise self._late()
                places = order[start : start + _BATCH]
                pairs = [(query, texts[place]) for place in places]
                numbers = model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
                found |= zip(places, numbers.tolist(), strict=True)
            return [found[place] for place in range(len(texts))]
        finally:
            self._asking.release()

    def close(self) -> None:
        """See `Reranker`."""
        self._model = None

    def _late(self) -> RerankerError:
        return RerankerError(f"{self.name} takes too long here; set SEMANTIC_RERANKER to a smaller model, or use a GPU")
