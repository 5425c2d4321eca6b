"""Check the services: the models, ChromaDB, and the running wiki."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.cli.doctor.environment import installed_version
from otterwiki_semantic.core.addresses import is_http_url
from otterwiki_semantic.core.errors import (
    ChatModelError,
    ModelError,
    SemanticError,
    VectorStoreError,
    VectorStoreUnreachableError,
)
from otterwiki_semantic.core.hints import problem as problem_of
from otterwiki_semantic.core.http import JsonClient, JsonResponse, ProviderError
from otterwiki_semantic.core.installation import pip_install
from otterwiki_semantic.core.settings import BUNDLED, Settings
from otterwiki_semantic.core.timeout import call_with_timeout

if TYPE_CHECKING:
    from otterwiki_semantic.storage import ChromaServer

_QUESTION = "Does the model answer?"
_KNOWN = "model.json"
_SECONDS = 20.0
_WITH_DEVICE = ("onnx:", "sentence-transformers:")
_KEY = "OTTERWIKI_API_KEY"
_CONNECT_SECONDS, _ANSWER_SECONDS = 3.0, 15.0
_REFUSALS = {
    "wrong_key": (f"the wiki was started with another {_KEY}", f"set the key of the wiki, or restart it with this {_KEY}"),
    "no_key_configured": (f"the wiki has no {_KEY}", f"also set {_KEY} where the wiki is started, and restart it"),
    "unauthorized": ("the wiki is not public, and no key was sent", f"set {_KEY} to the one that the wiki was started with"),
}


def check_model(context: DoctorContext) -> Iterator[Finding]:
    """Embed a sentence with the model, name the reranker, and check the model that writes answers."""
    settings = context.services
    if any(name.startswith("SEMANTIC_MODEL") for name in context.wrong):  # with a wrong URL the key might go to another server
        yield note("model", "not checked: its settings are wrong")
    else:
        yield _model(settings)
        if settings.device == "cuda" and not settings.model.startswith(_WITH_DEVICE):
            detail = f"SEMANTIC_DEVICE is 'cuda', but {settings.model} does not run on a GPU of this machine"
            yield note("device", detail, f"set SEMANTIC_MODEL to a model of {' or '.join(_WITH_DEVICE)}, or leave this out")
    if settings.reranker is not None:
        yield note("reranker", f"{settings.reranker} reranks the best candidates; not checked")
    if settings.answers is not None and any(name.startswith("SEMANTIC_ANSWERS") for name in context.wrong):
        yield note("answers", "not checked: its settings are wrong")
    elif settings.answers is not None:
        yield _answers(settings)


def _model(settings: Settings) -> Finding:
    from otterwiki_semantic.embedding import open_embedder

    try:
        asks_server = open_embedder(settings).asks_server
        return ok("model", call_with_timeout(_SECONDS, lambda: _embed(settings)))
    except SemanticError as error:
        hint = "correct this, or the SEMANTIC_MODEL settings; until then searches use keywords only"
        if settings.model == BUNDLED and isinstance(error, ModelError):
            hint = f"install the package again: {pip_install(reinstall=True)}"
        return problem("model", f"{settings.model}: {error}", hint)
    except TimeoutError:
        if not asks_server:
            detail = f"{settings.model} was not loaded after {_SECONDS:.0f} s"
            return note("model", detail, "if it is being downloaded or the machine is busy, wait and run this again")
        hint = "make sure that its server runs and is not overloaded; until it answers, searches use keywords only"
        return problem("model", f"{settings.model}: its server returned no vector within {_SECONDS:.0f} s", hint)


def _answers(settings: Settings) -> Finding:
    from otterwiki_semantic.search.answering import open_chat_model

    model = open_chat_model(settings)
    if model is None:
        return ok("answers", "made of the pages' own sentences")
    try:
        return ok("answers", call_with_timeout(_SECONDS, lambda: model.check(_SECONDS)))
    except ChatModelError as error:
        return problem("answers", str(error), "correct this; until then questions are answered with their sources alone")
    except TimeoutError:
        detail = f"{settings.answers}: {model.place} did not answer within {_SECONDS:.0f} s"
        return problem("answers", detail, "make sure that its server runs and is not overloaded")
    finally:
        model.close()


def _embed(settings: Settings) -> str:
    """Embed a sentence, and describe the model; a server is asked about it only if the index does not know it yet."""
    from otterwiki_semantic.embedding import open_embedder

    with tempfile.TemporaryDirectory() as scratch:
        with suppress(OSError):
            shutil.copyfile(settings.data_dir / _KNOWN, Path(scratch) / _KNOWN)
        embedder = open_embedder(replace(settings, data_dir=Path(scratch)))
        is_known = embedder.dimension > 0
        if not is_known:
            embedder.prepare()
        start = time.perf_counter()
        length = embedder.embed_queries([_QUESTION]).shape[1]
        seconds = time.perf_counter() - start
    detail = f"{embedder.name}: vectors of {length} numbers, a window of {embedder.window} tokens"
    detail += f"; embedded a sentence in {seconds * 1000:.0f} ms" + (f" on {embedder.device}" if embedder.device else "")
    is_new = embedder.asks_server and not is_known
    return detail + ("; its server was also asked about the model, as before a first build" if is_new else "")


def check_vector_store(context: DoctorContext) -> Iterator[Finding]:
    """Check the package, or the server's heartbeat and database. Creates nothing there."""
    if any(name.startswith("SEMANTIC_CHROMA_") for name in context.wrong):
        yield note("ChromaDB", "not checked: its settings are wrong")
    elif context.services.chroma_url is not None:
        yield _chroma_server(context.services, context.services.chroma_url)
    elif installed := installed_version("chromadb"):  # otherwise reported with the packages
        yield ok("ChromaDB", f"{installed}, in the index daemon")


