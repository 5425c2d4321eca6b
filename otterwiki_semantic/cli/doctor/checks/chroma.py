"""ChromaDB: whether it is there, and whether its server answers as the index asks it, if it has one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreUnreachableError
from otterwiki_semantic.core.remedies import problem as problem_of
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.core.timeout import call_with_timeout

if TYPE_CHECKING:
    from otterwiki_semantic.storage import ChromaServer

_SECONDS = 20.0


def check_vector_store(case: DoctorContext) -> Iterator[Finding]:
    """See to the package, and to the server's heartbeat and database. Nothing is made there."""
    try:
        installed = version("chromadb")
    except PackageNotFoundError:
        installed = ""  # the packages tell
    if any(name.startswith("SEMANTIC_CHROMA_") for name in case.wrong):
        yield note("ChromaDB", "it was not looked at: its settings are wrong")
    elif case.services.chroma_url is not None:
        yield _server(case.services, case.services.chroma_url)
    elif installed:
        yield ok("ChromaDB", f"{installed}, in the index process")


def _server(settings: Settings, url: str) -> Finding:
    from otterwiki_semantic.storage import ChromaServer

    server = ChromaServer(url, settings.chroma_token, settings.chroma_tenant, settings.chroma_database, settings.chroma_ca)
    try:
        found = call_with_timeout(_SECONDS, lambda: _asked(server))
    except TimeoutError:
        return _trouble(VectorStoreUnreachableError(f"ChromaDB at {url} did not end its answer within {_SECONDS:.0f} s"))
    except VectorStoreError as error:
        return _trouble(error)
    return found


def _trouble(error: VectorStoreError) -> Finding:
    told = problem_of(error)
    return problem("ChromaDB", told.message, f"{told.hint}; until then searches look at the vectors in the catalog")


def _asked(server: ChromaServer) -> Finding:
    """Ask for everything that the index needs. Errors: `VectorStoreError`."""
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
                return note("ChromaDB", f"{answers}, and has no {place} yet: the index makes it, if it may")
    except VectorStoreError:
        raise
    except Exception as error:
        raise server.failure("answer", error) from error
    return ok("ChromaDB", answers)
