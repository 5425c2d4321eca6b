"""What to search for to answer a question, and which passages are the sources of its answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from otterwiki_semantic.content.analysis import function_words, words
from otterwiki_semantic.core.records import Answer, Exchange, Hit, cited_title
from otterwiki_semantic.search.answering.plain import visible_markdown

NO_QUERY = "NONE"
"""What a model writes if it cannot reword a question."""
_SHORT = 3
"""A question with fewer content words is read together with the previous one."""
_MAX_PARTS = 3
_FOLLOW_UPS = 3
_REFERS = re.compile(
    r"\b(it|its|they|them|their|this|that|these|those|there|ones?|er|sie|es|das|diese[rsmn]?|dort)\b", re.IGNORECASE
)
"""Words that refer to something said before."""
_LIST_MARK = re.compile(r"^\s*(?:[-*\u2022]|\d{1,2}[.)])\s+")
_AROUND_QUERY = " \t\"'`*\u201c\u201d\u201e\u00ab\u00bb"
_LONGEST_QUERY = 300
_QUESTION_END = re.compile(r"(?<=[?？;；])\s+")


@dataclass(frozen=True, slots=True)
class Source:
    """A passage given to the model, whose sentences cite it by number."""

    number: int
    """From 1."""
    path: str
    """The page's path in the wiki."""
    title: str
    headings: tuple[str, ...]
    """The headings above the passage, outermost first."""
    text: str
    """Markdown, whole blocks of the page."""
    updated: str | None = None
    """When the page's last commit was made, ISO 8601 in UTC."""


def search_queries(question: str, history: Sequence[Exchange]) -> list[str]:
    """Return the queries for a question: itself, with the previous one if it refers to that, then its parts, if several."""
    parts = [part for part in map(str.strip, _QUESTION_END.split(question)) if len(part.split()) >= _SHORT]
    whole = f"{history[-1].question} {question}" if history and _needs_context(question) else question
    return [whole, *(parts[:_MAX_PARTS] if len(parts) > 1 else [])]


def queries_in(text: str) -> list[str]:
    """Return up to three queries that a model has written, one per line, without bullets and quotation marks."""
    lines = (_LIST_MARK.sub("", line).strip(_AROUND_QUERY) for line in text.splitlines())
    queries = [line for line in lines if any(map(str.isalnum, line)) and len(line) <= _LONGEST_QUERY and line[-1] != ":"]
    has_none = any(line.rstrip(".!").upper() == NO_QUERY for line in queries)
    return [] if has_none else list(dict.fromkeys(queries))[:_MAX_PARTS]


def _needs_context(question: str) -> bool:
    common = function_words("en")
    telling = [word for word in words(question) if not common.issuperset(word.exact)]
    return min(len(telling), len(question.split()) - 1) < _SHORT or _REFERS.search(question) is not None


def interleaved(answers: Sequence[Answer]) -> list[Hit]:
    """Return the passages of several answers without repeats, the best of each answer first."""
    found: dict[tuple[str, int], Hit] = {}
    for hit in chain.from_iterable(zip_longest(*(each.results for each in answers))):
        if hit is not None:
            found.setdefault((hit.path, hit.chunk_index), hit)
    return list(found.values())


def without_repeats(hits: Iterable[Hit]) -> list[Hit]:
    """Return the passages, without those whose lines are all part of a better one."""
    kept: list[Hit] = []
    for hit in hits:
        start, end = _lines(hit)
        spans = (_lines(other) for other in kept if other.path == hit.path)
        if not any(first <= start and end <= last for first, last in spans):
            kept.append(hit)
    return kept


def _lines(hit: Hit) -> tuple[int, int]:
    return hit.markdown_start_line or hit.start_line, hit.markdown_end_line or hit.end_line


def sources_of(hits: Sequence[Hit]) -> list[Source]:
    """Return passages as sources, numbered from 1."""
    sources = []
    for number, hit in enumerate(hits, 1):
        title, text = cited_title(hit.title, hit.kind, hit.page_number), visible_markdown(hit.markdown or hit.text)
        sources.append(Source(number, hit.path, title, (title, *hit.section_path[1:]), text, hit.updated))
    return sources


def follow_ups(sources: Sequence[Hit], hits: Sequence[Hit]) -> tuple[str, ...]:
    """Return the names of up to three sections that are related to a question but are not sources."""
    known = {hit.breadcrumb for hit in sources}
    return tuple(dict.fromkeys(hit.breadcrumb for hit in hits if hit.breadcrumb not in known))[:_FOLLOW_UPS]
