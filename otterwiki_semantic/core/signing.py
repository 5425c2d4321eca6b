"""Statements that the wiki and the MCP server sign for each other, with their shared API key."""

from __future__ import annotations

import hashlib
import zlib
from typing import Any, TypeVar

import msgspec
from itsdangerous import BadData, BadPayload, URLSafeSerializer
from itsdangerous.encoding import base64_decode

from otterwiki_semantic.core.serialization import convert

T = TypeVar("T")

MIN_KEY_CHARACTERS = 20
"""Anyone can obtain a signed text, and try keys with it offline: a key that can be guessed must not sign."""
MAX_STATEMENT_BYTES = 1 << 14


class _BoundedSerializer(URLSafeSerializer):
    """Limits the unpacked size of a statement: anyone can get one signed that unpacks to a thousand times its length."""

    def load_payload(self, payload: bytes, *args: Any, **named: Any) -> Any:
        if not payload.startswith(b"."):
            return super().load_payload(payload, *args, **named)
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(base64_decode(payload[1:]), MAX_STATEMENT_BYTES)
        if not unpacking.eof:
            raise BadPayload("a statement is too long")
        return self.serializer.loads(text.decode())


class Signer:
    """Signs statements for one purpose, and accepts no statements for other purposes."""

    def __init__(self, key: str, purpose: str) -> None:
        options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        self._serializer = _BoundedSerializer(key, salt=f"otterwiki-semantic {purpose}", signer_kwargs=options)

    def sign(self, statement: object) -> str:
        """Sign a statement (a record, or JSON) and return it as a text of letters, digits and ``-_.``."""
        return str(self._serializer.dumps(msgspec.to_builtins(statement)))

    def read(self, text: str, type_: type[T]) -> T | None:
        """Return the signed statement, or None if it is not signed with the key, or has another type."""
        try:
            return convert(self._serializer.loads(text), type_)
        except (BadData, msgspec.ValidationError, ValueError):
            return None
