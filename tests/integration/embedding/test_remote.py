"""Models on servers: what happens when they are busy, slow, wrong, changed, or say what they should not."""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

from otterwiki_semantic.core.chunk_profiles import profile_named
from otterwiki_semantic.core.errors import ModelError, ModelUnreachableError
from otterwiki_semantic.core.telemetry import NO_TELEMETRY
from otterwiki_semantic.embedding.base import Embedder
from otterwiki_semantic.embedding.factory import open_embedder
from otterwiki_semantic.embedding.query_embedder import QueryEmbedder
from otterwiki_semantic.embedding.remote.ollama import host_url
from otterwiki_semantic.embedding.vectors import embed_passages
from tests.support.chunks import read_page
from tests.support.fake_time import FakeTime
from tests.support.model_servers import DIMENSION, ModelServer, Reply, ollama_told, serving, settings_in

KEY = "sk-0123456789abcdef"
PATHS = {"openai": "/v1", "ollama": "", "jina": "/jina", "huggingface": "/huggingface"}


class Setup:
    """A server, and the models opened of it."""

    def __init__(self, place: Path, server: ModelServer, time: FakeTime) -> None:
        self.place, self.server, self.time = place, server, time

    def open(self, provider: str = "openai", **told: object) -> Embedder:
        settings = settings_in(self.place, f"{provider}:m", model_url=self.server.url + PATHS[provider], model_key=KEY)
        return open_embedder(replace(settings, **told))  # type: ignore[arg-type]

    def prepared(self, provider: str = "openai", **told: object) -> Embedder:
        model = self.open(provider, **told)
        model.prepare()
        self.server.asked.clear()
        return model


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    return FakeTime(monkeypatch)


@pytest.fixture
def setup(tmp_path: Path, time: FakeTime) -> Iterator[Setup]:
    with serving(ModelServer(told=ollama_told("m") | {"/info": {"max_input_length": 512}})) as server:
        yield Setup(tmp_path, server, time)


each_provider = pytest.mark.parametrize("provider", PATHS)
own_protocol = pytest.mark.parametrize("provider", ["openai", "ollama"])


