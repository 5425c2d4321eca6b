"""What a model that writes has to offer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """A part of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    text: str


class ChatModel(Protocol):
    """A model that continues a conversation. Errors of its methods: `ChatModelError`, which shows no key and no sent text."""

    name: str
    """Its provider and model, such as ``ollama:llama3.2``."""
    place: str
    """Its address."""
    window: int
    """Tokens of conversation and answer together."""

    def stream(self, messages: Sequence[Message], seconds: float, is_cancelled: Callable[[], bool]) -> Iterator[str]:
        """Yield the text of an answer as it is written, within `seconds` in all.

        If the caller stops, or `is_cancelled`, the connection is closed, so that the server stops writing.
        """
        ...

    def check(self, seconds: float) -> str:
        """Return what the server says about the model; nothing is written."""
        ...

    def close(self) -> None:
        """Release what it holds, for good."""
        ...
