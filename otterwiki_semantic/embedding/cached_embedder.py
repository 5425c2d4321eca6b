"""A cache of vectors for texts that are embedded repeatedly while somebody types."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np

from otterwiki_semantic.embedding.base import Embedder, Matrix

_CACHE_SIZE = 1_024


class CachedEmbedder:
    """Embeds passages with a model, and caches the last 1,024 vectors."""

    def __init__(self, embedder: Embedder) -> None:
        self.model = embedder
        self._cached: OrderedDict[tuple[str, str], Matrix] = OrderedDict()
        """Vectors by text and model fingerprint; most recently used last."""
        self._lock = Lock()

    def embed(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of texts, as rows. Raises the errors of `Embedder`."""
        fingerprint = self.model.fingerprint
        with self._lock:
            known = {text: self._cached[text, fingerprint] for text in texts if (text, fingerprint) in self._cached}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known |= zip(new, self.model.embed(new), strict=True)
        with self._lock:
            for text, vector in known.items():
                self._cached[text, fingerprint] = vector
                self._cached.move_to_end((text, fingerprint))
            while len(self._cached) > _CACHE_SIZE:
                self._cached.popitem(last=False)
        return np.array([known[text] for text in texts], dtype=np.float32)
