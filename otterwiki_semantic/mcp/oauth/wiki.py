"""The wiki that stores codes and tokens, asked with the API key."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any, TypeVar

import anyio.to_thread
import msgspec

from otterwiki_semantic.core.http import JsonClient, ProviderError
from otterwiki_semantic.core.records import CONNECTIONS_PATH, Grant, Tokens
from otterwiki_semantic.mcp.backend import BackendError

_SECONDS = 15.0

T = TypeVar("T")


class Connections:
    """The connections that a wiki stores. Errors: `BackendError` if it does not answer."""

    def __init__(self, url: str, key: str) -> None:
        self._client = JsonClient(f"{url}{CONNECTIONS_PATH}/", key, connect_seconds=5)

    async def find(self, secret: str, client: str | None = None) -> Grant | None:
        """Return a code or token, if it is valid now; with an authenticated `client`, only one of that client."""
        return msgspec.convert((await self._ask("lookup", secret, client)).get("grant"), Grant | None)

    async def exchange(self, secret: str, client: str) -> Tokens | None:
        """Return tokens for a code or a refresh token of an authenticated client, which cannot be used again."""
        return msgspec.convert((await self._ask("exchange", secret, client)).get("tokens"), Tokens | None)

    async def revoke(self, secret: str, client: str) -> None:
        """End the connection that a token of an authenticated client belongs to."""
        await self._ask("revoke", secret, client)

    async def _ask(self, route: str, secret: str, client: str | None) -> dict[str, Any]:
        send = partial(self._client.send, route, _SECONDS, {"secret": secret, "client": client})
        try:
            answer = (await anyio.to_thread.run_sync(send, abandon_on_cancel=True)).answer()
        except ProviderError as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise BackendError("OTTERWIKI_API_KEY is not the one that the wiki was started with") from None
            raise BackendError(f"the wiki cannot say who may connect ({error.status or error.reason})") from None
        if not isinstance(answer, dict):
            raise BackendError("the wiki's answer is invalid; make sure that both have the same version of otterwiki-semantic")
        return answer
