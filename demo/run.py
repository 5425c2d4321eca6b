"""Serve the demo wiki: its own git repository of pages, indexed, with three questions answered. Ctrl-C ends it."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "demo" / "pages"
QUESTIONS = ("recover an erased directory", "sprinkler schedule for vegetables", "protect plumbing from freezing")
_START_SECONDS = 120


def prepare(place: Path) -> dict[str, str]:
    """Make the demo's repository and secrets unless they are there; gives the wiki's settings as environment variables."""
    repository = place / "repository"
    if not repository.exists():
        half_made = place / "repository.new"
        shutil.rmtree(half_made, ignore_errors=True)
        shutil.copytree(PAGES, half_made)
        author = ("-c", "user.name=Demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false")
        for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "The handbook of our home lab")):
            subprocess.run(["git", "-C", str(half_made), *author, *arguments], check=True)
        half_made.rename(repository)
    keys = place / "keys.json"
    if not keys.exists():
        keys.touch(mode=0o600)
        keys.write_text(json.dumps({name: secrets.token_urlsafe(24) for name in ("SECRET_KEY", "OTTERWIKI_API_KEY")}))
    return {
        **json.loads(keys.read_text()),
        "REPOSITORY": str(repository),
        "SQLALCHEMY_DATABASE_URI": f"sqlite:///{place / 'wiki.sqlite'}",
        "SITE_NAME": "Home lab handbook",
        "OTTERWIKI_SETTINGS": "",
        "SEMANTIC_ANSWERS": os.environ.get("SEMANTIC_ANSWERS", "extractive"),
    }


def ask(url: str, **parameters: str | int) -> Any:
    """Return the answer of an API route, as JSON."""
    with urllib.request.urlopen(f"{url}?{urllib.parse.urlencode(parameters)}", timeout=30) as response:
        return json.load(response)


def wait_until_indexed(api: str, server: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    """Return the index's status once it equals HEAD; exit with the end of the log if the wiki does not get there."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            status: dict[str, Any] = ask(f"{api}/semantic-search/status")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
            continue
        if status["pending_pages"] == 0 and status["indexed_commit"] == status["head_commit"]:
            return status
        done, total = status["progress"]["pages_done"], status["progress"]["pages_total"]
        if total and sys.stdout.isatty():
            print(f"\rindexing: {done} of {total} pages ", end="", flush=True)
        time.sleep(0.2)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
    sys.exit(f"\nthe wiki did not start; the end of {log}:\n{tail}")


def show(api: str, question: str) -> None:
    """Print a question and the passage that answers it."""
    best = ask(f"{api}/semantic-search", q=question, n=1)["results"][0]
    text = " ".join(best["snippet"].partition("] ")[2].split())
    trail = dict.fromkeys([best["title"], *best["section_path"]])
    print(f"  {question}\n    {' > '.join(trail)}  (similarity {best['similarity']:.2f}, {best['url']})")
    print(f"    {text[:220]}{'…' if len(text) > 220 else ''}\n")


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--place", type=Path, default=ROOT / ".demo", help="where the demo's repository and index are kept")
    options = parser.parse_args()
    if not 1 <= options.port <= 65535:
        parser.error(f"PORT is {options.port}; allowed are 1 to 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", options.port))
        except OSError as error:
            sys.exit(f"port {options.port} cannot be used ({error.strerror}); choose another: make run PORT=8081")

    place = options.place.absolute()
    settings = prepare(place)
    log = place / "wiki.log"
    site = f"http://127.0.0.1:{options.port}"
    api = f"{site}/api/v1"
    command = [sys.executable, "-m", "flask", "--app", "otterwiki.server", "run", "--port", str(options.port)]
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit(0))
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env={**os.environ, **settings}, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        ) as server,
    ):
        try:
            print("Starting the wiki and indexing its pages…", flush=True)
            status = wait_until_indexed(api, server, log)
            embedded = status["embedded_texts"]
            print(f"\r{status['pages']} pages, {status['chunks']} passages; {embedded} texts embedded at this start.\n")
            for question in QUESTIONS:
                show(api, question)
            print(f"The wiki:      {site}")
            print(f"Search it:     {site}/-/semantic-search")
            print(f'Ask it:        {site}/-/semantic-search?q=how+long+are+backups+kept, then "Show an answer"')
            print(f"See it all:    {site}/-/semantic-search/map")
            print(f"Call it:       curl -G {api}/semantic-search --data-urlencode 'q=…'")
            print(f"Rebuild it:    curl -X POST -H 'Authorization: Bearer {settings['OTTERWIKI_API_KEY']}' {api}/reindex")
            print(f"Its pages:     {settings['REPOSITORY']} (a git repository; a commit is found within a minute)")
            print("Ctrl-C ends it.", flush=True)
            server.wait()
            sys.exit(f"the wiki ended; see {log}")
        except KeyboardInterrupt:
            print("\nended")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
