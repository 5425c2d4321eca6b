"""Who may ask the MCP server over HTTP, and what the command says when it is told too little."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest

from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.mcp.backend import BackendError
from otterwiki_semantic.mcp.http_auth import http_access
from otterwiki_semantic.mcp.rest_backend import RestBackend
from tests.support.fork_server import python
from tests.support.mcp_clients import PROGRAM, Server, environment, http_server

TOKEN = "a-token-that-nobody-may-see"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that asks for a token; it needs no wiki to say who may ask."""
    arguments = (
        "--url",
        "http://127.0.0.1:9",
        "--allowed-host",
        "wiki.example.org",
        "--allowed-origin",
        "https://chat.example.org",
    )
    log = tmp_path_factory.mktemp("access") / "log"
    with http_server(log, *arguments, MCP_AUTH_TOKEN=TOKEN, OTTERWIKI_API_KEY="another-secret") as server:
        yield server


def post(server: Server, **headers: str) -> httpx.Response:
    return httpx.post(server.url, json=CALL, headers={**HEADERS, "Authorization": f"Bearer {TOKEN}", **headers})


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python(), PROGRAM, "mcp", *arguments], env=environment(**settings), capture_output=True, text=True, check=False
    )


def test_a_request_with_the_token_is_answered(guarded: Server) -> None:
    assert post(guarded).status_code == 200
    with guarded.connected() as agent:
        assert "cannot be reached" in agent.error("index_status")


@pytest.mark.parametrize("sent", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer ü"])
def test_a_request_without_the_token_is_refused_everywhere(guarded: Server, sent: str) -> None:
    for path in ("/mcp", "/", "/elsewhere"):
        headers = [(b"Authorization", sent.encode())] if sent else []
        answer = httpx.post(guarded.url.removesuffix("/mcp") + path, json=CALL, headers=[*headers, (b"Accept", b"*/*")])
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_other_names_and_web_pages_are_refused(guarded: Server) -> None:
    assert post(guarded, Host="evil.example.org").status_code == 421
    assert post(guarded, Host="wiki.example.org").status_code == 200
    assert post(guarded, Host="wiki.example.org:8443").status_code == 200
    assert post(guarded, Origin="http://evil.example.org").status_code == 403
    assert post(guarded, Origin="https://chat.example.org").status_code == 200
    assert post(guarded, Origin="http://localhost:6274").status_code == 200


def test_secrets_are_in_no_log_and_in_no_representation(guarded: Server) -> None:
    post(guarded, Host="evil.example.org")
    assert not {TOKEN, "another-secret"} & set(guarded.log.read_text().split())
    assert TOKEN not in guarded.log.read_text()
    assert TOKEN not in repr(http_access("8000", TOKEN))
    assert "another-secret" not in repr(vars(RestBackend("http://127.0.0.1:9", "another-secret")))


def test_a_wiki_that_does_not_answer_is_given_up_and_too_much_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(url: str, path: str) -> None:
        await RestBackend(url, "schlüssel").page(path, {})

    monkeypatch.setattr("otterwiki_semantic.mcp.rest_backend._ANSWER_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for path, said in (("home", "did not answer in time"), ("x" * 70_000, "too long")):
            with pytest.raises(BackendError, match=said):
                anyio.run(ask, url, path)


def test_the_command_says_in_one_line_what_it_lacks(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        in_use = run("--http", address, "--url", "http://127.0.0.1:9")
    guess = run("--http", "0.0.0.0:0", "--url", "http://127.0.0.1:9")
    for answer, said in (
        (guess, "other machines can reach 0.0.0.0: set MCP_AUTH_TOKEN"),
        (in_use, f"cannot listen on {address}: "),
    ):
        assert answer.returncode == 1
        assert answer.stderr.startswith(f"Error: {said}")
        assert answer.stderr.count("\n") == 1
    assert "no wiki given" in run().stderr
    assert "cannot be combined" in run("--url", "http://h", "--repository", str(tmp_path)).stderr
    assert "not a git repository" in run("--repository", str(tmp_path)).stderr


def test_a_missing_package_is_named_with_the_command_that_installs_it() -> None:
    code = "import sys; sys.modules['mcp'] = None; from otterwiki_semantic.cli.main import main; main()"
    command = [sys.executable, "-c", code, "mcp", "--url", "http://127.0.0.1:9"]
    answer = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert answer.stderr.endswith(f"{pip_install('mcp')}\n")


@pytest.mark.parametrize("name", [signal.SIGINT, signal.SIGTERM])
def test_a_server_on_standard_input_ends_when_it_is_told_to(name: signal.Signals) -> None:
    command = [python(), PROGRAM, "mcp", "--url", "http://127.0.0.1:9"]
    with subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert process.stdout.readline(), "it serves"
        process.send_signal(name)
        assert process.wait(20) == -name
