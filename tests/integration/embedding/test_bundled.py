"""The bundled model gives the vectors of the original one, and no other file is taken for it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.records import Chunk
from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, BundledModel
from otterwiki_semantic.embedding.local.onnx_session import BackgroundThreads
from otterwiki_semantic.embedding.vectors import embed_passages
from tests.support.paths import DATA, ROOT

pytestmark = pytest.mark.real_processes

REFERENCE = json.loads((DATA / "reference_vectors.json").read_text(encoding="utf-8"))


def test_vectors_are_those_of_the_original_model(model: BundledModel) -> None:
    original = np.array(REFERENCE["vectors"], dtype=np.float32)
    cosines = (model.embed(REFERENCE["texts"]) * original).sum(axis=1)
    assert len(cosines) == 50
    assert cosines.mean() >= 0.98
    assert cosines.min() >= 0.96


def test_a_text_gets_the_same_vector_whatever_it_is_embedded_with(model: BundledModel) -> None:
    texts = REFERENCE["texts"][:5]
    together = model.embed(texts)
    alone = np.stack([model.embed([text])[0] for text in texts])
    assert np.array_equal(together, alone)
    assert np.array_equal(model.embed_queries(texts), together)


def test_a_passage_is_drawn_towards_its_heading_path(model: BundledModel) -> None:
    text = "[Garden > Tomatoes] Plant them after the middle of May."
    chunk = Chunk(text, 20, 0, "Tomatoes", ("Tomatoes",), ("Tomatoes",), "tomatoes", 1, 1)
    plain, heading = model.embed([text, "Garden > Tomatoes"])
    mixed = embed_passages(model, [chunk], 0.2)[0]
    assert mixed @ heading > plain @ heading
    assert np.isclose(np.linalg.norm(mixed), 1)
    assert np.allclose(embed_passages(model, [chunk], 0.0)[0], plain)


def test_a_passage_without_heading_path_is_its_text(model: BundledModel) -> None:
    chunk = Chunk("just text", 0, 0, "", (), (), "", 1, 1)
    assert np.allclose(embed_passages(model, [chunk], 0.2), model.embed(["just text"]))


def test_a_process_of_lower_priority_stays_at_its_own() -> None:
    found: list[int] = []

    def embed() -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        found.extend(BackgroundThreads(1).map(lambda _: [os.getpriority(os.PRIO_PROCESS, threading.get_native_id())], [""], 1))

    thread = threading.Thread(target=embed)
    thread.start()
    thread.join()
    assert found == [19]  # to raise it needs a privilege, and without that no thread started


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(BUNDLED_MODEL, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_damaged_or_missing_file_is_named(copy: Path, name: str) -> None:
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(ModelError, match=rf"{name} is damaged.*install otterwiki-semantic again"):
        BundledModel(copy).open()
    (copy / name).unlink()
    with pytest.raises(ModelError, match=name):
        BundledModel(copy).open()


@pytest.mark.parametrize("content", ["", "{}", '{"files": {}}', "[]", '{"files": {"model.onnx": "x"}, "dimension": 1}'])
def test_a_bad_provenance_is_named(copy: Path, content: str) -> None:
    (copy / "provenance.json").write_text(content)
    with pytest.raises(ModelError, match=r"provenance\.json does not describe a model"):
        BundledModel(copy)


def test_a_file_that_is_no_model_is_refused_though_its_digest_fits(copy: Path) -> None:
    record = json.loads((copy / "provenance.json").read_text())
    (copy / "model.onnx").write_bytes(b"not a graph")
    record["files"]["model.onnx"] = hashlib.sha256(b"not a graph").hexdigest()
    (copy / "provenance.json").write_text(json.dumps(record))
    with pytest.raises(ModelError, match="cannot be opened"):
        BundledModel(copy).open()


def test_the_package_holds_licence_and_provenance() -> None:
    record = json.loads((BUNDLED_MODEL / "provenance.json").read_text())
    assert record["weights"]["sha256"] == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert record["fidelity"]["mean"] >= 0.98
    assert "Apache License" in (BUNDLED_MODEL / "LICENSE").read_text()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    command = [sys.executable, str(ROOT / "tools" / "build_model.py"), "--weights", str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.returncode, "is not the official model: its sha256 is" in answer.stderr) == (1, True)


def test_the_models_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """It would begin with an id of this machine in the user's directory; it knows tests by these variables, and spares them."""
    script = "from otterwiki_semantic.embedding.local.bundled import BundledModel; BundledModel().embed_queries(['frost'])"
    inherited = {name: value for name, value in os.environ.items() if name not in {"CI", "ORT_DISABLE_TELEMETRY"}}
    no_test = {name: value for name, value in inherited.items() if not name.startswith(("GITHUB_", "PYTEST_", "XDG_"))}
    subprocess.run([sys.executable, "-c", script], env={**no_test, "HOME": str(tmp_path)}, check=True)
    assert list(tmp_path.rglob("*")) == []
