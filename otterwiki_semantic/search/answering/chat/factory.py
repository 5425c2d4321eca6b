"""The model that the settings name."""

from __future__ import annotations

from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.search.answering.chat.base import ChatModel
from otterwiki_semantic.search.answering.chat.remote import RemoteChatModel


def open_chat_model(settings: Settings) -> ChatModel | None:
    """Return the configured model; None without one, also for `extractive`. Asks no server."""
    return RemoteChatModel(settings) if settings.has_chat_model else None
