"""The ends of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]*]*+\s++(?=\S)|(?<=[。！？])(?![。！？])")
_SENTENCE_OR_LINE_END = re.compile(rf"{_SENTENCE_END.pattern}|\n+")
_ABBREVIATIONS = {
    "en": r"Dr|Mr|Mrs|Ms|Prof|St|Jr|(?i:vs|cf|viz|approx|et\sal)",
    "de": r"Hr|Fr|(?i:bzw|ca|vgl|sog|evtl|ggf|inkl)",
    "fr": r"Mme|Mlle|(?i:p\.\s?ex|env)",
    "es": r"Sr|Sra|Dra|(?i:p\.\s?ej)",
}
"""By language: abbreviations that never end a sentence. Abbreviations that can, such as `etc.`, are not included."""
_BEFORE_NUMBERS = r"(?i:no|nos|nr|núm|fig|abb|art|abs|kap|sec|ch|vol|bd|pp)"
_LETTER = r"(?<!\w)(?<!\d\s)[^\W\d_]"
"""An initial, or the end of `e.g.` and `z. B.`; after a number it is a unit."""
_ITEM_NUMBER = r"(?m:^)[^\S\n]*+(?:[-*•][^\S\n]++)?\d{1,3}"
_ABBREVIATION = re.compile(rf"(?:\b(?:{'|'.join(_ABBREVIATIONS.values())})|{_LETTER}|{_ITEM_NUMBER})\.\Z")
_NUMBER_ABBREVIATION = re.compile(rf"\b{_BEFORE_NUMBERS}\.\Z")
_LONGEST = 16
ANNOUNCING = (":", "：")
"""The endings of sentences that announce a list, a table or code."""
QUESTION_MARKS = ("?", "？", "؟")
UNFINISHED = (*ANNOUNCING, *QUESTION_MARKS)
"""The endings of sentences that need the text after them."""


def ends_sentence(text: str, end: int, following: str) -> bool:
    """Whether a sentence ends with the mark before `end`; `following` is the first character after the spaces behind it."""
    if following.islower():
        return False
    if text[end - 1 : end] != ".":
        return True
    start = max(0, end - _LONGEST)
    is_abbreviated = _ABBREVIATION.search(text, start, end) or (
        following.isdecimal() and _NUMBER_ABBREVIATION.search(text, start, end)
    )
    return not is_abbreviated


def sentence_ends(text: str, start: int = 0, *, at_lines: bool = False) -> Iterator[int]:
    """Yield the ends of all sentences but the last, trailing spaces included; with `at_lines` also the ends of lines."""
    for match in (_SENTENCE_OR_LINE_END if at_lines else _SENTENCE_END).finditer(text, start):
        is_line_end = at_lines and "\n" in match[0]
        if is_line_end or ends_sentence(text, match.start(), text[match.end() : match.end() + 1]):
            yield match.end()


def sentence_ranges(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Return the ranges of the sentences in a chunk's text from `start` on; outside prose, the ranges of lines."""
    places = pairwise([start, *sentence_ends(text, start, at_lines=True), len(text)])
    parts = ((begin, end, text[begin:end]) for begin, end in places)
    return [(end - len(part.lstrip()), begin + len(part.rstrip())) for begin, end, part in parts if part.strip()]
