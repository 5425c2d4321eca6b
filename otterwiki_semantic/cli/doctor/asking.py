"""A question over HTTP, whose every outcome is an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from otterwiki_semantic.core.network import is_on_this_machine

_CONNECT_SECONDS, _ANSWER_SECONDS = 3.0, 15.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered: status, JSON (None if it is none), and where it redirects to; or why it did not (`trouble`)."""

    status: int = 0
    json: Any = None
    location: str = ""
    trouble: str = ""


def ask(url: str, key: str | None = None) -> Reply:
    """GET an address, with a key as the bearer's, which goes to no other one."""
    import httpx

    try:
        response = httpx.get(
            url,
            headers={b"Authorization": f"Bearer {key}".encode()} if key else None,
            timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS),
            trust_env=not is_on_this_machine(url),  # a proxy of the environment is for other machines
        )
    except httpx.TimeoutException:
        return Reply(trouble=f"no answer within {_ANSWER_SECONDS:.0f} s")
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return Reply(trouble=str(error) or type(error).__name__)
    try:
        body = response.json()
    except ValueError:
        body = None
    return Reply(response.status_code, body, response.headers.get("location", ""))
