"""ChromaDB: whether it is there, and whether its server answers, if it has one."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from otterwiki_semantic.config import Settings
from otterwiki_semantic.doctor.asking import ask
from otterwiki_semantic.doctor.case import Case
from otterwiki_semantic.doctor.finding import Finding, ok, problem

_REFUSALS = (401, 403)


def check_vector_store(case: Case) -> Iterator[Finding]:
    """See to the package, and to the server's heartbeat."""
    try:
        installed = version("chromadb")
    except PackageNotFoundError:
        installed = ""  # the packages tell
    if case.settings is None:
        return
    if case.settings.chroma_url is None:
        if installed:
            yield ok("ChromaDB", f"{installed}, in the index process")
        return
    yield _server(case.settings, case.settings.chroma_url)


def _server(settings: Settings, url: str) -> Finding:
    cure = "start the server, or correct SEMANTIC_CHROMA_URL; until then searches look at the vectors in the catalog"
    trust: Any = ssl.create_default_context(cafile=settings.chroma_ca) if settings.chroma_ca else True
    beat = ask(f"{url}/api/v2/heartbeat", settings.chroma_token, trust)
    if beat.trouble:
        return problem("ChromaDB", f"its server at {url}: {beat.trouble}", cure)
    if beat.status in _REFUSALS:
        return _refused(settings, url, beat.status)
    if not isinstance(beat.json, dict) or "nanosecond heartbeat" not in beat.json:
        return problem("ChromaDB", f"what answers at {url} (status {beat.status}) is not ChromaDB 1.x", cure)
    told = ask(f"{url}/api/v2/version", settings.chroma_token, trust).json
    return ok("ChromaDB", f"its server at {url} answers, version {told if isinstance(told, str) else 'unknown'}")


def _refused(settings: Settings, url: str, status: int) -> Finding:
    if settings.chroma_token is None:
        return problem("ChromaDB", f"its server at {url} wants a token (status {status})", "set SEMANTIC_CHROMA_TOKEN")
    return problem("ChromaDB", f"its server at {url} refuses our token (status {status})", "correct SEMANTIC_CHROMA_TOKEN")
