"""Cross-encoders of sentence-transformers, run in this process on CPU or GPU."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.core.installation import pip_install

_BATCH = 8
"""Texts scored between two checks of the time."""
_MAX_REASON = 300

log = logging.getLogger(__name__)


class CrossEncoderReranker:
    """A `Reranker` with a model from a directory, or from the hub, from which it is downloaded by name.

    Scores are the model's single output; text beyond its context window is cut off.
    """

    def __init__(self, model: str, device: str = "auto") -> None:
        directory = Path(model).expanduser()
        is_directory = directory.is_dir()
        self.name = f"cross-encoder:{directory.resolve().name if is_directory else model}"
        self.is_fast = False
        self._source = str(directory) if is_directory else model
        self._device = None if device == "auto" else device
        self._model: Any = None
        self._scoring = Lock()

    def load(self) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ImportError as error:
            raise RerankerError(
                f"{self.name} needs sentence-transformers ({error}): "
                f"{pip_install('sentence-transformers')}, and restart the wiki"
            ) from None
        try:
            model = CrossEncoder(self._source, device=self._device)
            outputs = model.predict([("a", "b")], show_progress_bar=False).size
        except Exception as error:
            log.exception("the reranker %s cannot be loaded", self.name)
            message = f"{type(error).__name__}: {error}".replace(self._source, self.name)  # the log has the path
            reason = " ".join(message.split())[:_MAX_REASON]
            raise RerankerError(
                f"{self.name} cannot be loaded ({reason}); correct SEMANTIC_RERANKER or SEMANTIC_DEVICE"
            ) from None
        if outputs != 1:
            raise RerankerError(
                f"{self.name} gives {outputs} numbers for a text, a reranker one; set SEMANTIC_RERANKER to another model"
            )
        self._model = model
        self.is_fast = model.device.type != "cpu"

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Score the longest texts first, one query at a time."""
        deadline = time.monotonic() + seconds
        if not self._scoring.acquire(timeout=seconds):
            raise self._timeout()
        try:
            order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
            model = self._model
            found: dict[int, float] = {}
            for start in range(0, len(order), _BATCH):
                if time.monotonic() > deadline:
                    raise self._timeout()
                places = order[start : start + _BATCH]
                pairs = [(query, texts[place]) for place in places]
                numbers = model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
                found |= zip(places, numbers.tolist(), strict=True)
            return [found[place] for place in range(len(texts))]
        finally:
            self._scoring.release()

    def close(self) -> None:
        self._model = None

    def _timeout(self) -> RerankerError:
        return RerankerError(f"{self.name} takes too long here; set SEMANTIC_RERANKER to a smaller model, or use a GPU")
