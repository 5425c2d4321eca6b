"""Turn a question and the passages found for it into an answer whose sentences cite their sources."""

from otterwiki_semantic.search.answering.answerer import Answerer
from otterwiki_semantic.search.answering.chat import open_chat_model
from otterwiki_semantic.search.answering.conflicts import find_conflicts
from otterwiki_semantic.search.answering.extractive import Extract, extract_answer, find_lead
from otterwiki_semantic.search.answering.sources import follow_ups, interleaved, search_queries, sources_of, without_repeats
from otterwiki_semantic.search.answering.statements import Statement