@each_provider
def test_a_busy_server_is_asked_again_when_it_says(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    setup.server.replies.extend([Reply(429, "{}", {"Retry-After": "2"}), Reply(503, "busy", {"Retry-After": "600"})])
    assert model.embed(["a text"]).shape == (1, DIMENSION)
    assert setup.time.pauses == [2, 30]


@each_provider
def test_a_failing_server_is_asked_four_times_at_growing_distance(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    setup.server.replies.extend([Reply(500, '{"error": "out of memory"}')] * 4)
    with pytest.raises(ModelUnreachableError, match=r"HTTP 500, .*out of memory.*answer by words"):
        model.embed(["a text"])
    assert len(setup.server.texts) == 4
    assert setup.time.pauses == [1, 2, 4]


@each_provider
def test_after_a_failure_queries_fail_at_once_for_some_seconds(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    setup.server.replies.extend([Reply(500, "{}")] * 2)
    with pytest.raises(ModelUnreachableError, match="HTTP 500"):
        model.embed_queries(["a query"])
    assert len(setup.server.texts) == 2
    with pytest.raises(ModelUnreachableError, match="has just failed"):
        model.embed_queries(["a query"])
    assert len(setup.server.texts) == 2
    setup.time.now += 11
    assert model.embed_queries(["a query"]).shape == (1, DIMENSION)


def test_each_failure_of_queries_is_logged_once(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    queries = QueryEmbedder(setup.prepared(), NO_TELEMETRY)

    def messages(number: int) -> list[str]:
        caplog.clear()
        for _ in range(number):
            queries.report_failures([list(queries.submit(["a query"]).values())])
        return [record.message for record in caplog.records if "could not be embedded" in record.message]

    with closing(queries):
        for _ in range(2):
            setup.server.replies.extend([Reply(500, "{}")] * 2)
            first, resting = messages(20)
            assert "HTTP 500" in first
            assert "has just failed" in resting
            setup.time.now += 11
            assert messages(1) == []
            queries._cached.clear()


def test_several_queries_are_sent_together(setup: Setup) -> None:
    model = setup.prepared()
    asked = len(setup.server.texts)
    queries = QueryEmbedder(model, NO_TELEMETRY)
    with closing(queries):
        (known,) = queries.submit(["known"]).values()
        assert known.result(30).shape == (DIMENSION,)
        pending = queries.submit(["one", "known", "two", "one", "three"])
        together = {query: future.result(30) for query, future in pending.items()}
        assert [len(texts) for texts in setup.server.texts[asked:]] == [1, 3]
        for query, vector in together.items():
            assert np.allclose(vector, model.embed_queries([query])[0])
        assert queries.cache_hits_and_misses == (1, 4)


@pytest.mark.parametrize("status", [400, 500])
def test_a_query_that_a_server_cannot_embed_takes_no_other_down(setup: Setup, status: int) -> None:
    answer = setup.server.answer

    def refusing(path: str, body: dict[str, list[str]]) -> Reply:
        return Reply(status, "{}") if "poison" in body["input"] else answer(path, body)

    setup.server.answer = refusing  # type: ignore[method-assign]
    with closing(QueryEmbedder(setup.prepared(), NO_TELEMETRY)) as queries:
        pending = queries.submit(["boiler", "radiator", "garden", "poison"])
        failures = queries.report_failures([[vector] for vector in pending.values()])
        assert [failure is None for failure in failures] == [True, True, True, False]
        assert f"HTTP {status}" in str(failures[3])
        assert queries.last_failure is not None


def test_a_query_does_not_wait_as_long_as_a_busy_server_wants(setup: Setup) -> None:
    model = setup.prepared()
    setup.server.replies.append(Reply(429, "{}", {"Retry-After": "20"}))
    with pytest.raises(ModelUnreachableError, match="HTTP 429"):
        model.embed_queries(["a query"])
    assert setup.time.pauses == []


@each_provider
def test_a_refused_key_is_told_once_and_never_shown(setup: Setup, provider: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = setup.prepared(provider)
    assert setup.open(provider).embed(["a text"]).shape == (1, DIMENSION)
    assert setup.server.asked[-1][1]["Authorization"] == f"Bearer {KEY}"
    for status in (401, 403, 400):
        echo = json.dumps({"error": {"message": f"Incorrect key {KEY} in 'Bearer {KEY}'"}})
        setup.server.replies.append(Reply(status, echo))
        with pytest.raises(ModelError) as caught:
            model.embed(["a text"])
        told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert KEY not in told
        assert "SEMANTIC_MODEL" in told
        assert not isinstance(caught.value, ModelUnreachableError)
    assert setup.time.pauses == []
    assert KEY not in caplog.text
    assert KEY not in (setup.place / "index" / "model.json").read_text()


@own_protocol
def test_a_key_that_cannot_be_sent_is_not_shown_either(setup: Setup, provider: str) -> None:
    for key in ("sk-secret\nline", "sk-sécret"):
        with pytest.raises(ModelError, match="SEMANTIC_MODEL_KEY") as caught:
            setup.open(provider, model_key=key).embed(["a text"])
        assert "cret" not in "".join(traceback.format_exception(caught.value)).replace("SECRET", "")


@pytest.mark.parametrize(
    ("provider", "status", "remedy"),
    [
        ("openai", 401, "set SEMANTIC_MODEL_KEY"),
        ("openai", 404, "correct SEMANTIC_MODEL (m) or SEMANTIC_MODEL_URL"),
        ("openai", 307, "correct SEMANTIC_MODEL (m) or SEMANTIC_MODEL_URL"),
        ("openai", 422, "correct SEMANTIC_MODEL, SEMANTIC_MODEL_OPTIONS or SEMANTIC_MODEL_URL"),
        ("ollama", 403, "set SEMANTIC_MODEL_KEY"),
        ("ollama", 404, "run `ollama pull m` there"),
        ("ollama", 307, "correct SEMANTIC_MODEL_URL: this is not an Ollama server"),
        ("ollama", 422, "make sure that m is a model for embeddings"),
        ("jina", 403, "set SEMANTIC_MODEL_KEY"),
        ("jina", 422, "correct SEMANTIC_MODEL (m) or SEMANTIC_MODEL_OPTIONS"),
    ],
)
def test_a_refusal_is_told_with_its_remedy(setup: Setup, provider: str, status: int, remedy: str) -> None:
    model = setup.prepared(provider)
    setup.server.replies.append(Reply(status, "{}"))
    with pytest.raises(ModelError, match=re.escape(f"; {remedy}")) as caught:
        model.embed(["a text"])
    assert not isinstance(caught.value, ModelUnreachableError)


NONSENSE: tuple[tuple[object, str], ...] = (
    ([[1.0] * DIMENSION], "1 vectors for 2 texts"),
    ([[1.0] * DIMENSION] * 3, "3 vectors for 2 texts"),
    ([[1.0] * DIMENSION, [1.0] * 3], "different length"),
    ([[0.0] * DIMENSION] * 2, "zeros only"),
    ([[float("nan")] * DIMENSION] * 2, "NaN"),
    ([[1e999] * DIMENSION] * 2, "infinite"),
    ([["1.0"] * DIMENSION] * 2, "no list of vectors"),
    (["AACAPwAAgD8=", "AACAPwAAgD8="], "no list of vectors"),
    ([[[1.0]] * DIMENSION] * 2, "no list of vectors"),
    ([None, None], "no list of vectors"),
    ([[], []], "no list of vectors"),
    ("vectors", "is it a"),
    (None, "is it a"),
)


@own_protocol
def test_an_answer_that_makes_no_sense_is_refused(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    for vectors, said in NONSENSE:
        if not isinstance(vectors, list):
            answer: object = {"something": vectors}
        elif provider == "ollama":
            answer = {"embeddings": vectors}
        else:
            answer = {"data": [{"embedding": vector, "index": number} for number, vector in enumerate(vectors)]}
        setup.server.replies.append(Reply(200, json.dumps(answer)))
        with pytest.raises(ModelError, match=said):
            model.embed(["a text", "another one"])
        assert model.embed(["a text"]).shape == (1, DIMENSION)


@each_provider
def test_what_is_no_answer_of_the_protocol_is_refused(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    for body in ("<html>Sign in</html>", "", "[1, 2", '{"data": {}}', "3"):
        setup.server.replies.append(Reply(200, body))
        with pytest.raises(ModelError):
            model.embed(["a text"])


def test_an_order_that_makes_no_sense_is_refused(setup: Setup) -> None:
    model = setup.prepared()
    orders: tuple[list[object], ...] = ([0, 0], [1, 2], ["0", "1"], [0.0, 1.0])
    for numbers in orders:
        items = [{"index": number, "embedding": [1.0] * DIMENSION} for number in numbers]
        setup.server.replies.append(Reply(200, json.dumps({"data": items})))
        with pytest.raises(ModelError, match="index is not 0 to 1"):
            model.embed(["a text", "another one"])


@pytest.mark.parametrize(
    ("provider", "complaint"),
    [
        ("openai", (400, "This model's maximum context length is 8 tokens, however you requested 20 tokens")),
        ("ollama", (400, "the input length exceeds the context length")),
        ("huggingface", (413, "Input validation error: `inputs` must have less than 8 tokens. Given: 20")),
        (
            "openai",
            (500, "input (20 tokens) is too large to process. increase the physical batch size (current batch size: 8)"),
        ),
    ],
)
def test_a_text_refused_as_too_long_is_embedded_in_parts(setup: Setup, provider: str, complaint: tuple[int, str]) -> None:
    model = setup.prepared(provider)
    setup.server.longest, setup.server.complaint = 8, complaint
    words = ["boiler", "radiator", "warm", "room", "tomato", "plant", "garden", "may", "disk", "mirror", "siren", "safe"]
    found = model.embed([" ".join(words), "a short one"])
    setup.server.longest = None
    parts = model.embed([" ".join(words[:6]), " ".join(words[6:])])
    assert np.allclose(found[1], model.embed(["a short one"])[0], atol=1e-6)
    assert found[0] @ parts.sum(axis=0) / np.linalg.norm(parts.sum(axis=0)) > 0.99
    assert setup.time.pauses == []


def test_each_part_of_a_long_text_has_the_prompt(setup: Setup) -> None:
    model = setup.prepared(passage_prompt="passage: ")
    setup.server.longest = 4
    model.embed(["boiler radiator warm room tomato plant"])
    assert setup.server.texts[-1] == ["passage: boiler radiator warm", "passage:  room tomato plant"]


def test_a_dimension_that_changes_between_two_requests_is_noticed(setup: Setup) -> None:
    model = setup.prepared("ollama")
    full, short = [json.dumps({"embeddings": [[1.0] * size] * count}) for size, count in ((DIMENSION, 64), (12, 1))]
    setup.server.replies.extend([Reply(200, full), Reply(200, short)])
    with pytest.raises(ModelError, match="12 numbers, not 48"):
        model.embed(["a text"] * 65)


def test_a_server_that_refuses_every_text_is_not_asked_for_ever(setup: Setup) -> None:
    model = setup.prepared()
    setup.server.longest = 0
    with pytest.raises(ModelError, match="refuses a text of only"):
        model.embed(["some words that mean nothing"])


@each_provider
def test_more_texts_than_a_server_takes_at_once_are_sent_in_parts(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    texts = [f"text number {number}" for number in range(20)]
    expected = model.embed(texts)
    setup.server.most = 3
    assert np.allclose(model.embed(texts), expected, atol=1e-6)
    setup.server.asked.clear()
    assert np.allclose(model.embed(texts), expected, atol=1e-6)
    assert max(map(len, setup.server.texts)) <= 3


def test_a_request_has_at_most_so_many_words(setup: Setup) -> None:
    model = setup.prepared("ollama", model_window=8000)
    model.embed(["word " * 6000] * 10)
    assert [len(texts) for texts in setup.server.texts] == [6, 4]


@each_provider
def test_vectors_of_another_length_are_another_model(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    before = model.fingerprint
    setup.server.dimension = 12
    with pytest.raises(ModelError, match="12 numbers, not 48"):
        model.embed(["a text"])
    assert model.fingerprint != before
    model.prepare()
    assert model.dimension == 12
    assert "unknown" not in model.fingerprint
    assert model.embed(["a text"]).shape == (1, 12)


@each_provider
def test_another_model_of_the_same_name_is_noticed_after_a_start(setup: Setup, provider: str) -> None:
    before = setup.prepared(provider).fingerprint
    setup.server.seed = "retrained"
    setup.server.told.update(ollama_told("m", digest="sha256:2"))
    model = setup.open(provider)
    assert model.fingerprint == before
    with pytest.raises(ModelError, match="has another model now"):
        model.embed(["a text"])
    model.prepare()
    assert model.fingerprint != before
    assert setup.prepared(provider).fingerprint == model.fingerprint


@own_protocol
def test_the_same_model_at_another_address_is_the_same(setup: Setup, provider: str) -> None:
    before = setup.prepared(provider)
    with serving(ModelServer(told=dict(setup.server.told))) as elsewhere:
        moved = setup.open(provider, model_url=elsewhere.url + PATHS[provider])
        moved.prepare()
        assert moved.fingerprint == before.fingerprint


def test_what_is_known_is_there_while_the_server_is_not(tmp_path: Path, time: FakeTime) -> None:
    with serving(ModelServer()) as server:
        first = Setup(tmp_path, server, time).prepared()
    model = Setup(tmp_path, server, time).open()
    assert (model.fingerprint, model.dimension, model.window) == (first.fingerprint, first.dimension, first.window)
    assert model.count_tokens(["a boiler"]) == [2]
    with pytest.raises(ModelUnreachableError, match=r"127\.0\.0\.1.*SEMANTIC_MODEL_URL"):
        model.embed(["a text"])
    with serving(server):
        assert model.embed(["a text"]).shape == (1, DIMENSION)


@pytest.mark.parametrize("changed", [{"model": "openai:other"}, {"model_options": '{"dimensions": 12}'}])
def test_what_is_known_of_a_model_is_not_used_for_another(setup: Setup, changed: dict[str, str]) -> None:
    assert "unknown" not in setup.prepared().fingerprint
    assert "unknown" not in setup.open().fingerprint
    assert "unknown" in setup.open(**changed).fingerprint


def test_a_damaged_note_of_what_is_known_is_made_again(setup: Setup) -> None:
    before = setup.prepared()
    path = setup.place / "index" / "model.json"
    kept = json.loads(path.read_text())
    for content in ("", "{", "[]", "{}", '{"model": 3}', json.dumps(kept | {"dimension": -1})):
        path.write_text(content)
        again = setup.open()
        assert again.dimension == 0
        again.prepare()
        assert (again.fingerprint, json.loads(path.read_text())) == (before.fingerprint, kept)


def test_options_are_sent_and_change_the_fingerprint_where_they_change_vectors(setup: Setup) -> None:
    plain = setup.prepared()
    told = setup.prepared(model_options='{"dimensions": 48}')
    told.embed(["a text"])
    assert setup.server.asked[-1][2] == {"dimensions": 48, "model": "m", "input": ["a text"], "encoding_format": "float"}
    assert told.fingerprint != plain.fingerprint
    assert setup.prepared(model_options='{"user": "wiki"}').fingerprint == plain.fingerprint
    with pytest.raises(ModelError, match="may not have input"):
        setup.open(model_options='{"input": "x"}').embed(["a text"])


def test_ollama_is_told_not_to_cut(setup: Setup) -> None:
    setup.prepared("ollama", model_options='{"keep_alive": "1h"}').embed(["a text"])
    assert setup.server.asked[-1][2] == {"keep_alive": "1h", "model": "m", "input": ["a text"], "truncate": False}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"/v1/models/m": {"id": "m", "max_model_len": 4096}}, 4096),
        ({"/v1/models/m": {"id": "m", "context_length": 700}}, 700),
        ({"/v1/models/m": {"id": "m"}, "/info": {"max_input_length": 300}}, 300),
    ],
)
def test_the_window_is_what_the_server_tells(setup: Setup, told: dict[str, object], expected: int) -> None:
    setup.server.told = told
    model = setup.open()
    model.prepare()
    assert model.window == expected
    assert len(setup.server.texts) == 1


def test_ollama_reads_no_more_than_it_is_run_with(setup: Setup) -> None:
    assert setup.prepared("ollama").window == 512
    assert setup.prepared("ollama", model_options='{"options": {"num_ctx": 256}}').window == 256
    setup.server.told["/api/show"]["parameters"] = 'num_ctx    128\nstop    "x"'
    assert setup.prepared("ollama").window == 128


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({}, 1536), ({"longest": 1500}, 768), ({"cut": 512}, 384), ({"cut": 256}, 192), ({"cut": 100}, 96), ({"longest": 9}, 96)],
)
def test_a_window_that_nobody_tells_is_found_by_trying(setup: Setup, limits: dict[str, int], expected: int) -> None:
    setup.server.told.clear()
    setup.server.longest, setup.server.cut = limits.get("longest"), limits.get("cut")
    if limits.get("longest") == 9:
        setup.server.longest = 20  # the sample has to pass
    model = setup.open()
    model.prepare()
    assert model.window == expected
    assert 2 <= len(setup.server.texts) <= 5
    setup.server.asked.clear()
    setup.open().prepare()
    assert len(setup.server.texts) == 1


def test_a_window_that_is_set_wins_and_nothing_is_tried(setup: Setup) -> None:
    setup.server.told.clear()
    model = setup.open(model_window=100)
    model.prepare()
    assert model.window == 100
    assert len(setup.server.texts) == 1


def test_a_redirection_is_not_followed_with_the_key(setup: Setup) -> None:
    model = setup.prepared()
    setup.server.replies.append(Reply(307, "", {"Location": "http://127.0.0.1:9/v1/embeddings"}))
    with pytest.raises(ModelError, match="redirects elsewhere"):
        model.embed(["a text"])


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("gpu.example:8000", "http://gpu.example:8000"),
        ("https://gpu.example", "https://gpu.example:443"),
        ("http://gpu.example:1234/", "http://gpu.example:1234"),
        ("[::1]:11434", "http://[::1]:11434"),
        ("[::]", "http://[::1]:11434"),
        ("https://gpu.example/ollama", "https://gpu.example:443/ollama"),
        ("gpu.example:8000/ollama/", "http://gpu.example:8000/ollama"),
    ],
)
def test_ollamas_own_setting_is_read_as_ollama_reads_it(host: str, url: str) -> None:
    assert host_url(host) == url


def test_jina_is_told_what_is_a_query_and_what_a_passage(setup: Setup) -> None:
    model = setup.prepared("jina")
    model.embed(["a text"])
    model.embed_queries(["a query"])
    assert [body["task"] for _, _, body in setup.server.asked] == ["retrieval.passage", "retrieval.query"]


def test_a_key_that_is_set_here_comes_before_the_providers_own(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JINA_API_KEY", "another-key")
    setup.prepared("jina").embed(["a text"])
    assert setup.server.asked[-1][1]["Authorization"] == f"Bearer {KEY}"
    setup.open("jina", model_key=None).embed(["a text"])
    assert setup.server.asked[-1][1]["Authorization"] == "Bearer another-key"
    monkeypatch.delenv("JINA_API_KEY")
    with pytest.raises(ModelError, match="needs a key: set SEMANTIC_MODEL_KEY"):
        setup.open("jina", model_key=None).embed(["a text"])


@pytest.mark.parametrize(
    ("provider", "package"),
    [("cohere", "cohere"), ("mistral", "mistralai<2"), ("voyage", "voyageai"), ("bedrock", "boto3"), ("nomic", "nomic")],
)
def test_a_providers_missing_package_is_named(tmp_path: Path, provider: str, package: str) -> None:
    with pytest.raises(ModelError, match=f'pip install "{package}"'):
        open_embedder(settings_in(tmp_path, f"{provider}:m", model_key=KEY)).embed(["a text"])


def test_options_that_a_provider_does_not_take_are_named_with_those_that_it_does(setup: Setup) -> None:
    with pytest.raises(ModelError, match=r"has api_key, dimension, which jina does not take; allowed: dimensions, "):
        setup.open("jina", model_options='{"dimension": 12, "api_key": "sk-secret"}').embed(["a text"])
    with pytest.raises(ModelError, match="unset SEMANTIC_MODEL_URL"):
        open_embedder(settings_in(setup.place, "together:m", model_url=setup.server.url, model_key=KEY)).embed(["a text"])


SAID = 'Private: the "blue" safe opens\nwith M711-Q815, says Zoë at night'


def echoes(text: str) -> list[str]:
    """Return what servers make of a text that they do not take."""
    escaped = json.dumps(text)[1:-1]
    return [
        json.dumps({"error": {"message": f"1 validation error: input_value={text!r}, input_type=str"}}),
        json.dumps({"detail": f"cannot read {escaped}"}),
        f"<html>bad request: {text[9:30]}",
        json.dumps({"message": f"bad characters in {text[-20:]}"}),
        json.dumps({"error": "x" * 185 + text}),
    ]


@each_provider
def test_nothing_of_a_text_that_a_server_repeats_is_told(setup: Setup, provider: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = setup.prepared(provider, passage_prompt="passage: ")
    said = []
    for number, echo in enumerate(echoes(SAID)):
        status = (400, 500)[number % 2]
        for embed in (model.embed, model.embed_queries):
            model.prepare()  # after a failure, the server would be asked for its model first
            setup.server.replies.extend([Reply(status, echo)] * 4)
            with pytest.raises(ModelError, match=f"HTTP {status}") as caught:
                embed([SAID])
            setup.server.replies.clear()
            setup.time.now += 11
            said.append("".join(traceback.format_exception(caught.value)))
    for told in (*said, caplog.text):
        assert not any(piece in told for piece in ("safe", "opens", "M711", "Q815", "night", "xxx"))


@each_provider
def test_of_a_query_that_fails_only_the_status_is_told(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    setup.server.replies.append(Reply(400, '{"error": "cannot read \'tax\'"}'))
    with pytest.raises(ModelError, match=r"\(HTTP 400\); correct|\(HTTP 400\); make sure that") as caught:
        model.embed_queries(["tax"])
    assert "tax" not in str(caught.value)


@each_provider
def test_an_answer_that_makes_no_sense_is_not_repeated_either(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    for embed in (model.embed, model.embed_queries):
        setup.server.replies.append(Reply(200, json.dumps({"detail": SAID, "data": {SAID: SAID}, "embeddings": SAID})))
        with pytest.raises(ModelError) as caught:
            embed([SAID])
        assert "safe" not in "".join(traceback.format_exception(caught.value))


def test_a_short_passage_is_not_repeated_either(setup: Setup) -> None:
    model = setup.prepared(passage_prompt="passage: ")
    setup.server.replies.append(Reply(400, '{"error": "cannot read \'Divorce\'"}'))
    with pytest.raises(ModelError, match=r"\(HTTP 400\)"):
        model.embed(["Divorce"])


def test_a_long_query_that_a_server_repeats_is_still_embedded_in_parts(setup: Setup) -> None:
    model = setup.prepared()
    query = "boiler radiator warm room tomato plant"
    setup.server.longest, setup.server.complaint = 3, (400, f"input is too long: {query}")
    assert model.embed_queries([query]).shape == model.embed([query]).shape == (1, DIMENSION)


@pytest.mark.parametrize("variable", ["CHROMA_JINA_API_KEY", "JINA_API_KEY"])
def test_a_key_of_the_providers_own_variable_is_not_shown(setup: Setup, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "another-key-0123456789")
    monkeypatch.setenv("MAX_TOKENS", "read")  # too short for a secret
    model = setup.prepared("jina", model_key=None)
    setup.server.replies.append(Reply(400, '{"error": "cannot read another-key-0123456789"}'))
    with pytest.raises(ModelError, match="cannot read …"):
        model.embed(["a text"])


def test_a_query_waits_for_no_one_who_asks_what_the_model_is(setup: Setup) -> None:
    setup.prepared()
    model, asked, goes_on = setup.open(), Event(), Event()
    answer = setup.server.answer

    def held(path: str, body: object) -> Reply:
        if path != "/v1/embeddings":
            asked.set()
            goes_on.wait(20)
        return answer(path, body)

    setup.server.answer = held  # type: ignore[method-assign]
    preparing = Thread(target=model.prepare)
    preparing.start()
    assert asked.wait(10)
    assert model.embed_queries(["a query"]).shape == (1, DIMENSION)
    assert preparing.is_alive()
    goes_on.set()
    preparing.join()


@each_provider
def test_a_query_does_not_ask_what_the_model_is(setup: Setup, provider: str) -> None:
    model = setup.open(provider)
    with pytest.raises(ModelUnreachableError, match="not known yet"):
        model.embed_queries(["a query"])
    assert setup.server.asked == []


def test_the_first_contact_is_as_patient_as_indexing(setup: Setup) -> None:
    setup.server.replies.extend([Reply(503, "busy")] * 3)
    setup.open().prepare()
    assert setup.time.pauses == [1, 2, 4]


def test_the_first_contact_ends_after_four_attempts(setup: Setup) -> None:
    setup.server.replies.extend([Reply(503, "busy")] * 4)
    with pytest.raises(ModelUnreachableError, match="HTTP 503"):
        setup.open().prepare()
    assert len(setup.server.texts) == 4


def test_a_query_in_many_parts_has_no_more_time_than_another(setup: Setup) -> None:
    model = setup.prepared()
    setup.server.longest, answer = 1, setup.server.answer

    def slow(path: str, body: object) -> Reply:
        setup.time.now += 2
        return answer(path, body)

    setup.server.answer = slow  # type: ignore[method-assign]
    with pytest.raises(ModelUnreachableError, match="no answer within 5 s"):
        model.embed_queries(["boiler radiator warm room tomato plant garden may"])
    assert len(setup.server.texts) == 3


@each_provider
def test_queries_that_nobody_waits_for_have_the_patience_of_passages_and_slow_no_others(setup: Setup, provider: str) -> None:
    model = setup.prepared(provider)
    setup.server.replies.extend([Reply(500, "{}")] * 4)
    with pytest.raises(ModelUnreachableError, match="HTTP 500"):
        model.embed_queries(["a query"], interactive=False)
    assert setup.time.pauses == [1, 2, 4]
    setup.server.replies.extend([Reply(500, "{}")] * 2)
    with pytest.raises(ModelUnreachableError, match="HTTP 500"):
        model.embed_queries(["a query"])
    assert model.embed_queries(["a query"], interactive=False).shape == (1, DIMENSION)


def test_passages_leave_room_for_the_prompt(setup: Setup) -> None:
    prompt = "This is a passage of the handbook of a house with a garden, to be found by those who ask about it in few words: "
    model = setup.prepared("ollama", model_window=128, passage_prompt=prompt)
    content = "# House\n\n" + "\n\n".join(
        f"## Room {number}\n\n" + f"The radiator of room {number} is warm when the boiler runs, in winter. " * 20
        for number in range(4)
    )
    profile = profile_named("minilm", model.window - model.overhead)
    chunks = read_page("house.md", "blob", content.encode(), model, profile).chunks
    embed_passages(model, chunks, profile.heading_weight)
    (sent,) = setup.server.texts
    assert max(model.input_tokens([text.removeprefix(prompt) for text in sent])) <= 128
    assert sent[: len(chunks)] == [prompt + chunk.text for chunk in chunks]


def test_what_ollamas_own_setting_may_not_hold_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "https://me:hidden-word@gpu.example")
    model = open_embedder(settings_in(tmp_path, "ollama:m"))
    with pytest.raises(ModelError, match="OLLAMA_HOST must not contain a user name or a password") as caught:
        model.prepare()
    assert "hidden-word" not in "".join(traceback.format_exception(caught.value))


@own_protocol
@pytest.mark.parametrize("url", ["http://a..b", "http://x\x7fy"])
def test_an_address_that_is_none_is_told(tmp_path: Path, provider: str, url: str) -> None:
    with pytest.raises(ModelError, match=r"the address is invalid.*SEMANTIC_MODEL_URL") as caught:
        open_embedder(settings_in(tmp_path, f"{provider}:m", model_url=url)).prepare()
    assert not isinstance(caught.value, ModelUnreachableError)
