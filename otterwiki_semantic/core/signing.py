"""Statements that the wiki and the MCP server sign for each other, with the API key that both have."""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec
from itsdangerous import BadData, URLSafeSerializer

T = TypeVar("T")

MIN_KEY_CHARACTERS = 20
"""Everyone can obtain a signed text, and try keys with it without asking: a key that can be guessed must not sign."""


class Signer:
    """Signs statements for one purpose: those for another are not accepted."""

    def __init__(self, key: str, purpose: str) -> None:
        options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        self._serializer = URLSafeSerializer(key, salt=f"otterwiki-semantic {purpose}", signer_kwargs=options)

    def sign(self, statement: object) -> str:
        """Return a statement (a record, or JSON) as a signed text of letters, digits and ``-_.``."""
        return str(self._serializer.dumps(msgspec.to_builtins(statement)))

    def read(self, text: str, type_: type[T]) -> T | None:
        """Return the statement that was signed; None if it is not signed with the key, or of another type."""
        try:
            return msgspec.convert(self._serializer.loads(text), type_)
        except (BadData, msgspec.ValidationError, ValueError):
            return None
