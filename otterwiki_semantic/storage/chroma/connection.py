"""The connection to a ChromaDB server: its address, its client and the meaning of its failures."""

from __future__ import annotations

import logging
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from otterwiki_semantic.core.addresses import is_on_this_machine
from otterwiki_semantic.core.errors import VectorStoreError, VectorStoreRefusedError, VectorStoreUnreachableError, causes
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import DEFAULT_DATABASE, DEFAULT_TENANT

if TYPE_CHECKING:
    import httpx
    from chromadb.api.fastapi import FastAPI

CONNECT_SECONDS = 1.0
_TOO_MANY_REQUESTS = 429

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChromaServer:
    """A database on a ChromaDB server, and the credentials for it."""

    url: str
    token: str | None = field(default=None, repr=False)
    tenant: str = DEFAULT_TENANT
    database: str = DEFAULT_DATABASE
    ca: Path | None = None
    """A file with the trusted certificates; None uses the system's."""
    answer_seconds: float = 5.0

    @property
    def place(self) -> str:
        """A name of the database that is unique among all databases of all servers."""
        return f"{self.url}/{self.tenant}/{self.database}"

    def connect(self) -> FastAPI:
        """Return a client without contacting the server. `chromadb.HttpClient` would send a request and wait indefinitely."""
        import httpx
        from chromadb.api.fastapi import FastAPI
        from chromadb.config import Settings, System

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs every request
        settings = Settings(
            anonymized_telemetry=False,
            chroma_api_impl="chromadb.api.fastapi.FastAPI",  # chromadb-client accepts no other
            chroma_otel_collection_endpoint="",
            chroma_server_host=self.url,
            chroma_server_http_port=0,  # required, but ignored with a full URL
        )
        api = FastAPI(System(settings))
        api._session.close()
        credentials = {"Authorization": f"Bearer {self.token}", "X-Chroma-Token": self.token} if self.token else {}
        api._session = httpx.Client(
            headers={**api._session.headers, **credentials},
            limits=api.http_limits,
            timeout=httpx.Timeout(self.answer_seconds, connect=CONNECT_SECONDS),
            trust_env=not is_on_this_machine(self.url),
            verify=self._ssl_context() if self.url.startswith("https:") else True,
            event_hooks={"response": [self._check_response]},
        )
        return api

    def _ssl_context(self) -> ssl.SSLContext:
        import certifi

        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (ssl.SSLError, OSError) as error:
            raise VectorStoreRefusedError(
                f"SEMANTIC_CHROMA_CA, {self.ca}, has no certificate that can be read: {error}; name a file in PEM format"
            ) from error
        if self.ca is None and not context.cert_store_stats()["x509_ca"]:  # small containers have none
            context.load_verify_locations(certifi.where())
        return context

    def _check_response(self, response: httpx.Response) -> None:
        """Raise for denied access, and for responses that ChromaDB never sends, such as a proxy's error page."""
        import httpx

        if response.status_code == httpx.codes.UNAUTHORIZED:
            wrong = "does not take the token: correct" if self.token else "wants a token: set"
            raise VectorStoreRefusedError(f"ChromaDB at {self.url} {wrong} SEMANTIC_CHROMA_TOKEN")
        if response.status_code == httpx.codes.FORBIDDEN:
            raise VectorStoreRefusedError(
                f"ChromaDB at {self.url} forbids the use of database {self.database} of tenant {self.tenant}: "
                "correct SEMANTIC_CHROMA_TOKEN or SEMANTIC_CHROMA_DATABASE"
            )
        kind = response.headers.get("content-type", "nothing")
        if not kind.startswith("application/json"):
            raise httpx.RemoteProtocolError(f"it answers {response.status_code} and {kind}, as ChromaDB never does")

    def make_database(self, api: FastAPI) -> bool:
        """Create the database and its tenant; return False if they exist. Errors: `VectorStoreRefusedError`, transport's."""
        import httpx
        from chromadb.errors import NotFoundError

        with suppress(NotFoundError):
            api.get_database(self.database, tenant=self.tenant)
            return False
        try:
            try:
                api.get_tenant(self.tenant)
            except NotFoundError:
                api.create_tenant(self.tenant)
            api.create_database(self.database, tenant=self.tenant)
        except Exception as error:  # ChromaDB's client also raises bare exceptions
            if isinstance(error, VectorStoreRefusedError | httpx.TransportError) or _is_rate_limit(error):
                raise
            raise VectorStoreRefusedError(
                f"ChromaDB at {self.url} has no database {self.database} of tenant {self.tenant}, and it could not be made: "
                f"{self._redact(error)}; make it there, or correct SEMANTIC_CHROMA_DATABASE"
            ) from error
        log.info("made database %s of tenant %s at %s", self.database, self.tenant, self.url)
        return True

    def failure(self, action: str, error: BaseException) -> VectorStoreError:
        """Convert an error of ChromaDB's client into ours."""
        import httpx
        from chromadb.errors import ChromaError

        reason = self._redact(error)
        if _is_rate_limit(error):
            return VectorStoreUnreachableError(f"ChromaDB at {self.url} could not {action} now: {reason}")
        if isinstance(error, ChromaError):
            return VectorStoreError(
                f"ChromaDB at {self.url} could not {action}: {reason}; see its log, and start it again if this goes on"
            )
        of_tls = next((cause for cause in causes(error) if isinstance(cause, ssl.SSLError)), None)
        if of_tls is not None:
            return VectorStoreRefusedError(f"ChromaDB at {self.url} could not {action}: {_tls_message(of_tls)}")
        if isinstance(error, httpx.TimeoutException):
            seconds = CONNECT_SECONDS if isinstance(error, httpx.ConnectTimeout) else self.answer_seconds
            reason = f"no answer within {seconds:g} s"
        elif not isinstance(error, httpx.TransportError):
            reason = f"what answers is not ChromaDB ({type(error).__name__}: {reason})"
        return VectorStoreUnreachableError(
            f"ChromaDB at {self.url} could not {action}: {reason}; start it, or correct SEMANTIC_CHROMA_URL"
        )

    def _redact(self, error: BaseException) -> str:
        """Return an error's message on one line, shortened, and without the token, which a server may repeat."""
        return redact(str(error), (self.token,)) or type(error).__name__


def _is_rate_limit(error: BaseException) -> bool:
    from chromadb.errors import ChromaError

    return isinstance(error, ChromaError) and error.code() == _TOO_MANY_REQUESTS


def _tls_message(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}); "
            "set SEMANTIC_CHROMA_CA to a file with the certificate of the authority that signed it, or correct the address"
        )
    return f"TLS with it fails ({error.reason or error}); see that SEMANTIC_CHROMA_URL begins as it has to, with http or https"
