"""The proxies that the documentation configures, with its own lines."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.live_wiki import eventually

PROGRAMS = ("nginx", "caddy")
_DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_IN_BLOCK = {
    ("nginx", False): "location / {",
    ("nginx", True): "location /agents/ {",
    ("caddy", False): "mcp.example.org {",
    ("caddy", True): "handle_path /agents/*",
}
_NGINX = """\
daemon off;
user root;  # ignored unless root runs the tests: the usual user cannot write to their directory
worker_processes 1;
error_log stderr;
pid {place}/pid;
events {{}}
http {{
    access_log off;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    {lines}
}}
"""
_CADDY = """\
{{
    admin off
    auto_https off
}}
{lines}
"""


@contextmanager
def mcp_proxy(program: str, port: int, target: int, place: Path, *, in_folder: bool) -> Iterator[None]:
    """Serve the MCP server at port `target` through a proxy with the lines of docs/mcp.md."""
    lines = _documented("mcp.md", _IN_BLOCK[program, in_folder]).replace("127.0.0.1:8000", f"127.0.0.1:{target}")
    site = f"http://127.0.0.1:{port}"
    if program == "nginx":
        lines = f"server {{ listen 127.0.0.1:{port}; {lines} }}"
    else:
        lines = f"{site} {{\n{lines}\n}}" if in_folder else lines.replace("mcp.example.org", site)
    with _running(program, lines, port, place):
        yield


@contextmanager
def chroma_proxy(port: int, target: int, token: str, certificate: Path, key: Path, place: Path) -> Iterator[None]:
    """Serve the ChromaDB server at port `target` over TLS, and with a token, through nginx with the lines of docs/scale.md."""
    lines = _documented("scale.md", "server {")
    for documented, ours in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "chroma.example.org": "127.0.0.1",
        "/etc/ssl/chroma.pem": str(certificate),
        "/etc/ssl/chroma.key": str(key),
        "a-long-random-token": token,
        "127.0.0.1:8000": f"127.0.0.1:{target}",
    }.items():
        assert documented in lines
        lines = lines.replace(documented, ours)
    with _running("nginx", lines, port, place):
        yield


def _documented(name: str, beginning: str) -> str:
    """Return the block of a page of the documentation with this beginning."""
    blocks = (lines for _, _, lines in _BLOCK.findall((_DOCS / name).read_text()))
    (found,) = (lines for lines in blocks if lines.lstrip().startswith(beginning))
    return str(found)


@contextmanager
def _running(program: str, lines: str, port: int, place: Path) -> Iterator[None]:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    place.mkdir()
    config = place / "config"
    config.write_text((_NGINX if program == "nginx" else _CADDY).format(place=place, lines=lines))
    arguments = ["-c", str(config)] if program == "nginx" else ["run", "--adapter", "caddyfile", "--config", str(config)]
    with (place / "log").open("wb") as log:
        process = subprocess.Popen([found, *arguments], stdout=log, stderr=log, env={"HOME": str(place)})
    try:
        eventually(lambda: process.poll() is not None or _is_listening(port), why=f"{program} listens")
        assert process.poll() is None, (place / "log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(20)


def _is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
