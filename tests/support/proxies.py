"""The proxies that docs/mcp.md configures, with its own lines."""

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
_DOCS = Path(__file__).parents[2] / "docs" / "mcp.md"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_IN_BLOCK = {
    ("nginx", False): "location / {",
    ("nginx", True): "location /agents/ {",
    ("caddy", False): "mcp.example.org {",
    ("caddy", True): "handle_path /agents/*",
}
_NGINX = """\
daemon off;
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
    server {{
        listen 127.0.0.1:{port};
        {lines}
    }}
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
def documented_proxy(program: str, port: int, target: int, place: Path, *, in_folder: bool) -> Iterator[None]:
    """Serve the MCP server at port `target` through a proxy with the lines of docs/mcp.md."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{program} is not installed")
    place.mkdir()
    lines = _documented(program, in_folder=in_folder).replace("127.0.0.1:8000", f"127.0.0.1:{target}")
    site = f"http://127.0.0.1:{port}"
    if program == "caddy":
        lines = f"{site} {{\n{lines}\n}}" if in_folder else lines.replace("mcp.example.org", site)
    config = place / "config"
    config.write_text((_NGINX if program == "nginx" else _CADDY).format(place=place, port=port, lines=lines))
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


def _documented(program: str, *, in_folder: bool) -> str:
    """Return the lines of the documentation."""
    beginning = _IN_BLOCK[program, in_folder]
    (found,) = (lines for _, _, lines in _BLOCK.findall(_DOCS.read_text()) if lines.lstrip().startswith(beginning))
    return str(found)


def _is_listening(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
