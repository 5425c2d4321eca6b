"""Models that write, over their real protocols: what is sent, what comes back, and what goes wrong."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.errors import ChatModelError
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.search.answering.chat import ChatModel, Message, open_chat_model
from tests.support.chat_server import (
    PROVIDERS,
    ChatServer,
    Script,
    dripping,
    end_event,
    refusing,
    saying,
    sending,
    sse,
    text_event,
)
from tests.support.ports import free_port

SECONDS = 60
"""How long a test waits before it fails."""
KEY = "sk-very-secret-key"
SENT = "The combination of the safe is nobody's business but ours."
ASKED = [Message("system", "Follow the rules."), Message("user", "Who?"), Message("assistant", "Ana."), Message("user", SENT)]

pytestmark = pytest.mark.parametrize("provider", PROVIDERS)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask once more at once."""
    monkeypatch.setattr("otterwiki_semantic.search.answering.chat._RETRY_SECONDS", 0.01)


def model_of(provider: str, url: str | None, **settings: Any) -> ChatModel:
    model = open_chat_model(
        Settings(Path("/r"), Path("/d"), answers=f"{provider}:small", answers_key=KEY, answers_url=url, **settings)
    )
    assert model is not None
    return model


def answered(provider: str, script: Script, seconds: float = 10.0, **server_options: Any) -> str:
    with ChatServer(script, **server_options) as server:
        return "".join(model_of(provider, server.url).stream(ASKED, seconds, lambda: False))


def error_of(provider: str, script: Script, seconds: float = 10.0, **server_options: Any) -> str:
    with pytest.raises(ChatModelError) as caught:
        answered(provider, script, seconds, **server_options)
    return str(caught.value)


def test_an_answer_comes_in_pieces(provider: str) -> None:
    with ChatServer(saying("Backups are ", "kept 14 days ", "[1].")) as server:
        model = model_of(provider, server.url, answers_window=4_096)
        assert list(model.stream(ASKED, 10, lambda: False)) == ["Backups are ", "kept 14 days ", "[1]."]
    (body,) = server.requests
    assert body["stream"] is True
    told = [(each["role"], each["content"]) for each in body["messages"]]
    assert told[-3:] == [("user", "Who?"), ("assistant", "Ana."), ("user", SENT)]
    assert "Follow the rules." in str(body)
    if provider == "ollama":
        assert body["options"]["num_ctx"] == 4_096
    sent_key = server.headers[0].get("X-Api-Key") or server.headers[0].get("x-api-key") or server.headers[0]["Authorization"]
    assert sent_key in {KEY, f"Bearer {KEY}"}


def test_options_are_sent_but_not_those_that_are_decided_here(provider: str) -> None:
    with ChatServer(saying("Yes.")) as server:
        "".join(model_of(provider, server.url, answers_options='{"top_p": 0.5}').stream(ASKED, 10, lambda: False))
        assert server.requests[0]["top_p"] == 0.5
        with pytest.raises(ChatModelError, match="SEMANTIC_ANSWERS_OPTIONS may not have tools"):
            "".join(model_of(provider, server.url, answers_options='{"tools": []}').stream(ASKED, 10, lambda: False))
        assert len(server.requests) == 1


def test_thoughts_are_no_part_of_the_answer(provider: str) -> None:
    for pieces in (["<think>The user wants…</think>\n\nYes."], ["<th", "ink>hm [1].</thi", "nk>Yes", "."]):
        assert answered(provider, saying(*pieces)).strip() == "Yes."


def test_thoughts_in_events_of_their_own_are_none_either(provider: str) -> None:
    thought = {
        "ollama": b'{"message": {"content": "", "thinking": "hm"}, "done": false}\n',
        "openai": sse({"choices": [{"delta": {"reasoning_content": "hm"}}]}),
        "anthropic": sse({"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}}),
    }[provider]
    assert answered(provider, sending(thought, text_event(provider, "Yes."), end_event(provider))) == "Yes."


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (refusing(401, "wrong key"), "set SEMANTIC_ANSWERS_KEY"),
        (refusing(404, "model not found"), "model not found; correct SEMANTIC_ANSWERS"),
        (refusing(400, f"cannot read {SENT}"), "answers 400; correct"),
        (refusing(401, f"wrong key {KEY}"), "wrong key …"),
        (saying("", ending=None), "answered nothing"),
    ],
)
def test_refusals_say_what_to_do_and_nothing_secret(provider: str, script: Script, said: str) -> None:
    message = error_of(provider, script)
    assert said in message
    assert KEY not in message
    assert "safe" not in message


def test_a_busy_server_is_asked_once_more(provider: str) -> None:
    scripts: Iterator[Script] = iter([refusing(429, "busy", Retry_After="0.1"), saying("Yes.")])

    def in_turn(body: dict[str, Any], kind: str) -> Iterable[bytes]:
        return next(scripts)(body, kind)

    assert answered(provider, in_turn) == "Yes."
    assert "busy" in error_of(provider, refusing(503, "busy", Retry_After="0.1"))


def test_an_answer_that_is_cut_is_known_as_cut(provider: str) -> None:
    assert "ended the answer before its end" in error_of(provider, sending(text_event(provider, "Backups are")))


