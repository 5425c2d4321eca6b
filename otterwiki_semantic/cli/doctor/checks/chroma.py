"""Check ChromaDB: the package, or the server if one is configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from otterwiki_semantic.cli.doctor.checks.installation import installed_version
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreUnreachableError
from otterwiki_semantic.core.hints import problem as problem_of
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.timeout import call_with_timeout

if TYPE_CHECKING:
    from otterwiki_semantic.storage import ChromaServer

_SECONDS = 20.0


def check_vector_store(context: DoctorContext) -> Iterator[Finding]:
    """Check the package, or the server's heartbeat and database. Creates nothing there."""
    if any(name.startswith("SEMANTIC_CHROMA_") for name in context.wrong):
        yield note("ChromaDB", "not checked: its settings are wrong")
    elif context.services.chroma_url is not None:
        yield _server(context.services, context.services.chroma_url)
    elif installed := installed_version("chromadb"):  # else it is reported with the packages
        yield ok("ChromaDB", f"{installed}, in the index daemon")


def _server(settings: Settings, url: str) -> Finding:
    from otterwiki_semantic.storage import ChromaServer

    tenant, database = settings.chroma_database.split("/")
    server = ChromaServer(url, settings.chroma_token, tenant, database, settings.chroma_ca)
    try:
        return call_with_timeout(_SECONDS, lambda: _ask(server))
    except TimeoutError:
        reason = f"ChromaDB at {url} did not complete its answer within {_SECONDS:.0f} s"
        found = problem_of(VectorStoreUnreachableError(reason))
    except VectorStoreError as error:
        found = problem_of(error)
    return problem("ChromaDB", found.message, f"{found.hint}; until then searches use the vectors in the catalog")


def _ask(server: ChromaServer) -> Finding:
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
