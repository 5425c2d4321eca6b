"""Cohere's rerank models, and other servers with the same API (``POST /v2/rerank``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from otterwiki_semantic.core.errors import RerankerError
from otterwiki_semantic.core.http import JsonClient, JsonResponse, ProviderError, ProviderTimeoutError
from otterwiki_semantic.core.redact import redact

_URL = "https://api.cohere.com"
_ROUTE = "/v2/rerank"
_CONNECT_SECONDS = 1.0
_MAX_BYTES = 1 << 20
_REMEDIES = {
    404: "correct SEMANTIC_RERANKER, or SEMANTIC_RERANKER_URL",
    429: "wait, or raise the limits of the key's account",
}
_OTHER_REMEDY = "see its log or status page"


class CohereReranker:
    """A `Reranker` on a server. The key is sent only to this server and never shown."""

    is_fast = True

    def __init__(self, model: str, url: str | None = None, key: str | None = None) -> None:
        self.name = f"cohere:{model}"
        self._model = model
        address = url or _URL
        self._url = address if address.endswith("/rerank") else address + _ROUTE
        self._needs_key = url is None
        self._key = key
        self._client = JsonClient(self._url, key, connect_seconds=_CONNECT_SECONDS, max_bytes=_MAX_BYTES)

    def load(self) -> None:
        if self._needs_key and not self._key:
            raise RerankerError(f"{_URL} wants a key; set SEMANTIC_RERANKER_KEY or COHERE_API_KEY")
        if self._key and not (self._key.isascii() and self._key.isprintable()):  # the client's own error would show the key
            raise RerankerError("SEMANTIC_RERANKER_KEY has characters that cannot be sent, such as a line break")

    def scores(self, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        body = {"model": self._model, "query": query, "documents": list(texts), "top_n": len(texts)}
        sent = [query, *texts]
        try:
            response = self._client.send("", seconds, body)
        except ProviderTimeoutError:
            raise RerankerError(f"{self._url} did not answer in time; make sure that it runs and can be reached") from None
        except ProviderError as error:
            reason = redact(error.server_message, (self._key,), sent) or error.reason
            raise RerankerError(
                f"{self._url} cannot be reached, or gives no usable answer ({reason}); make sure that it runs, "
                "or correct SEMANTIC_RERANKER_URL"
            ) from None
        if not 200 <= response.status < 300:
            raise RerankerError(f"{self._url} {self._refusal(response, sent)}")
        return self._read(response.body, len(texts))

    def close(self) -> None:
        self._client.close()

    def _refusal(self, response: JsonResponse, sent: Sequence[str]) -> str:
        if response.status in {401, 403}:
            return f"refuses the key ({response.status}); set SEMANTIC_RERANKER_KEY to one that it accepts"
        message = redact(response.message, (self._key,), sent) if response.body is not None else ""
        shown = f" ({message})" if message else ""
        return f"answers {response.status}{shown}; {_REMEDIES.get(response.status, _OTHER_REMEDY)}"

    def _read(self, body: Any, count: int) -> list[float]:
        try:
            results = body["results"]
            found = {result["index"]: float(result["relevance_score"]) for result in results}
            if len(results) == count:
                return [found[place] for place in range(count)]
        except (KeyError, TypeError, ValueError, OverflowError):
            pass
        raise RerankerError(
            f"{self._url} does not answer as Cohere's rerank API does, a score for each text; correct SEMANTIC_RERANKER_URL"
        )