def test_an_answer_that_is_too_long_is_known_as_such(provider: str) -> None:
    ending = {"ollama": "length", "openai": "length", "anthropic": "max_tokens"}[provider]
    assert "reached its longest answer" in error_of(provider, saying("Backups", ending=ending))


def test_a_call_of_a_tool_is_no_answer(provider: str) -> None:
    event = {
        "ollama": b'{"message": {"content": "", "tool_calls": [{"function": {"name": "rm"}}]}, "done": true}\n',
        "openai": sse({"choices": [{"delta": {"tool_calls": [{"function": {"name": "rm"}}]}, "finish_reason": "tool_calls"}]}),
        "anthropic": sse({"type": "content_block_start", "content_block": {"type": "tool_use", "name": "rm"}})
        + end_event("anthropic", "tool_use"),
    }[provider]
    assert "asked for a tool" in (message := error_of(provider, sending(event))) or "answered nothing" in message


def test_an_error_within_the_stream_is_told(provider: str) -> None:
    event = {
        "ollama": b'{"error": "out of memory"}\n',
        "openai": sse({"error": {"message": "out of memory"}}),
        "anthropic": sse({"type": "error", "error": {"type": "overloaded_error", "message": "out of memory"}}),
    }[provider]
    assert "out of memory" in error_of(provider, sending(text_event(provider, "Yes"), event))


def test_garbage_is_an_error(provider: str) -> None:
    bad = (
        b"<html>log in</html>",
        b"data: {{{\n\n{\n",
        b"data: [1, 2]\n\n[1, 2]\n",
        b"data: \xff\xfe\n\n\xff\n",
        b"data: {}\n\n{}\n",
    )
    for piece in bad:
        assert f"{provider}:small" in error_of(provider, sending(piece))
    assert f"{provider}:small" in error_of(provider, sending(bad[0]), content_type="text/html")


def test_an_endless_line_ends(provider: str) -> None:
    assert "bytes" in error_of(provider, lambda _body, _kind: (b"x" * 100_000 for _ in range(1_000)))


def test_a_dripping_server_ends_in_time(provider: str) -> None:
    with ChatServer(dripping("no ", 0.05)) as server:
        with pytest.raises(ChatModelError, match="SEMANTIC_ANSWERS_SECONDS"):
            "".join(model_of(provider, server.url).stream(ASKED, 1, lambda: False))
        assert server.hung_up.wait(SECONDS)


@pytest.mark.parametrize("is_silent", [False, True])
def test_the_connection_ends_with_the_reader(provider: str, is_silent: bool) -> None:
    def silent(_body: dict[str, Any], kind: str) -> Iterator[bytes]:
        yield text_event(kind, "So")
        while True:
            time.sleep(0.05)
            yield b""

    with ChatServer(silent if is_silent else dripping("so ", 0.05)) as server:
        answer = model_of(provider, server.url).stream(ASKED, 60, lambda: False)
        next(iter(answer))
        answer.close()  # type: ignore[attr-defined]
        assert server.hung_up.wait(SECONDS)


def test_the_connection_ends_before_the_answer_begins(provider: str) -> None:
    """A model may read the sources for a minute before its server sends anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as threads:
        listening.settimeout(SECONDS)

        def asked() -> socket.socket:
            connection, _ = listening.accept()
            connection.settimeout(SECONDS)
            assert connection.recv(1)  # without a request, a connection is kept for the next one
            return connection

        asking = threads.submit(asked)
        model = model_of(provider, f"http://127.0.0.1:{listening.getsockname()[1]}")
        assert list(model.stream(ASKED, SECONDS, asking.done)) == []
        with asking.result() as connection:
            while connection.recv(65_536):
                pass


def test_a_cancelled_answer_ends_without_an_error(provider: str) -> None:
    read: list[str] = []
    with ChatServer(dripping("so ", 0.02)) as server:
        for part in model_of(provider, server.url).stream(ASKED, SECONDS, lambda: len(read) > 3):
            read.append(part)  # noqa: PERF402 - what was read cancels the answer
        assert server.hung_up.wait(SECONDS)
    assert read


def test_nobody_there(provider: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ChatModelError, match="make sure that it runs"):
        "".join(model_of(provider, url).stream(ASKED, 5, lambda: False))


def test_a_check_asks_about_the_model_and_sends_no_text(provider: str) -> None:
    with ChatServer(saying("Yes.")) as server:
        assert "8,192 tokens" in model_of(provider, server.url).check(5)
        assert server.requests == []


def test_the_key_of_a_provider_is_needed_where_it_is(provider: str) -> None:
    settings = Settings(Path("/r"), Path("/d"), answers=f"{provider}:small")
    model = open_chat_model(settings)
    assert model is not None
    if provider != "ollama":
        with pytest.raises(ChatModelError, match="set SEMANTIC_ANSWERS_KEY"):
            next(iter(model.stream(ASKED, 5, lambda: False)))


def test_nothing_is_asked_for_a_reader_who_has_left(provider: str) -> None:
    with ChatServer(saying("Yes.")) as server:
        assert list(model_of(provider, server.url).stream(ASKED, 5, lambda: True)) == []
