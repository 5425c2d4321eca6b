"""Sentences of two pages that say the same but for a number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from otterwiki_semantic.answering.source import Source
from otterwiki_semantic.answering.statements import StatementParser

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_MIN_WORDS = 3


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two sources that say different things of the same."""

    sources: tuple[int, int]
    """Their numbers; the one that was changed last stands first."""
    titles: tuple[str, str]
    texts: tuple[str, str]

    def describe(self) -> str:
        """Return both statements, for people."""
        (first, second), (newer, older) = self.titles, self.texts
        return f"'{first}', changed last, says \"{newer}\", '{second}' says \"{older}\""


def find_conflicts(sources: Sequence[Source]) -> list[Conflict]:
    """Return the conflicts between sources of different pages."""
    found: list[Conflict] = []
    known: dict[str, tuple[Source, str, list[str]]] = {}
    for source in sorted(sources, key=lambda each: each.updated or "", reverse=True):
        for text in _statements(source):
            key, numbers = _NUMBER.sub("#", text.casefold()), _NUMBER.findall(text)
            newer, newer_text, newer_numbers = known.setdefault(key, (source, text, numbers))
            if newer.path != source.path and newer_numbers != numbers:
                found.append(Conflict((newer.number, source.number), (newer.title, source.title), (newer_text, text)))
    return found


def _statements(source: Source) -> Iterator[str]:
    parser = StatementParser(0)
    for statement in (*parser.feed(source.text), *parser.finish()):
        if _NUMBER.search(statement.text) and len(statement.text.split()) > _MIN_WORDS:
            yield statement.text
