"""A real An Otter Wiki in a process of its own, driven through its own forms and routes as a browser would."""

from __future__ import annotations

import http.cookiejar
import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Self, TypeVar

from demo.run import PAGES
from otterwiki_semantic.core.records import ChromaState, IndexStatus
from tests.support.fork_server import python
from tests.support.light_parts import SESSION
from tests.support.ports import free_port

T = TypeVar("T")

KEY = "test-key"
_TOKEN = re.compile(r'name="csrf_token"[^>]*value="([^"]+)"')
_START_SECONDS = 60.0
_MOST_COPIED = 50
_WITHOUT_PLUGIN = """
import sys, otterwiki.plugins
otterwiki.plugins.plugin_manager.unregister(name="semantic")
sys.argv[0] = "flask"
from flask.cli import main
main()
"""


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()


def git(repository: Path, *arguments: str) -> str:
    """Run git in a repository, as some author. It never looks for what it could tidy up."""
    settings = ("-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "maintenance.auto=false")
    command = ["git", "-C", str(repository), *settings, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_repository(place: Path, pages: Mapping[str, str | bytes]) -> Path:
    """Make a git repository that holds these files, by path. In a session of tests, copy the first one with just these."""
    if SESSION not in os.environ or len(pages) > _MOST_COPIED:
        return _make(place, pages)
    return Path(shutil.copytree(_made(tuple(pages.items()), os.environ.get("GIT_COMMITTER_DATE")), place, dirs_exist_ok=True))


@cache
def _made(pages: tuple[tuple[str, str | bytes], ...], _date: str | None) -> Path:
    return _make(Path(mkdtemp(dir=os.environ[SESSION])), dict(pages))


def _make(place: Path, pages: Mapping[str, str | bytes]) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "main")
    git(place, "config", "receive.denyCurrentBranch", "updateInstead")
    for sample in (place / ".git" / "hooks").glob("*.sample"):
        sample.unlink()
    if pages:
        commit(place, pages)
    return place


def demo_pages() -> dict[str, str | bytes]:
    """Return the files of the demo wiki, by path."""
    return {str(path.relative_to(PAGES)): path.read_bytes() for path in PAGES.rglob("*.md")}


def long_page(number: int) -> str:
    """Return a page like no other's: a dozen chunks for a model with a window of 64 tokens."""
    sentences = (f"The otter of day {number}.{day} swims in the brook behind the mill and eats.\n" for day in range(30))
    return "\n".join((f"# Otter {number}\n", *sentences))


def write_files(place: Path, files: Mapping[str, str | bytes | None]) -> Path:
    """Write files (None: remove them) below a directory, and return it."""
    for name, content in files.items():
        path = place / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def commit(repository: Path, files: Mapping[str, str | bytes | None], message: str = "change") -> str:
    """Write files (None: remove them), commit everything, and give the commit."""
    write_files(repository, files)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "--allow-empty", "-m", message)
    return head_of(repository)


def eventually(ask: Callable[[], T | None], timeout: float = 90.0, why: str = "") -> T:
    """Return the first true answer; fail when there is none in time.

    Pauses grow with the time waited: asking takes processor time from what is waited for.
    """
    start = time.monotonic()
    while True:
        answer = ask()
        if answer:
            return answer
        waited = time.monotonic() - start
        if waited > timeout:
            raise AssertionError(f"not within {timeout} s: {why or ask}; last answer: {answer!r}")
        time.sleep(min(max(0.01, 0.1 * waited), 0.25))


