"""The client asks real servers, some of which misbehave."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Event, Thread

import pytest

from otterwiki_semantic.core.http import InvalidUrlError, JsonClient, ProviderError, ProviderTimeoutError, retry_after
from tests.support.model_servers import ModelServer, Reply, serving


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer(told={"/info": {"name": "m"}})) as server:
        yield server


def test_a_body_is_posted_and_without_one_it_is_a_get(server: ModelServer) -> None:
    client = JsonClient(server.url, "a-key")
    assert client.send("/info", 5).answer() == {"name": "m"}
    assert "data" in client.send("/embeddings", 5, {"input": ["Zoë, half a \ud800 character"]}).answer()
    client.send("/info", 5, params={"full": True, "path": "a b"})
    (got, got_headers, nothing), (posted, posted_headers, body), (address, _, _) = server.asked
    assert (got, nothing, address) == ("/info", None, "/info?full=true&path=a+b")
    assert (posted, body) == ("/embeddings", {"input": ["Zoë, half a ? character"]})
    assert got_headers["Authorization"] == posted_headers["Authorization"] == "Bearer a-key"


def test_connections_are_reused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer_twice() -> None:
            connection, _ = listener.accept()
            with connection:
                for _ in range(2):
                    assert connection.recv(10_000)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        thread = Thread(target=answer_twice)
        thread.start()
        client = JsonClient(f"http://127.0.0.1:{listener.getsockname()[1]}")
        assert [client.send("/", 5).answer() for _ in range(2)] == [{}, {}]
        client.close()
        thread.join()


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(400, '{"error": {"message": "too long"}}'), "too long"),
        (Reply(422, '{"detail": "unknown field"}'), "unknown field"),
        (Reply(404, '{"error": "not found"}'), "not found"),
        (Reply(500, '{"error": {"code": 7}}'), ""),
        (Reply(502, "<html>bad gateway"), "<html>bad gateway"),
    ],
)
def test_an_error_has_its_status_and_the_servers_message(server: ModelServer, reply: Reply, message: str) -> None:
    server.replies.append(reply)
    response = JsonClient(server.url).send("/embeddings", 5, {"input": ["x"]})
    assert response.status == reply.status
    with pytest.raises(ProviderError) as caught:
        response.answer()
    assert (caught.value.status, caught.value.server_message) == (reply.status, message)
    assert caught.value.is_temporary is (reply.status >= 500)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(307, "", {"Location": "http://127.0.0.1:9/"}), "redirects elsewhere"),
        *((Reply(200, body), "not JSON") for body in ("<html>", "", "[" * 100_000)),
        (Reply(200, " " * 200_000), "more than 150,000 bytes"),
        (Reply(200, "{}", {"Content-Encoding": "gzip"}), "compresses"),
    ],
)
def test_what_is_no_answer_is_refused(server: ModelServer, reply: Reply, message: str) -> None:
    server.replies.append(reply)
    with pytest.raises(ProviderError, match=message) as caught:
        JsonClient(server.url, max_bytes=150_000).send("/embeddings", 5, {"input": ["x"]}).answer()
    assert caught.value.is_temporary is (caught.value.status is None)


def test_a_server_that_is_not_there_may_come() -> None:
    with serving(ModelServer()) as gone:
        pass
    with pytest.raises(ProviderError) as caught:
        JsonClient(gone.url).send("/", 5)
    assert (caught.value.status, caught.value.is_temporary) == (None, True)
    assert "refused" in caught.value.server_message


@pytest.mark.parametrize("url", ["http://a..b", "http://x\x7fy", "http://127.0.0.1/" + "x" * 70_000])
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(InvalidUrlError, match="the address is invalid") as caught:
        JsonClient(url).send("/", 5)
    assert not caught.value.is_temporary


@pytest.mark.parametrize("sent", [b"Content-Length: 100000000\r\n\r\n", b"X-A: "], ids=["body", "headers"])
def test_an_answer_that_drips_is_given_up(sent: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        given_up = Event()  # never set: only a closed connection ends the server

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + sent)
                while not given_up.wait(0.02):
                    connection.sendall(b"a")

        thread = Thread(target=drip)
        thread.start()
        with pytest.raises(ProviderTimeoutError, match="no answer within"):
            JsonClient(f"http://127.0.0.1:{server.getsockname()[1]}").send("/", 0.3)
        thread.join(10)
        assert not thread.is_alive(), "the connection is closed"


def test_retry_after_is_seconds_or_a_date() -> None:
    assert retry_after("3") == 3
    for value in (None, "soon", "-1", "nan", "Fri, 31 Dec 9999 23:59:59 -1200"):
        assert retry_after(value) is None
    later = retry_after(format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True))
    assert later is not None
    assert 15 < later <= 20
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
