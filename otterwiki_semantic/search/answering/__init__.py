"""Turn a question and the passages found for it into an answer whose sentences cite their sources."""

from otterwiki_semantic.search.answering.answerer import Answerer as Answerer
from otterwiki_semantic.search.answering.chat import open_chat_model as open_chat_model
from otterwiki_semantic.search.answering.conflicts import find_conflicts as find_conflicts
from otterwiki_semantic.search.answering.extractive import Extract as Extract
from otterwiki_semantic.search.answering.extractive import extract_answer as extract_answer
from otterwiki_semantic.search.answering.extractive import find_lead as find_lead
from otterwiki_semantic.search.answering.sources import follow_ups as follow_ups
from otterwiki_semantic.search.answering.sources import interleaved as interleaved
from otterwiki_semantic.search.answering.sources import search_queries as search_queries
from otterwiki_semantic.search.answering.sources import sources_of as sources_of
from otterwiki_semantic.search.answering.sources import without_repeats as without_repeats
from otterwiki_semantic.search.answering.statements import Statement as Statement
