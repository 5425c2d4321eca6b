"""What is known of a model that has to be asked for it, kept in the data directory.

An index is opened with what was known of its model when it was made, so that it answers while the model's server is down.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from otterwiki_semantic.core.files import write_atomically
from otterwiki_semantic.core.settings import Settings

UNKNOWN_WINDOW = 512
USUAL_OVERHEAD = 2
_NAME = "model.json"
_HARMLESS = frozenset({"cache_folder", "device", "keep_alive", "local_files_only", "profile", "region", "user"})
"""Options that say where and how a model runs, not what it answers."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model's answers about itself.

    `window` is the most word pieces of one text (0: not known), `digest` tells its contents apart, `place` is where it was
    asked, `sample` its vector of a text that is always the same, by which one without a digest of its own is recognised,
    `overhead` see `Embedder`.
    """

    dimension: int
    window: int
    digest: str
    place: str = ""
    sample: tuple[float, ...] = ()
    overhead: int = USUAL_OVERHEAD


class ModelInfoCache:
    """The facts of the model that settings name: those of the last time, until others are learned."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._path = settings.data_dir / _NAME
        self._options = {name: value for name, value in json.loads(settings.model_options).items() if name not in _HARMLESS}
        self._model = _digest([settings.model, self._options])
        self.facts: ModelInfo | None = self._read()

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 while it is not known."""
        return self.facts.dimension if self.facts else 0

    @property
    def window(self) -> int:
        """The window that was set, else the model's own; a common one while it is not known."""
        return self._settings.model_window or (self.facts and self.facts.window) or UNKNOWN_WINDOW

    @property
    def overhead(self) -> int:
        """The word pieces that each passage takes besides its text; a usual number while it is not known."""
        return self.facts.overhead if self.facts else USUAL_OVERHEAD

    @property
    def fingerprint(self) -> str:
        """Whatever changes the vectors of passages: the model, its options, its window, the prompt."""
        told = _digest([self._options, self._settings.passage_prompt])
        digest = self.facts.digest if self.facts and self.facts.digest else "unknown"
        return f"{shown_name(self._settings)}/{digest}/{self.dimension}/{self.window}/{told}"

    def learn(self, facts: ModelInfo) -> None:
        """Take other facts from now on, and keep them; where they cannot be kept, they are asked for after the next start."""
        if facts == self.facts:
            return
        self.facts = facts
        try:
            self._write(facts)
        except OSError as error:
            log.warning("what is known of the model cannot be kept in %s: %s", self._path, error)

    def _read(self) -> ModelInfo | None:
        try:
            kept = json.loads(self._path.read_bytes())
            if kept.pop("model") != self._model:
                return None
            return _checked(ModelInfo(**kept | {"sample": tuple(map(float, kept["sample"]))}))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            log.warning("what is known of the model cannot be read, and is asked for again: %s", error)
            return None

    def _write(self, facts: ModelInfo) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self._path, json.dumps({"model": self._model, **asdict(facts)}))


def shown_name(settings: Settings) -> str:
    """Give a model's name for people: of a directory, its last part."""
    provider, _, name = settings.model.partition(":")
    return f"{provider}:{Path(name).name}" if Path(name).is_absolute() else settings.model


def _checked(facts: ModelInfo) -> ModelInfo:
    """Give facts that can be true. Errors: `ValueError`, `TypeError`."""
    numbers = (facts.dimension, facts.window, facts.overhead)
    if not all(type(number) is int and number >= 0 for number in numbers) or facts.dimension < 1:
        raise ValueError("its numbers are none")
    if type(facts.digest) is not str or type(facts.place) is not str:
        raise TypeError("its names are none")
    return facts


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=12).hexdigest()