def _chroma_server(settings: Settings, url: str) -> Finding:
    from otterwiki_semantic.storage import ChromaServer

    tenant, database = settings.chroma_database.split("/")
    server = ChromaServer(url, settings.chroma_token, tenant, database, settings.chroma_ca)
    try:
        return call_with_timeout(_SECONDS, lambda: _ask_chroma(server))
    except TimeoutError:
        reason = f"ChromaDB at {url} did not complete its answer within {_SECONDS:.0f} s"
        found = problem_of(VectorStoreUnreachableError(reason))
    except VectorStoreError as error:
        found = problem_of(error)
    return problem("ChromaDB", found.message, f"{found.hint}; until then searches use the vectors in the catalog")


def _ask_chroma(server: ChromaServer) -> Finding:
    from chromadb.errors import NotFoundError

    try:
        api = server.connect()
        with api._session:
            api.heartbeat()
            answers = f"its server at {server.url} answers, version {api.get_version()}"
            try:
                api.get_database(server.database, tenant=server.tenant)
            except NotFoundError:
                place = f"database {server.database} of tenant {server.tenant}"
                return note("ChromaDB", f"{answers}, and has no {place} yet: the index creates it, if it may")
    except VectorStoreError:
        raise
    except Exception as error:
        raise server.failure("answer", error) from error
    return ok("ChromaDB", answers)


def check_wiki(context: DoctorContext) -> Iterator[Finding]:
    """Ask the wiki at `context.url` for the status of its index."""
    if context.url is None:
        yield note("wiki", "not checked", "add --url http://127.0.0.1:8080, or wherever it is served")
        return
    if not is_http_url(context.url):  # not shown: may contain a password
        yield problem("wiki", "the URL in --url is invalid", "give http://host:port, without a user name")
        return
    key = context.given(_KEY)
    if not key.isprintable():  # the HTTP client's error would show the key
        yield problem("wiki", f"{_KEY} has characters that cannot be sent", "correct it, here and where the wiki is started")
        return
    url = context.url.rstrip("/")
    client = JsonClient(url, key or None, connect_seconds=_CONNECT_SECONDS)
    try:
        response = client.send("/api/v1/semantic-search/status", _ANSWER_SECONDS)
    except ProviderError as error:
        reason = error.server_message or error.reason
        yield problem("wiki", f"{url} cannot be reached: {reason}", "make sure that it runs, and that the address is right")
    else:
        yield from _wiki_answered(url, response)


def _wiki_answered(url: str, response: JsonResponse) -> Iterator[Finding]:
    body = response.body if isinstance(response.body, dict) else {}
    location = response.headers.get("location")
    if response.status == 200 and "indexed_commit" in body:
        theirs = body.get("version")
        if theirs == __version__:
            answers = f"{url} answers: version {theirs}, {body.get('pages')} pages, index daemon {body.get('owner_pid')}"
            yield ok("wiki", answers)
        else:
            detail = f"{url} runs version {theirs}, and this is {__version__}"
            yield problem("wiki", detail, "restart the wiki, or run its own command")
    elif "error" in body:
        yield from _refused(url, response.status, body)
    elif location:
        yield problem("wiki", f"{url} leads to {location}", "give the address that it leads to")
    elif response.status == 404:
        hint = "see the wiki's log for: Loaded plugin: otterwiki-semantic; install it into the wiki's own environment, restart"
        yield problem("wiki", f"{url} answers, without the plugin (404)", hint)
    else:
        detail = f"{url} answers with status {response.status}, not as a wiki would"
        yield problem("wiki", detail, "make sure that the address is right")


def _refused(url: str, status: int, body: dict[str, Any]) -> Iterator[Finding]:
    error = body["error"] if isinstance(body["error"], dict) else {}
    code, message = str(error.get("code")), str(error.get("message"))
    detail, hint = _REFUSALS.get(code, (message, "correct this; the wiki's log may have details"))
    yield problem("wiki", f"{url}: {detail} (status {status})", hint)
    for each in body.get("problems") or ():
        if isinstance(each, dict):
            yield problem("wiki", str(each.get("message")), str(each.get("hint")))
