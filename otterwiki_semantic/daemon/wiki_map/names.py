"""Name groups of pages by the typical words of their titles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from otterwiki_semantic.content.analysis import fold, function_words, name_parts, stem
from otterwiki_semantic.core.languages import ENGLISH

_WORDS = 3
_LEAST_LETTERS = 3


def group_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each group of titles: its most typical words by c-TF-IDF (Grootendorst, BERTopic, 2022)."""
    words = [[word for title in titles for word in dict(_words(title)).items()] for titles in groups]
    spelled: dict[str, Counter[str]] = {}
    for key, word in (each for found in words for each in found):
        spelled.setdefault(key, Counter())[word] += 1
    average = sum(map(len, words)) / max(len(groups), 1)
    names: list[str] = []
    for number, found in enumerate(words, 1):
        counts = Counter(key for key, _ in found)
        weight = {key: count * math.log(1 + average / spelled[key].total()) for key, count in counts.items() if key in spelled}
        best = sorted(weight, key=lambda key: (-weight[key], key))[:_WORDS]
        shown = (spelled.pop(key).most_common(1)[0][0] for key in best)  # no other name has these words
        names.append(", ".join(shown) or f"group {number}")
    return names


def _words(title: str) -> Iterator[tuple[str, str]]:
    """Yield the words of a title that mean something: their stems, and as they are spelled."""
    for part in name_parts(title):
        word = title[part.start : part.end]
        if len(word) >= _LEAST_LETTERS and not word.isdigit() and fold(word) not in function_words(ENGLISH):
            yield stem(fold(word), ENGLISH), word
