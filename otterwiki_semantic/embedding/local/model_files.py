"""The files of an exported encoder: which file is which, and what they say about the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt

from otterwiki_semantic.core.errors import ModelError

_CONFIGURATION = ("1_Pooling/config.json", "config_sentence_transformers.json", "sentence_bert_config.json", "modules.json")
_NO_LIMIT = 1_000_000
_OFFSET_MODELS = frozenset({"camembert", "mpnet", "roberta", "xlm-roberta"})
"""Models that reserve their first two positions."""
Numbers = npt.NDArray[Any]


class ModelDirectory:
    """A directory with an ONNX graph, a tokenizer, and perhaps files for sentence-transformers. Errors: `ModelError`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        if not root.is_absolute() or not root.is_dir():
            raise ModelError(f"{root} is no directory: SEMANTIC_MODEL=onnx: wants the absolute path of one with a model.onnx")
        self.graph = self._find_graph()
        candidates = [place / "tokenizer.json" for place in (root, self.graph.parent)]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            raise ModelError(
                f"{root} has no tokenizer.json; copy the one of the model that {self.graph.name} was exported from"
            )
        self.tokenizer = found
        pooling = self._read("1_Pooling/config.json")
        self.pools_prompt = pooling.get("include_prompt") is not False
        self._pooling = [name.removeprefix("pooling_mode_") for name, value in pooling.items() if value is True]
        if isinstance(pooling.get("pooling_mode"), str):
            self._pooling.append(pooling["pooling_mode"])

    def window(self) -> int | None:
        """Return the context window in tokens: the smallest in any of the files, or None."""
        config = self._read("config.json")
        positions = config.get("max_position_embeddings")
        if type(positions) is int and config.get("model_type") in _OFFSET_MODELS:
            positions -= 2
        found = [
            self._read("sentence_bert_config.json").get("max_seq_length"),
            self._read("tokenizer_config.json").get("model_max_length"),
            positions,
        ]
        return min((number for number in found if type(number) is int and 0 < number < _NO_LIMIT), default=None)

    def prompt(self, *, is_query: bool) -> str:
        """Return the prefix that sentence-transformers would put before a query, or a passage."""
        config = self._read("config_sentence_transformers.json")
        prompts = config.get("prompts") or {}
        names = ("query",) if is_query else ("document", "passage", "corpus")
        found = [prompts[name] for name in (*names, config.get("default_prompt_name")) if name in prompts]
        return str(found[0]) if found else ""

    def pool(self, tokens: Numbers) -> Numbers:
        """Pool the vectors of all tokens (tokens x dimension) into one, as the model was trained; by default their mean."""
        methods = {
            "mean_tokens": lambda: tokens.mean(axis=0),
            "cls_token": lambda: tokens[0],
            "max_tokens": lambda: tokens.max(axis=0),
            "lasttoken": lambda: tokens[-1],
        }
        names = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
        chosen = [names.get(name, name) for name in self._pooling if name != "include_prompt"] or ["mean_tokens"]
        if len(set(chosen)) > 1 or chosen[0] not in methods:
            raise ModelError(
                f"{self.root}/1_Pooling pools by {', '.join(chosen)}, which is not supported; supported: {', '.join(methods)}"
            )
        pooled: Numbers = methods[chosen[0]]()
        return pooled

    def check_modules(self) -> None:
        """Raise `ModelError` if anything but pooling follows the graph."""
        modules = self._read("modules.json").get("list", ())
        kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules if isinstance(module, dict)]
        others = [kind for kind in kinds if kind not in {"Transformer", "Pooling", "Normalize"}]
        if others:
            raise ModelError(
                f"{self.root} has modules after its graph that cannot be computed here ({', '.join(others)}); export the whole "
                "model, so that the graph gives sentence_embedding, or use it as sentence-transformers:"
            )

    def files(self) -> Iterator[Path]:
        """Yield the files that determine the vectors: the graph with its weights, the tokenizer, the configuration."""
        yield self.graph
        yield self.tokenizer
        yield from self.graph.parent.glob("*.onnx?data")
        yield from (self.root / name for name in _CONFIGURATION if (self.root / name).is_file())

    def _find_graph(self) -> Path:
        for path in (self.root / "model.onnx", self.root / "onnx" / "model.onnx"):
            if path.is_file():
                return path
        found = [*self.root.glob("*.onnx"), *self.root.glob("onnx/*.onnx")]
        if len(found) != 1:
            what = "no *.onnx" if not found else "several graphs, " + ", ".join(sorted(path.name for path in found))
            raise ModelError(f"{self.root} has {what}; name the one to use model.onnx")
        return found[0]

    def _read(self, name: str) -> dict[str, Any]:
        """Return the JSON object in a file, with a list under the key `list`; empty if the file does not exist."""
        path = self.root / name
        try:
            content = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise ModelError(f"{path} cannot be read: {error}") from error
        return content if isinstance(content, dict) else {"list": content}


def files_digest(root: Path, files: Iterable[Path]) -> str:
    """Return a digest of files: their paths below `root` and their contents. Errors: `ModelError`."""
    whole = hashlib.sha256()
    for path in sorted(files):
        try:
            with path.open("rb") as stream:
                content = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"the model file {path} cannot be read: {error}") from error
        whole.update(f"{path.relative_to(root)}\0{content}\0".encode("utf-8", errors="surrogateescape"))
    return whole.hexdigest()[:24]
