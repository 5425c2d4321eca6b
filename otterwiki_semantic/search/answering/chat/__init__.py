"""Models that write: servers of three protocols."""

from otterwiki_semantic.search.answering.chat.base import ChatModel as ChatModel
from otterwiki_semantic.search.answering.chat.base import Message as Message
from otterwiki_semantic.search.answering.chat.factory import open_chat_model as open_chat_model
