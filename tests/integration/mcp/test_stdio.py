"""Raw lines on the standard input of the real command: each is answered, whatever it is, and the next one also."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.fork_server import python
from tests.support.live_wiki import make_repository
from tests.support.mcp_clients import PROGRAM, environment

Talk = Callable[[str | bytes], dict[str, Any]]
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
LONE = '"\\ud800"'


def search(query: str, number: str = "7") -> str:
    """Return a request to search for a query and with an id, both in JSON."""
    params = f'{{"name":"semantic_search","arguments":{{"query":{query}}}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}'


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """Send a line to one server, and give its next answer."""
    place = tmp_path_factory.mktemp("stdio")
    repository = make_repository(place / "repository", {"otter.md": "# Otters\n\nAn otter swims in the brook.\n"})
    command = [python(), PROGRAM, "mcp", "--repository", str(repository), "--data-dir", str(place / "index")]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
    ) as process:

        def send(line: str | bytes) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write((line if isinstance(line, bytes) else line.encode()) + b"\n")
            assert select.select([process.stdout], [], [], 30)[0], f"no answer to {line[:200]!r}"
            return dict(json.loads(process.stdout.readline()))

        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        try:
            # Before the handshake also: what opens the connection may be what is wrong.
            assert send("not JSON")["error"]["code"] == PARSE_ERROR
            assert "result" in send(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}))
            yield send
            process.stdin.close()  # type: ignore[union-attr]
            assert process.wait(20) == 0
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        ("hello", PARSE_ERROR, None),
        ("", PARSE_ERROR, None),
        ('{"jsonrpc":"2.0","id":7,"method":"ping"', PARSE_ERROR, None),
        (b"\xff\xfe\xed\xa0\x80", PARSE_ERROR, None),
        ("[" * 100_000, PARSE_ERROR, None),
        ("1" * 5_000, PARSE_ERROR, None),
        (search(LONE), PARSE_ERROR, 7),
        (search('"\\udc00\\ud800"', '"seven"'), PARSE_ERROR, "seven"),
        (search('"otter"', LONE), PARSE_ERROR, None),
        (search(LONE, "[7]"), PARSE_ERROR, None),
        (search("[" * 10_000 + "]" * 10_000), PARSE_ERROR, None),
        ("[]", INVALID_REQUEST, None),
        ('"hello"', INVALID_REQUEST, None),
        ("{}", INVALID_REQUEST, None),
        ('{"id":7,"method":"ping"}', INVALID_REQUEST, 7),
        ('{"jsonrpc":"2.0","id":"seven","method":7}', INVALID_REQUEST, "seven"),
        ('{"jsonrpc":"2.0","id":{"a":7},"method":7}', INVALID_REQUEST, None),
        ('[{"jsonrpc":"2.0","id":7,"method":"ping"}]', INVALID_REQUEST, None),
    ],
)
def test_what_is_no_message_is_answered_and_the_next_request_also(
    talk: Talk, line: str | bytes, code: int, number: int | str | None
) -> None:
    answer = talk(line)
    assert answer["error"]["code"] == code
    assert answer["error"]["message"]
    assert answer["id"] == number
    assert answer["jsonrpc"] == "2.0"
    assert talk('{"jsonrpc":"2.0","id":8,"method":"ping"}') == {"jsonrpc": "2.0", "id": 8, "result": {}}


def test_bytes_that_are_no_text_are_replaced_in_a_request(talk: Talk) -> None:
    answer = talk(search('"otter \ufffd"').encode().replace("\ufffd".encode(), b"\xff\xed\xa0\x80"))
    assert answer["id"] == 7
    assert not answer["result"]["isError"]
