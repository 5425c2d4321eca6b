"""A model's options, and what it reports about itself, which is cached for when its server is down."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.files import make_private, read_record, write_atomically
from otterwiki_semantic.core.settings import Settings

UNKNOWN_WINDOW = 512
USUAL_OVERHEAD = 2
_NEUTRAL = frozenset({"cache_folder", "device", "keep_alive", "local_files_only", "profile", "region", "user"})
"""Options that determine where and how a model runs, and do not change its vectors."""

log = logging.getLogger(__name__)


class ModelInfo(msgspec.Struct, frozen=True):
    """What a model reports about itself."""

    dimension: Annotated[int, msgspec.Meta(ge=1)]
    window: Annotated[int, msgspec.Meta(ge=0)]
    """The context window in tokens; 0 if it is unknown."""
    digest: str
    place: str = ""
    sample: tuple[float, ...] = ()
    """The vector of a fixed text, which identifies a model without a digest."""
    overhead: Annotated[int, msgspec.Meta(ge=0)] = USUAL_OVERHEAD
    model: str = ""
    """A hash of the configured model and its options; what another one has reported is ignored."""


_UNKNOWN = ModelInfo(dimension=0, window=0, digest="")


class ModelWithInfo:
    """Base of the embedders that must ask the model about its properties; see `Embedder`."""

    is_calibrated = False

    def __init__(self, settings: Settings) -> None:
        provider, _, name = settings.model.partition(":")
        self.name = f"{provider}:{Path(name).name}" if Path(name).is_absolute() else settings.model
        self._settings = settings
        self._options = {name: value for name, value in model_options(settings).items() if name not in _NEUTRAL}
        self._path = settings.data_dir / "model.json"
        self._configured = _digest([settings.model, self._options])
        known = read_record(self._path, ModelInfo, "the model is asked again")
        self._info = known if known is not None and known.model == self._configured else _UNKNOWN

    @property
    def dimension(self) -> int:
        return self._info.dimension

    @property
    def window(self) -> int:
        """The configured context window, or else the model's own; a common one while that is unknown."""
        return self._settings.model_window or self._info.window or UNKNOWN_WINDOW

    @property
    def overhead(self) -> int:
        return min(self._info.overhead, self.window // 2)

    @property
    def fingerprint(self) -> str:
        """Everything that changes the vectors of passages: the model, its options, its context window, the prompt."""
        configured = _digest([self._options, self._settings.passage_prompt])
        return f"{self.name}/{self._info.digest or 'unknown'}/{self.dimension}/{self.window}/{configured}"

    def _learn(self, info: ModelInfo) -> None:
        """Replace the known properties, and write them. If writing fails, the model is asked again after the next start."""
        info = msgspec.structs.replace(info, model=self._configured)
        if info == self._info:
            return
        self._info = info
        try:
            make_private(self._path.parent)
            write_atomically(self._path, json.dumps(msgspec.to_builtins(info)))
        except OSError as error:
            log.warning("what is known about the model cannot be written to %s: %s", self._path, error)


def model_options(settings: Settings) -> dict[str, Any]:
    """Return the options in SEMANTIC_MODEL_OPTIONS."""
    options: dict[str, Any] = json.loads(settings.model_options)
    return options


def check_known(options: Mapping[str, Any], allowed: Collection[str], provider: str) -> None:
    """Raise `ModelError` for options that the provider does not know."""
    if unknown := sorted(set(options) - set(allowed)):
        known = ", ".join(sorted(allowed)) or "none"
        raise ModelError(f"SEMANTIC_MODEL_OPTIONS has {', '.join(unknown)}, which {provider} does not take; allowed: {known}")


def check_not_reserved(options: Mapping[str, Any], reserved: Collection[str]) -> None:
    """Raise `ModelError` for options that are set elsewhere."""
    if found := sorted(set(options) & set(reserved)):
        raise ModelError(
            f"SEMANTIC_MODEL_OPTIONS may not have {', '.join(found)}: this is decided by other settings, or by this program"
        )


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=12).hexdigest()
