"""The daemon as a process with a socket: who starts, shares and ends it, and that no client can disturb it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import DaemonUnavailableError, PageNotFoundError, RepositoryError, SemanticError
from otterwiki_semantic.core.records import IndexStatus, SearchOptions
from otterwiki_semantic.core.serialization import decode
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.protocol import (
    MAX_REQUEST_BYTES,
    code_version,
    encode_line,
    error_line,
    read_reply,
    result_line,
    socket_path,
)
from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import eventually, is_settled, make_repository
from tests.support.processes import is_running, owners_of

Connect = Callable[..., IndexClient]


@pytest.fixture
def connect(settings: Settings) -> Iterator[Connect]:
    """Return clients of one index; all let go of it at the end."""
    made: list[IndexClient] = []

    def connect(other: Settings = settings) -> IndexClient:
        made.append(IndexClient(other))
        return made[-1]

    yield connect
    for index in made:
        index.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """An index whose process runs all the time; tests only ask it."""
    place = tmp_path_factory.mktemp("running")
    told = Settings(make_repository(place / "repository", HANDBOOK), place / "index", sync_interval=3600, pages=())
    index = IndexClient(told)
    ready(index)
    yield told
    index.close()


@pytest.fixture
def index(running: Settings) -> Iterator[IndexClient]:
    """Another client of the index that runs all the time."""
    index = IndexClient(running)
    ready(index)
    yield index
    index.close()


def is_ready(index: IndexClient) -> IndexStatus | None:
    status = index.status()
    return status if is_settled(status) and status.index.commit == status.index.head else None


def ready(index: IndexClient) -> IndexStatus:
    status = eventually(lambda: is_ready(index))
    assert status is not None
    return status


def best(index: IndexClient, query: str) -> str:
    return index.search([query], SearchOptions(1, 1))[0].results[0].path


def test_everyone_asks_the_same_owner(connect: Connect) -> None:
    first, second = connect(), connect()
    first.start()
    second.start()
    assert ready(first).owner_pid == ready(second).owner_pid != os.getpid()
    assert best(second, "vegetables") == "garden"


def test_questions_share_their_connections(index: IndexClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadPoolExecutor(4) as clients:
        assert set(clients.map(lambda _: best(index, "vegetables"), range(40))) == {"garden"}
    monkeypatch.delattr(IndexClient, "_connect")
    assert best(index, "vegetables") == best(index, "vegetables") == "garden", "a connection that is free is used again"


def test_a_process_that_was_forked_uses_connections_of_its_own(index: IndexClient) -> None:
    ((_, parents),) = index._idle
    child = os.fork()
    if not child:  # pragma: no cover - the other process
        is_right = best(index, "vegetables") == "garden" and [mine is parents for _, mine in index._idle] == [False]
        os._exit(0 if is_right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert best(index, "vegetables") == "garden"
    assert [kept for _, kept in index._idle] == [parents]


def test_an_owner_that_ends_takes_no_more_orders(connect: Connect) -> None:
    """One that was told to end still closes its files while connections to it are open."""
    index = connect()
    pid = ready(index).owner_pid
    assert len(index._idle) == 1
    os.kill(pid, signal.SIGTERM)
    assert index.refresh(["garden"]).pages == ("garden",)
    eventually(lambda: not is_running(pid))
    assert ready(index).owner_pid != pid


def test_a_request_that_is_too_long_confuses_no_other(index: IndexClient) -> None:
    with pytest.raises(SemanticError, match="longer than"):
        index.refresh(["x" * MAX_REQUEST_BYTES])
    assert best(index, "vegetables") == "garden"
    assert index.status().pages == 5


def test_an_unknown_page_is_answered_with_those_like_it(index: IndexClient) -> None:
    with pytest.raises(PageNotFoundError) as raised:
        index.related("gardn", 3)
    assert raised.value.nearest == ("garden",)


def test_the_owner_ends_with_the_last_of_its_users(settings: Settings, connect: Connect) -> None:
    first, second = connect(), connect()
    pid = ready(first).owner_pid
    ready(second)
    first.close()
    assert is_running(pid)
    second.close()
    eventually(lambda: not is_running(pid))
    assert not socket_path(settings.data_dir).exists()


def test_a_socket_that_was_left_behind_is_no_obstacle(settings: Settings, connect: Connect) -> None:
    settings.data_dir.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(settings.data_dir / "owner.sock"))
    assert ready(connect()).pages == 5


@pytest.mark.usefixtures("index")
def test_only_its_user_can_reach_the_owner(running: Settings) -> None:
    assert socket_path(running.data_dir).stat().st_mode & 0o777 == 0o600
    assert running.data_dir.stat().st_mode & 0o077 == 0
    for path in running.data_dir.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_the_socket_of_another_user_is_not_asked(settings: Settings, connect: Connect) -> None:
    settings.data_dir.mkdir()
    script = (
        "import os, socket, sys\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])\n"
        "os.setuid(65534); s.listen(); print(flush=True)\n"
        "c, _ = s.accept(); print(c.recv(1), flush=True)\n"
    )
    command = [sys.executable, "-c", script, str(settings.data_dir / "owner.sock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as spoof:
        assert spoof.stdout is not None
        spoof.stdout.readline()
        with pytest.raises(DaemonUnavailableError, match="belongs to another user's process"):
            connect().search(["a secret"], SearchOptions())
        assert spoof.stdout.readline() == b"b''\n", "nothing was said to it"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_data_directory_of_another_user_is_named(settings: Settings, connect: Connect) -> None:
    settings.data_dir.mkdir()
    os.chown(settings.data_dir, 65534, 65534)
    index = connect()
    index.notify()
    with pytest.raises(SemanticError, match="belongs to another user; run this as the user that the wiki runs as"):
        index.status()
    os.chown(settings.data_dir, os.geteuid(), os.getegid())
    ready(index)


def test_a_data_directory_with_a_long_name_works(settings: Settings, connect: Connect) -> None:
    far = settings.data_dir / ("d" * 90) / ("e" * 90)
    long = Settings(settings.repository, far, sync_interval=3600, pages=())
    assert ready(connect(long)).pages == 5
    assert socket_path(far).parent.stat().st_mode & 0o777 == 0o700
    assert socket_path(far).parent != far


def say(settings: Settings, line: bytes) -> dict[str, object]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(socket_path(settings.data_dir)))
        connection.sendall(line)
        with connection.makefile("rb") as stream:
            reply: dict[str, object] = json.loads(stream.readline())
    return reply


_CALL = b'{"version": "VERSION", "repository": "REPOSITORY", "settings": null, "call": "%s", "arguments": %s}\n'


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"{}\n",
        b"[1, 2]\n",
        b'{"version": "VERSION", "repository": "REPOSITORY", "settings": null, "call": "no such call", "arguments": {}}\n',
        b'{"version": "VERSION", "repository": "REPOSITORY", "settings": null, "call": "search", "arguments": {"wrong": 1}}\n',
        b"x" * MAX_REQUEST_BYTES + b"x\n",
        b"\xff\x00" * 1_000_000 + b"\n",
        b"[" * (4 << 20) + b"\n",
        _CALL % (b"search", b'{"queries": %s}' % (b"[" * (1 << 20) + b"]" * (1 << 20))),
        _CALL % (b"search", b'{"queries": [null], "options": {}}'),
        _CALL % (b"search", b'{"queries": ["x"], "options": {"n": 1000000000}}'),
        _CALL % (b"search", b'{"queries": ["%s"], "options": {}}' % (b"x " * 3_000_000)),
        _CALL % (b"draft_links", b'{"request": {"text": "%s"}}' % (b"[a](b) " * 1_000_000)),
        _CALL % (b"suggest", b'{"request": {"q": "%s"}}' % (b"x " * 3_000_000)),
        _CALL % (b"ask", b'{"request": {"question": "%s"}}' % (b"x " * 3_000_000)),
        _CALL % (b"__class__", b"{}"),
    ],
    ids=[
        *("text", "empty", "list", "call", "arguments", "long", "binary", "deep", "deep arguments", "null", "many results"),
        *("long query", "long draft", "long beginning", "long question", "private"),
    ],
)
def test_garbage_is_answered_with_an_error(running: Settings, index: IndexClient, line: bytes) -> None:
    line = line.replace(b"VERSION", code_version().encode()).replace(b"REPOSITORY", str(running.repository).encode())
    assert "error" in say(running, line)
    assert best(index, "vegetables") == "garden"


def test_an_owner_of_another_version_gives_way(settings: Settings, connect: Connect) -> None:
    index = connect()
    pid = ready(index).owner_pid
    reply = say(settings, encode_line({"version": "0.0.0", "call": "status", "arguments": {}}))
    assert "it ends now" in str(reply["error"])
    eventually(lambda: not is_running(pid))
    assert ready(index).owner_pid != pid


def test_an_owner_of_other_settings_gives_way_to_the_wiki_but_serves_commands(settings: Settings, connect: Connect) -> None:
    pid = ready(connect()).owner_pid
    changed = replace(settings, sync_interval=7)
    command = IndexClient(changed, quiet=True)
    assert command.status().owner_pid == pid
    command.close()
    assert ready(connect(changed)).owner_pid != pid


def test_an_owner_of_the_new_settings_is_started_before_anybody_asks(settings: Settings, connect: Connect) -> None:
    pid = ready(connect()).owner_pid
    connect(replace(settings, sync_interval=7)).start()
    eventually(lambda: (owners := owners_of(settings.data_dir)) and pid not in owners)


@pytest.mark.parametrize("closed", [(), (0, 1), (0, 1, 2)])
def test_an_owner_lives_as_long_as_its_starter_whatever_streams_that_has(settings: Settings, closed: tuple[int, ...]) -> None:
    script = (
        "import os, sys, signal, pathlib\n"
        "for stream in sys.argv[3]: os.close(int(stream))\n"
        "from otterwiki_semantic.core.settings import Settings\n"
        "from otterwiki_semantic.daemon.client import IndexClient\n"
        "index = IndexClient(Settings(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sync_interval=3600, pages=()))\n"
        "index.start()\n"
        "signal.pause()\n"
    )
    arguments = [str(settings.repository), str(settings.data_dir), "".join(map(str, closed))]
    with subprocess.Popen([sys.executable, "-c", script, *arguments]) as starter:
        eventually(lambda: socket_path(settings.data_dir).exists())
        # A program that the owner starts has its files open until it is another one.
        (pid,) = eventually(lambda: found if len(found := owners_of(settings.data_dir)) == 1 else [])
        starter.kill()
    eventually(lambda: not is_running(pid))


def test_a_process_without_free_files_says_so_and_does_not_stand_in_the_way(settings: Settings, connect: Connect) -> None:
    script = (
        "import resource, sys, pathlib\n"
        "from otterwiki_semantic.core.settings import Settings\n"
        "from otterwiki_semantic.core.errors import DaemonUnavailableError\n"
        "from otterwiki_semantic.daemon.client import IndexClient\n"
        "index = IndexClient(Settings(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sync_interval=3600, pages=()))\n"
        "used, most = len(list(pathlib.Path('/proc/self/fd').iterdir())) - 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "for free in range(5):\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (used + free, most))\n"
        "    index.notify()\n"
        "print('said', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(settings.repository), str(settings.data_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"said\n"
        assert ready(connect()).pages == 5
        starter.kill()


def test_a_directory_that_is_no_repository_is_named(tmp_path: Path, connect: Connect) -> None:
    (tmp_path / "empty").mkdir()
    index = connect(Settings(tmp_path / "empty", tmp_path / "index", pages=()))
    eventually(lambda: index.status().status == "error")
    status = index.status()
    assert "not a git repository" in status.problems[0].message
    assert "REPOSITORY" in status.problems[0].hint
    make_repository(tmp_path / "empty", {"a.md": "# A\n\nNow there is a page.\n"})
    index.notify()
    assert ready(index).pages == 1


def test_an_index_that_could_not_be_opened_is_opened_later(settings: Settings, connect: Connect) -> None:
    settings.data_dir.mkdir()
    obstacle = settings.data_dir / "generations"
    obstacle.touch()
    index = connect()
    with pytest.raises(SemanticError, match="generations"):
        index.status()
    eventually(lambda: not owners_of(settings.data_dir))
    obstacle.unlink()
    assert ready(index).pages == 5


def test_a_request_that_comes_byte_by_byte_is_let_go(running: Settings, index: IndexClient) -> None:
    """Each byte is in time; the whole request never is. Idle clients that have greeted stay."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(str(socket_path(running.data_dir)))

        def is_let_go() -> bool:
            try:
                connection.sendall(b" ")
            except OSError:
                return True
            return False

        eventually(is_let_go)
    assert best(index, "vegetables") == "garden"


