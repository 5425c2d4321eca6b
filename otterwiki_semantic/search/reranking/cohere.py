"""Cohere's rerank models, and whatever server answers the same request (``POST /v2/rerank``)."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.core.network import is_on_this_machine
from otterwiki_semantic.core.redact import quote

if TYPE_CHECKING:
    import httpx

_URL = "https://api.cohere.com"
_ROUTE = "/v2/rerank"
_CONNECT_SECONDS = 1.0
_MOST_BYTES = 1 << 20
_REFUSED_KEY = (401, 403)
_CURES = {
    404: "correct SEMANTIC_RERANKER, or SEMANTIC_RERANKER_URL",
    429: "wait, or raise the limits of the key's account",
}
_OTHER_CURE = "see its log or status page"


class CohereReranker:
    """A `Reranker` over HTTP. The key is sent to the server's address alone, and never shown."""

    is_fast = True

    def __init__(self, model: str, url: str | None = None, key: str | None = None) -> None:
        self.name = f"cohere:{model}"
        self._model = model
        address = url or _URL
        self._url = address if address.endswith("/rerank") else address + _ROUTE
        self._needs_key = url is None
        self._key = key
        self._client: httpx.Client | None = None

    def load(self) -> None:
        """See `Reranker`."""
        if self._needs_key and not self._key:
            raise RerankerError(f"{_URL} wants a key; set SEMANTIC_RERANKER_KEY or COHERE_API_KEY")
        if self._key and not (self._key.isascii() and self._key.isprintable()):  # the client's own error would show it
            raise RerankerError("SEMANTIC_RERANKER_KEY has characters in it that cannot be sent, such as an end of line")
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # it notes each request
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else None,
            trust_env=not is_on_this_machine(self._url),
        )

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """See `Reranker`."""
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        # What is not text (a lone surrogate of a damaged page) cannot be sent.
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", errors="replace")
        sent = [query, *texts]
        status, answer = self._post(content, sent, seconds)
        if not 200 <= status < 300:
            raise RerankerError(f"{self._url} {self._refusal(status, answer, sent)}")
        return self._read(answer, len(texts))

    def close(self) -> None:
        """See `Reranker`."""
        if self._client is not None:
            self._client.close()

    def _post(self, content: bytes, sent: Sequence[str], seconds: float) -> tuple[int, bytes]:
        import httpx

        assert self._client is not None
        deadline = time.monotonic() + seconds
        limits = httpx.Timeout(seconds, connect=min(_CONNECT_SECONDS, seconds))
        kind = {"Content-Type": "application/json"}
        try:
            with self._client.stream("POST", self._url, content=content, headers=kind, timeout=limits) as response:
                answer = b""
                for part in response.iter_bytes():
                    answer += part
                    if time.monotonic() > deadline:
                        raise httpx.ReadTimeout("it goes on too long")
                    if len(answer) > _MOST_BYTES:
                        raise RerankerError(f"{self._url} answers with more than {_MOST_BYTES:,} bytes, as no reranker does")
                return response.status_code, answer
        except httpx.TimeoutException:
            raise RerankerError(f"{self._url} did not answer in time; see that it runs and can be reached") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            reason = self._quoted(str(error), sent) or type(error).__name__
            raise RerankerError(
                f"{self._url} cannot be reached ({reason}); see that it runs, or correct SEMANTIC_RERANKER_URL"
            ) from None

    def _refusal(self, status: int, answer: bytes, sent: Sequence[str]) -> str:
        if status in _REFUSED_KEY:
            return f"refuses the key ({status}); set SEMANTIC_RERANKER_KEY to one that it takes"
        said = self._quoted(_message(answer), sent)
        return f"answers {status}{f' ({said})' if said else ''}; {_CURES.get(status, _OTHER_CURE)}"

    def _quoted(self, text: str, sent: Sequence[str]) -> str:
        return quote(text, (self._key,), sent)

    def _read(self, answer: bytes, count: int) -> list[float]:
        try:
            results = json.loads(answer)["results"]
            found = {result["index"]: float(result["relevance_score"]) for result in results}
            if len(results) == count:
                return [found[place] for place in range(count)]
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            pass
        raise RerankerError(
            f"{self._url} does not answer as Cohere's rerank API does, a score for each text; correct SEMANTIC_RERANKER_URL"
        )


def _message(answer: bytes) -> str:
    """Give what an answer says of an error, where it does so as such servers do."""
    try:
        body: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return ""
    said = next((body[name] for name in ("message", "detail", "error") if name in body), "") if isinstance(body, dict) else ""
    return said if isinstance(said, str) else ""
