"""Answers without a model that writes: the sentences of the sources that answer best, as they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice

from otterwiki_semantic.core.languages import ENGLISH
from otterwiki_semantic.search.answering.source import Source
from otterwiki_semantic.search.answering.statements import Statement, StatementKind, StatementParser
from otterwiki_semantic.search.answering.units import restricting_heading

_MAX_UNITS = 4
_MAX_ITEMS = 8
"""Items of a list or rows of a table that are one unit; of a longer one, each is a unit by itself."""
_MAX_SCORED = 60
"""Units that are compared with the question."""
_FALL = 0.1
"""How much worse than the best a further unit may be."""
_CONTINUED = (":", "：", "?", "？")
"""Ends of sentences that need the next one."""
_ROW = re.compile(r"^[^;:]{1,40}: .*; [^;:]{1,40}: ")
"""The row of a table, as `StatementParser` writes it."""
_MIN_WORDS = 3

Score = Callable[[Sequence[str]], Sequence[float]]
"""Returns how well each text answers the question."""


def extract_statements(sources: Sequence[Source], score: Score, language: str = ENGLISH) -> list[Statement]:
    """Return the up to three sentences or lists that answer best, in the order of the sources.

    A heading without which they say something else, such as *Myths*, stands before them.
    """
    found = list(islice(((source, unit) for source in sources for unit in _units(source, language)), _MAX_SCORED))
    if not found:
        return []
    units = [unit for _, unit in found]
    texts = [" ".join(each.text for each in unit) for unit in units]
    scored = [f"{_trail(source)}: {text}" for (source, _), text in zip(found, texts, strict=True)]
    ranked = sorted(zip(score(scored), range(len(units)), strict=True), key=lambda each: (-each[0], each[1]))
    chosen: dict[str, int] = {}
    for value, place in ranked:
        if value >= ranked[0][0] - _FALL and len(chosen) < _MAX_UNITS:
            chosen.setdefault(texts[place].casefold(), place)
    extracted = [statement for place in sorted(chosen.values()) for statement in units[place]]
    blocks = list(dict.fromkeys((each.cited, each.block) for each in extracted))
    return [replace(each, block=blocks.index((each.cited, each.block))) for each in extracted]


def _units(source: Source, language: str) -> Iterator[list[Statement]]:
    """Yield what of a source can be read by itself: a sentence, a short list, each with what announces or asks for it."""
    parser = StatementParser(0)
    statements = [replace(each, cited=(source.number,)) for each in (*parser.feed(source.text), *parser.finish())]
    heading = restricting_heading(source, language)
    before: list[Statement] = []
    for _, block in groupby(statements, key=lambda each: each.block):
        for part in _parts(list(block)):
            unit = [*before, *part]
            before = unit if part[-1].text.rstrip().endswith(_CONTINUED) and len(unit) < _MAX_ITEMS else []
            if not before and _is_telling(unit):
                yield [replace(unit[0], text=f"{heading}: {unit[0].text}"), *unit[1:]] if heading else unit


def _parts(block: list[Statement]) -> list[list[Statement]]:
    """Return a block as one if it is code or a short list; else each of its statements: the rows of a table, too."""
    is_table = all(_ROW.search(each.text) for each in block)
    is_whole = block[0].kind is not StatementKind.SENTENCE and len(block) <= _MAX_ITEMS and not is_table
    return [block] if is_whole else [[each] for each in block]


def _trail(source: Source) -> str:
    """Return the title and headings above a source, which its sentences need not repeat."""
    return " > ".join(dict.fromkeys((source.title, *source.headings)))


def _is_telling(unit: Sequence[Statement]) -> bool:
    """Whether a unit says something: not code alone, nor a few words."""
    texts = [each.text for each in unit if each.kind is not StatementKind.CODE]
    return sum(len(text.split()) for text in texts) >= _MIN_WORDS