def test_searches_go_on_beside_500_silent_or_unfinished_requests(running: Settings, index: IndexClient) -> None:
    with ExitStack() as held:
        for number in range(500):
            connection = held.enter_context(socket.socket(socket.AF_UNIX))
            connection.connect(str(socket_path(running.data_dir)))
            if number % 2:
                connection.sendall(b'{"call": ')
            if number % 4 == 1:
                connection.shutdown(socket.SHUT_WR)
        assert [best(index, "vegetables") for _ in range(10)] == ["garden"] * 10
        connection.settimeout(60)
        assert connection.recv(1) == b"", "the connections are let go"
    assert best(index, "vegetables") == "garden"


def test_a_data_directory_that_goes_takes_the_owner_along(settings: Settings, connect: Connect) -> None:
    import shutil

    index = connect()
    pid = ready(index).owner_pid
    shutil.rmtree(settings.data_dir)
    eventually(lambda: not is_running(pid))
    assert ready(index).pages == 5


def test_records_survive_the_way_through_json(index: IndexClient) -> None:
    status = ready(index)
    assert decode(read_reply(result_line(status)).result, IndexStatus) == status


def test_the_errors_of_the_protocol_are_those_of_the_package() -> None:
    with pytest.raises(RepositoryError, match=r"^why$"):
        read_reply(error_line(RepositoryError("why")))
    with pytest.raises(PageNotFoundError) as missing:
        read_reply(error_line(PageNotFoundError("why", ["a", "b"])))
    assert missing.value.nearest == ("a", "b")
    with pytest.raises(SemanticError) as unknown:
        read_reply(b'{"error":{"type":"OSError","message":"why"}}\n')
    assert type(unknown.value) is SemanticError
