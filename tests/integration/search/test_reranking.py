"""A reranker puts the best passages in order; when it fails, is slow or is not there, answers come as they would without."""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import ParameterError, RerankerError
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import Answer, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.telemetry import NO_TELEMETRY
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding import Matrix
from otterwiki_semantic.search import pipeline
from otterwiki_semantic.search.reranking import stage
from otterwiki_semantic.search.reranking.cohere import CohereReranker
from otterwiki_semantic.search.reranking.cross_encoder import CrossEncoderReranker
from otterwiki_semantic.search.reranking.stage import Reranker, RerankStage, open_reranker
from tests.support.live_wiki import eventually, make_repository
from tests.support.rerank_server import Reply, RerankServer, ranked, saying

KEY = "sk-rerank-0123456789"
OPINION = "The best pump is the blue one, says the gardener."
PAGES: dict[str, str | bytes] = {
    "pump.md": "# Pump\n\nThe pump lifts water from the well to the vegetable beds each evening.\n",
    "beds.md": "# Beds\n\nBeans and peas grow in raised beds; water them with the pump when it is dry.\n",
    "opinion.md": f"# Opinion\n\n{OPINION}\n",
    "cellar.md": "# Cellar\n\n## Wine\n\nBottles lie on their side, far from the boiler, where the air stays cool and damp.\n",
    "long.md": "# Watering\n\n"
    + "\n\n".join(
        f"## Bed {number}\n\n" + f"Bed {number} gets water from the pump, hose {number}, for {number} minutes. " * 12
        for number in range(5)
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[RerankServer]:
    with RerankServer() as made:
        yield made


@pytest.fixture(scope="module")
def shared_index(server: RerankServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    place = tmp_path_factory.mktemp("reranked")
    index = IndexEngine(
        Settings(
            make_repository(place / "repository", PAGES),
            place / "index",
            sync_interval=3600,
            pages=(),
            reranker="cohere:rerank-v3.5",
            reranker_url=server.url,
            reranker_key=KEY,
        )
    )
    index.start()
    eventually(lambda: index.status().status == "ready" and not index.status().reranker_is_loading)
    yield index
    index.close()


@pytest.fixture
def index(shared_index: IndexEngine, server: RerankServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[IndexEngine]:
    """The index of the module, with a reranker that works and was not yet asked."""
    monkeypatch.setattr(shared_index._reranking, "_cooldown", Cooldown(0.0))
    monkeypatch.setattr(stage, "_TIMEOUT", 30.0)
    server.reply = ranked
    server.requests.clear()
    server.keys.clear()
    yield shared_index
    server.reply = ranked
    server.goes_on.set()


def search(index: IndexEngine, query: str, **options: Any) -> Answer:
    return index.search([query], parse_parameters(SearchOptions, {"rerank": True, **options}))[0]


def by(word: str) -> Callable[[dict[str, Any]], Reply]:
    """Return a reranker for which those texts are best that have a word."""
    return lambda body: ranked(body, lambda _, text: float(word in text))


def paths(answer: Answer) -> list[str]:
    return [hit.path for hit in answer.results]


# The order


def test_the_order_is_the_rerankers(index: IndexEngine, server: RerankServer) -> None:
    server.reply = by("gardener")
    before, after = search(index, "where does water come from", rerank=False), search(index, "where does water come from")
    assert paths(before)[0] != "opinion"
    assert paths(after)[0] == "opinion"
    assert (before.reranker, after.reranker) == (None, "cohere:rerank-v3.5")
    assert after.degraded is None
    assert [hit.score for hit in after.results] == sorted((hit.score for hit in after.results), reverse=True)


@pytest.mark.parametrize("candidates", [100, 5])
def test_pages_of_a_reranked_answer_are_parts_of_it(
    index: IndexEngine, server: RerankServer, monkeypatch: pytest.MonkeyPatch, candidates: int
) -> None:
    monkeypatch.setattr(pipeline, "_CANDIDATES", candidates)
    server.reply = by("hose")
    whole = search(index, "water", limit=50, max_chunks_per_page=5, explain=True).results
    assert len(whole) > 5
    for offset in range(len(whole)):
        for limit in (1, 3):
            page = search(index, "water", offset=offset, limit=limit, max_chunks_per_page=5, explain=True)
            assert page.results == whole[offset : offset + limit]


def test_the_request_is_that_of_the_api(index: IndexEngine, server: RerankServer) -> None:
    search(index, "where does water come from")
    (request,) = server.requests
    assert request["model"] == "rerank-v3.5"
    assert request["query"] == "where does water come from"
    assert request["top_n"] == len(request["documents"]) <= 30
    assert f"[Opinion] {OPINION}" in request["documents"]
    assert server.paths[-1] == "/v2/rerank"
    assert server.keys[-1] == f"Bearer {KEY}"


def test_equally_good_ones_stay_in_their_order(index: IndexEngine, server: RerankServer) -> None:
    server.reply = lambda body: ranked(body, lambda *_: 0.5)
    assert paths(search(index, "water for the beds", n=8)) == paths(search(index, "water for the beds", n=8, rerank=False))


def test_a_page_gets_no_more_than_its_share(index: IndexEngine, server: RerankServer) -> None:
    server.reply = by("hose")
    answer = search(index, "where does water come from", n=5)
    assert paths(answer)[:2] == ["long", "long"]
    assert paths(answer).count("long") == 2
    assert len(set(paths(search(index, "where does water come from", max_chunks_per_page=1)))) == 5


def test_diversity_begins_with_the_rerankers_best(index: IndexEngine, server: RerankServer) -> None:
    server.reply = by("hose")
    same = search(index, "where does water come from", n=3)
    diverse = search(index, "where does water come from", n=3, diversity=1)
    assert same.results[0].path == diverse.results[0].path == "long"
    assert paths(same).count("long") == 2
    assert paths(diverse).count("long") == 1


def test_explain_tells_the_rank_before_and_the_rerankers_score(index: IndexEngine, server: RerankServer) -> None:
    server.reply = by("gardener")
    places = paths(search(index, "where does water come from", n=20, rerank=False))
    hit = search(index, "where does water come from", explain=True).results[0]
    assert hit.explain is not None
    assert hit.explain.rule == "reranker"
    assert hit.explain.rerank.score == 1.0
    assert hit.explain.rerank.rank is not None
    assert hit.explain.rerank.rank > places.index("opinion")
    untouched = search(index, "where does water come from", explain=True, rerank=False).results[0].explain
    assert untouched is not None
    assert untouched.rerank.rank is None


def test_what_is_relevant_is_decided_as_before(index: IndexEngine, server: RerankServer) -> None:
    server.reply = by("gardener")
    before = search(index, "where does water come from", n=20, rerank=False)
    after = search(index, "where does water come from", n=20)
    assert before.confident == after.confident
    relevant = {(hit.path, hit.chunk_index): hit.relevant for hit in before.results}
    assert {(hit.path, hit.chunk_index): hit.relevant for hit in after.results} == relevant


def test_each_of_several_questions_is_read_by_itself(index: IndexEngine, server: RerankServer) -> None:
    answers = index.search(["where does water come from", "how are bottles kept"], SearchOptions(rerank=True))
    assert {request["query"] for request in server.requests} == {answer.query for answer in answers}
    assert [answer.reranker for answer in answers] == ["cohere:rerank-v3.5"] * 2


# When it is used


@pytest.mark.parametrize(
    ("given", "is_asked"),
    [
        ({}, True),
        ({"rerank": "false"}, False),
        ({"draft": "true"}, False),
        ({"draft": "true", "rerank": "true"}, True),
        ({"mode": "keyword"}, False),
        ({"mode": "semantic", "rerank": "yes"}, True),
    ],
)
def test_a_fast_one_is_used_unless_somebody_types_or_chose_the_ranking(
    index: IndexEngine, server: RerankServer, given: dict[str, str], is_asked: bool
) -> None:
    answer = index.search(["water from the well"], parse_parameters(SearchOptions, given))[0]
    assert bool(server.requests) is (answer.reranker is not None) is is_asked


def test_rerank_is_true_or_false() -> None:
    with pytest.raises(ParameterError, match=r"rerank is 'maybe'; allowed are true and false"):
        parse_parameters(SearchOptions, {"rerank": "maybe"})


def test_where_none_is_configured_the_answer_says_so(settings: Settings) -> None:
    index = IndexEngine(settings)
    index.start()
    eventually(lambda: index.status().status == "ready")
    wanted, unsaid = index.search(["x"], SearchOptions(rerank=True))[0], index.search(["x"], SearchOptions())[0]
    assert wanted.degraded is not None
    assert "SEMANTIC_RERANKER" in wanted.degraded
    assert unsaid.degraded is None
    assert wanted.results == unsaid.results
    assert index.status().reranker is None
    index.close()


def test_answers_and_status_tell_it(index: IndexEngine) -> None:
    assert to_builtins(search(index, "where does water come from"))["reranker"] == "cohere:rerank-v3.5"
    assert "reranker" not in to_builtins(search(index, "where does water come from", rerank=False))
    status = to_builtins(index.status())
    assert (status["reranker"], status["reranker_is_loading"], status["problems"]) == ("cohere:rerank-v3.5", False, ())


# When it fails


def results(*pairs: tuple[Any, Any]) -> Callable[[dict[str, Any]], Reply]:
    body = {"results": [{"index": place, "relevance_score": score} for place, score in pairs]}
    return lambda _: (200, json.dumps(body).encode())


_OTHER = "does not answer as Cohere's"
FAILURES: dict[str, tuple[Callable[[dict[str, Any]], Reply], str]] = {
    "too many requests": (saying(429, "slow down"), "answers 429 (slow down); wait"),
    "out of order": (saying(500, "oops"), "answers 500 (oops)"),
    "no such model": (saying(404, "model not found"), "correct SEMANTIC_RERANKER"),
    "a refused key": (saying(401, f"invalid api key {KEY}"), "set SEMANTIC_RERANKER_KEY"),
    "an echo of the key": (saying(400, f"cannot read 'Bearer {KEY}'"), "answers 400 (cannot read 'Bearer …')"),
    "no JSON": (lambda _: (200, b"<html>"), _OTHER),
    "other JSON": (lambda _: (200, b"[[]]"), _OTHER),
    "deep JSON": (lambda _: (200, b"[" * 100_000), _OTHER),
    "too few": (lambda body: ranked(body | {"top_n": 1}), _OTHER),
    "the same place twice": (lambda body: results(*[(0, 0.5)] * len(body["documents"]))(body), _OTHER),
    "places that are not there": (
        lambda body: results(*[(place + 1, 0.5) for place, _ in enumerate(body["documents"])])(body),
        _OTHER,
    ),
    "no numbers": (lambda body: results(*[(place, KEY) for place, _ in enumerate(body["documents"])])(body), _OTHER),
    "not a number": (lambda body: ranked(body, lambda *_: float("nan")), "make no sense"),
    "far too much": (lambda _: (200, b" " * (2 << 20)), "more than 1,048,576 bytes"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_leaves_the_order_as_it_was_and_says_what_to_do(
    index: IndexEngine, server: RerankServer, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.DEBUG)
    usual = search(index, "where does water come from", rerank=False)
    server.reply, told = FAILURES[name]
    answer = search(index, "where does water come from")
    assert answer.results == usual.results
    assert answer.reranker is None
    assert answer.degraded is not None
    assert answer.degraded.startswith("the answer is not reranked: ")
    assert told in answer.degraded
    (problem,) = index.status().problems
    assert told in problem.message
    assert "every 30 s" in problem.hint
    assert KEY not in f"{answer}{index.status()}{caplog.text}"
    server.reply = ranked
    assert search(index, "where does water come from").degraded is None
    assert index.status().problems == ()


def test_nothing_a_server_repeats_is_told(index: IndexEngine, server: RerankServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for repeated in (lambda body: body["query"], lambda body: body["documents"][0], lambda body: json.dumps(body["documents"])):
        server.reply = lambda body, repeated=repeated: saying(422, f"1 validation error: {repeated(body)!r}")(body)  # type: ignore[misc]
        answer = search(index, "where does water come from")
        assert answer.degraded is not None
        assert "answers 422;" in answer.degraded
        told = f"{answer.degraded}{index.status().problems}{caplog.text}"
        assert not any(words in told for words in ("water come", "lifts water", "vegetable", "blue one", "Bottles"))


def test_a_key_is_hidden_as_json_writes_it_too(server: RerankServer) -> None:
    key = 'quo"ted-key-0123'
    server.reply = saying(400, f"cannot read {json.dumps(key)}")
    (found,) = asked(CohereReranker("m", server.url, key))
    server.reply = ranked
    assert 'cannot read "…"' in str(found)


def test_a_search_at_the_end_of_loading_does_not_load_again(server: RerankServer, monkeypatch: pytest.MonkeyPatch) -> None:
    reranker, begun = CohereReranker("m", server.url, KEY), threading.Event()
    loads: list[int] = []
    found: list[object] = []

    def load() -> None:
        begun.wait(20)
        loads.append(1)
        CohereReranker.load(reranker)

    monkeypatch.setattr(reranker, "load", load)
    made = RerankStage(reranker, NO_TELEMETRY)
    submit = made._threads.submit

    def watched(*given: Any) -> Any:
        future = submit(*given)
        if not found and not begun.is_set():
            future.add_done_callback(lambda _: found.extend(made.scores([("cat", ["the cat sat", "a dog"])])))
        return future

    monkeypatch.setattr(made._threads, "submit", watched)
    made.start()
    begun.set()
    eventually(lambda: found)
    made.close()
    assert loads == [1]
    assert not isinstance(found[0], RerankerError)


def test_queries_are_embedded_once_although_a_reranked_search_asks_twice(
    index: IndexEngine, server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[str] = []
    submit = index._searcher.queries.submit

    def counted(queries: Iterable[str]) -> dict[str, Future[Matrix]]:
        submitted.extend(asked := list(queries))
        return submit(asked)

    monkeypatch.setattr(index._searcher.queries, "submit", counted)
    assert search(index, "where does water come from").reranker
    assert (len(server.requests), submitted) == (1, ["where does water come from"])


def test_the_first_answer_stands_if_the_index_goes_while_the_reranker_reads(
    index: IndexEngine, server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = index._manager.index.generation

    def lose_index(body: dict[str, Any]) -> Reply:
        monkeypatch.setattr(index._manager.index, "generation", None)
        return ranked(body)

    server.reply = lose_index
    try:
        answer = search(index, "where does water come from")
    finally:
        monkeypatch.setattr(index._manager.index, "generation", serving)
    assert answer.results == search(index, "where does water come from", rerank=False).results


def test_what_fails_is_left_alone_a_while(index: IndexEngine, server: RerankServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.reply = saying(500, "oops")
    monkeypatch.setattr(index._reranking, "_cooldown", Cooldown(3600.0))
    first, second = search(index, "where does water come from"), search(index, "where does water come from")
    assert len(server.requests) == 1
    assert first.degraded == second.degraded != None  # noqa: E711
    index._reranking._cooldown.stop()
    server.reply = ranked
    assert search(index, "where does water come from").reranker


def test_one_that_does_not_answer_slows_nobody_else(index: IndexEngine, server: RerankServer) -> None:
    server.goes_on.clear()
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(search, index, "where does water come from") for _ in range(3)]
        eventually(lambda: len(server.requests) == 3)
        assert all(other.results for other in [search(index, "where does water come from", rerank=False) for _ in range(5)])
        assert not any(each.done() for each in waiting)
        server.goes_on.set()
    assert [each.result().reranker for each in waiting] == ["cohere:rerank-v3.5"] * 3


def test_one_that_does_not_answer_in_time_is_not_waited_for(
    index: IndexEngine, server: RerankServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "_TIMEOUT", 0.1)
    server.goes_on.clear()
    answer = search(index, "where does water come from")
    assert answer.results == search(index, "where does water come from", rerank=False).results
    assert "in time" in str(answer.degraded) or "within 0.1 s" in str(answer.degraded)


def test_one_that_cannot_be_reached_is_told() -> None:
    with RerankServer() as gone:
        url = gone.url
    (found,) = asked(CohereReranker("m", url, KEY))
    assert isinstance(found, RerankerError)
    assert "cannot be reached" in str(found)
    assert "SEMANTIC_RERANKER_URL" in str(found)


def asked(reranker: Reranker, texts: tuple[str, ...] = ("the cat sat", "a dog")) -> list[list[float] | RerankerError]:
    """Return what a reranker says of a question, after it was loaded or could not be."""
    made = RerankStage(reranker, NO_TELEMETRY)
    made.start()
    eventually(lambda: not made.is_loading)
    found = made.scores([("cat", texts)])
    made.close()
    return found


@pytest.mark.parametrize(
    ("reranker", "told"),
    [
        (CohereReranker("rerank-v3.5"), "set SEMANTIC_RERANKER_KEY"),
        (CohereReranker("rerank-v3.5", key=f"{KEY}\nX: y"), "characters that cannot be sent"),
        (CohereReranker("rerank-v3.5", key=f"{KEY}é"), "characters that cannot be sent"),
    ],
)
def test_a_key_that_is_missing_or_cannot_be_sent_is_told_and_not_shown(reranker: CohereReranker, told: str) -> None:
    (found,) = asked(reranker)
    assert isinstance(found, RerankerError)
    assert told in str(found)
    assert KEY not in str(found)


def test_an_address_that_names_its_route_is_used_as_it_is(server: RerankServer) -> None:
    assert asked(CohereReranker("m", f"{server.url}/v1/rerank"))[0] == pytest.approx([1, 0], abs=1e-3)
    assert server.paths[-1] == "/v1/rerank"
    assert server.keys[-1] is None


def test_a_long_text_is_cut_and_one_that_is_no_text_is_sent(server: RerankServer) -> None:
    asked(CohereReranker("m", server.url), ("word " * 2_000, "half a \ud800 character"))
    assert [len(text) for text in server.requests[-1]["documents"]] == [4_000, 18]


# Cross-encoders


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with random weights, as sentence-transformers would load one."""
    pytest.importorskip("sentence_transformers", reason="cross-encoders need sentence-transformers, which is an extra")
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    place = tmp_path_factory.mktemp("models") / "tiny"
    place.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", "cat", "dog", "the", "##s"]
    vocabulary = place / "vocab.txt"
    vocabulary.write_text("\n".join(words))
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(place)
    BertTokenizerFast(str(vocabulary), model_max_length=64).save_pretrained(place)
    return place


@pytest.fixture(params=["cohere", "cross-encoder"])
def reranker(request: pytest.FixtureRequest, settings: Settings, server: RerankServer) -> Iterator[Reranker]:
    """Each kind of reranker, as the settings name it."""
    server.reply = ranked
    model = "m" if request.param == "cohere" else str(request.getfixturevalue("cross_encoder"))
    url = server.url if request.param == "cohere" else None
    made = open_reranker(dataclasses.replace(settings, reranker=f"{request.param}:{model}", reranker_url=url))
    assert made is not None
    made.load()
    yield made
    made.close()


def test_every_reranker_gives_each_text_its_score_whatever_the_others_are(reranker: Reranker) -> None:
    texts = ["the cat", "a dog " * 40, "the cats and the dog", "", "x", *(f"{number} cats" for number in range(20))]
    together = reranker.scores("cat", texts, 30)
    assert len(together) == len(texts)
    assert len(set(together)) > 3
    alone = [reranker.scores("cat", [text], 30)[0] for text in texts[:3]]
    assert together[:3] == pytest.approx(alone, abs=1e-4)
    assert reranker.scores("cat", texts[::-1], 30) == pytest.approx(together[::-1], abs=1e-4)
    assert reranker.name in {"cohere:m", "cross-encoder:tiny"}, "it names no place"


def test_every_reranker_answers_several_at_a_time(reranker: Reranker) -> None:
    expected = reranker.scores("cat", ["the cat", "a dog"], 30)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: reranker.scores("cat", ["the cat", "a dog"], 30), range(4)))
    assert found == [pytest.approx(expected, abs=1e-4)] * 4


def test_every_reranker_gives_up_when_its_time_is_over(reranker: Reranker, server: RerankServer) -> None:
    server.goes_on.clear()
    with pytest.raises(RerankerError):
        reranker.scores("cat", ["the cat", "a dog"] * 10, 1e-9)
    server.goes_on.set()


def test_a_cross_encoder_on_the_processor_is_used_only_if_asked_for(cross_encoder: Path) -> None:
    import torch

    made = CrossEncoderReranker(str(cross_encoder))
    assert not made.is_fast
    made.load()
    assert made.is_fast is torch.cuda.is_available()


def test_a_cross_encoder_runs_on_the_configured_device(cross_encoder: Path, settings: Settings) -> None:
    configured = dataclasses.replace(settings, reranker=f"cross-encoder:{cross_encoder}")
    on_processor, on_another = (open_reranker(dataclasses.replace(configured, device=device)) for device in ("cpu", "none"))
    assert on_processor is not None
    assert on_another is not None
    on_processor.load()
    assert not on_processor.is_fast
    with pytest.raises(RerankerError, match="correct SEMANTIC_RERANKER or SEMANTIC_DEVICE"):
        on_another.load()


def test_a_model_that_is_no_reranker_is_told(cross_encoder: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig.from_pretrained(cross_encoder, num_labels=3)
    BertForSequenceClassification(config).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((cross_encoder / name).read_bytes())
    (found,) = asked(CrossEncoderReranker(str(tmp_path)))
    assert "gives 3 numbers for a text" in str(found)


def test_a_directory_without_a_model_is_told(cross_encoder: Path, tmp_path: Path) -> None:  # noqa: ARG001 - skips without torch
    (found,) = asked(CrossEncoderReranker(str(tmp_path)))
    assert isinstance(found, RerankerError)
    assert "correct SEMANTIC_RERANKER" in str(found)
    assert str(tmp_path.parent) not in str(found)


def test_a_missing_package_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sentence_transformers", None)
    (found,) = asked(CrossEncoderReranker("cross-encoder/ms-marco-MiniLM-L6-v2"))
    assert pip_install("sentence-transformers") in str(found)


def test_searches_go_on_while_a_model_is_loaded(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Loading(CohereReranker):
        is_there = threading.Event()

        def load(self) -> None:
            self.is_there.wait()

    made = RerankStage(Loading("m"), NO_TELEMETRY)
    made.start()
    for name, value in vars(made).items():
        monkeypatch.setattr(index._reranking, name, value)
    answer = search(index, "where does water come from")
    assert "is being loaded" in str(answer.degraded)
    assert answer.results
    status = index.status()
    assert (status.reranker_is_loading, status.problems) == (True, ())
    Loading.is_there.set()
    made.close()