class LiveWiki:
    """A served wiki; use it in a `with` statement. `command` starts another server than Flask's own, on the port `{port}`."""

    def __init__(
        self, repository: Path, data_dir: Path, *, plugin: bool = True, command: Sequence[str] | None = None, **settings: str
    ) -> None:
        self.repository = repository
        self.data_dir = data_dir
        start = ["-m", "flask"] if plugin else ["-c", _WITHOUT_PLUGIN]
        self._command = command or [python(), *start, "--app", "otterwiki.server", "run", "--port", "{port}"]
        self._log = data_dir.parent / f"{data_dir.name}.wiki.log"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._settings = {
            "REPOSITORY": str(repository),
            "SECRET_KEY": "0123456789abcdef0123456789",
            "SQLALCHEMY_DATABASE_URI": f"sqlite:///{data_dir.parent / (data_dir.name + '.sqlite')}",
            "OTTERWIKI_SETTINGS": str(Path(__file__).with_name("wiki_settings.py")),
            "OTTERWIKI_API_KEY": KEY,
            "SEMANTIC_DATA_DIR": str(data_dir),
            "SEMANTIC_PAGES": "palette,related,health,editor,metrics",  # a map takes seconds of a processor
            **settings,
        }
        self.cookies = http.cookiejar.CookieJar()
        self._browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._serve()
        eventually(self._answers, _START_SECONDS, "the wiki does not answer")
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _serve(self) -> None:
        command = [part.replace("{port}", str(self.port)) for part in self._command]
        environment = {**os.environ, **self._settings}
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def stop(self, name: signal.Signals = signal.SIGTERM) -> None:
        """End the wiki's process; one that does not end in time is killed with its workers, which is an error."""
        if self.process is not None:
            process, self.process = self.process, None
            process.send_signal(name)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise

    def restart(self) -> None:
        """End the wiki and start it again."""
        self.stop()
        self.__enter__()

    @property
    def log(self) -> str:
        """What the wiki printed."""
        return self._log.read_text(errors="replace")

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log
        try:
            return self.get("/-/healthz").status == 200
        except OSError:
            return False

    # Requests

    def request(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
        """Send a request with the session's cookies; an error status is an answer like any other."""
        request = urllib.request.Request(self.url + path, data=body, headers=headers or {}, method=method)
        try:
            with self._browser.open(request, timeout=60) as response:
                return Reply(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, dict(error.headers), error.read())

    def get(self, path: str, **parameters: str | int) -> Reply:
        """GET a page without the key."""
        return self.request("GET", path + (f"?{urllib.parse.urlencode(parameters)}" if parameters else ""))

    def post_form(self, path: str, form_page: str, **values: str) -> Reply:
        """Fill in the form of a page and send it; fails unless the wiki takes it."""
        token = _TOKEN.search(self.get(form_page).text)
        assert token, f"no form at {form_page}"
        body = urllib.parse.urlencode({"csrf_token": token[1], **values}).encode()
        reply = self.request("POST", path, body)
        assert reply.status == 200, (reply.status, reply.text[:500])
        return reply

    def log_in(self, name: str = "admin") -> None:
        """Open an account through the wiki's form and log in to it; the first account is the administrator's."""
        email, password = f"{name}@example.org", "secret-secret"
        self.post_form("/-/register", "/-/register", email=email, name=name.title(), password1=password, password2=password)
        self.post_form("/-/login", "/-/login", email=email, password=password)

    def csrf_token(self, form_page: str) -> str:
        """Return the token of a page's form."""
        token = _TOKEN.search(self.get(form_page).text)
        assert token, f"no form at {form_page}"
        return token[1]

    def save(self, page: str, content: str) -> None:
        """Save a page through the editor's form."""
        quoted = urllib.parse.quote(page)
        self.post_form(f"/{quoted}/save", f"/{quoted}/edit", content=content, commit="edit")

    def api(self, method: str, path: str, key: str | None = KEY, json_body: Any = None, **parameters: str | int) -> Reply:
        """Call the API as a program, with the key."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        body = None if json_body is None else json.dumps(json_body).encode()
        return self.request(method, f"/api/v1{path}{query}", body, headers)

    def search(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        """Return the results for a query."""
        reply = self.api("GET", "/semantic-search", q=query, **parameters)
        assert reply.status == 200, reply.text
        results: list[dict[str, Any]] = reply.json["results"]
        return results

    def status(self) -> dict[str, Any]:
        """Return the index's status."""
        reply = self.api("GET", "/semantic-search/status")
        assert reply.status == 200, reply.text
        status: dict[str, Any] = reply.json
        return status

    def wait_until_indexed(self, timeout: float = 90.0) -> dict[str, Any]:
        """Return the status once the index equals HEAD."""

        def ready() -> dict[str, Any] | None:
            status = self.status()
            is_equal = status["indexed_commit"] == status["head_commit"] == (head_of(self.repository) or None)
            return status if is_equal and status["pending_pages"] == 0 else None

        return eventually(ready, timeout, "the index equals HEAD")


def is_settled(status: IndexStatus) -> bool:
    """Whether the index equals HEAD, and ChromaDB holds all of it."""
    is_at_head = status.status in {"ready", "ready_by_words"}  # the latter if the model failed on a page
    return is_at_head and status.chroma is not None and status.chroma.state is ChromaState.READY


def is_whole(status: IndexStatus) -> bool:
    """Whether the index equals HEAD, and the collection in ChromaDB has exactly what it has."""
    return is_settled(status) and status.chroma is not None and status.chroma.complete_commit == status.indexed_commit


def head_of(repository: Path) -> str:
    """Return the commit at HEAD; empty before the first one."""
    with suppress(OSError):  # else git knows
        head = (repository / ".git" / "HEAD").read_text().removeprefix("ref: ").strip()
        return (repository / ".git" / head).read_text().strip()
    answer = subprocess.run(
        ["git", "-C", str(repository), "rev-parse", "-q", "--verify", "HEAD"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip()
