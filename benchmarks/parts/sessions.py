"""How often a query's embedding is remembered: a model of how people search, replayed against a cache of the index's size.

Nobody's log is at hand, so the answer is worth what the model is, and is given for two sets of its numbers. The model: `people`
search at the same time, and whose search comes next is left to chance. Each has one need after another. A need begins with a
question: with the chance `popular` one that many ask, drawn by Zipf's law (the k-th most popular of `questions` is drawn in
proportion to 1 / k ** `exponent`), else one of their own, which nobody has asked in these words. After each search a person

- with the chance `refine` asks in other words, which nobody has used before,
- with the chance `repeat` sends the same words again: more results, page 2, another filter, a reload,
- with the chance `back` goes back to a search made earlier for this need,
- else is done, and another need begins.

Only the same words hit the cache: it remembers embeddings, not answers, so that a filter or a later commit changes nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, count

from benchmarks.support.options import Options
from benchmarks.support.report import Figure
from otterwiki_semantic.embedding.query_embedder import CACHE_SIZE

_SEARCHES = 40_000
_WARM_UP = 10_000


@dataclass(frozen=True, slots=True)
class Habits:
    """The numbers of the model; see above."""

    name: str
    people: int
    popular: float
    questions: int
    exponent: float
    refine: float
    repeat: float
    back: float


CAUTIOUS = Habits("few ask the same", 30, popular=0.1, questions=5_000, exponent=0.7, refine=0.3, repeat=0.1, back=0.1)
SHARED = Habits("many ask the same", 30, popular=0.5, questions=1_000, exponent=1.0, refine=0.25, repeat=0.2, back=0.15)


def measure(_options: Options) -> list[Figure]:
    """Return the hit rate of the cache of query embeddings for both sets of habits."""
    return [
        Figure(f"queries whose embedding is remembered: {habits.name}", round(100 * hit_rate(habits)), "%")
        for habits in (CAUTIOUS, SHARED)
    ]


def hit_rate(habits: Habits, size: int = CACHE_SIZE, seed: int = 1) -> float:
    """Return the share of searches (0 to 1) whose words are in a cache of so many that lets go of the longest unused."""
    remembered = lru_cache(size)(len)
    searches = _searches(habits, random.Random(seed))
    for _ in range(_WARM_UP):
        remembered(next(searches))
    before = remembered.cache_info().hits
    for _ in range(_SEARCHES):
        remembered(next(searches))
    return (remembered.cache_info().hits - before) / _SEARCHES


def _searches(habits: Habits, chance: random.Random) -> Iterator[str]:
    """Return the words of one search after another, whoever makes it."""
    weights = list(accumulate(1 / rank**habits.exponent for rank in range(1, habits.questions + 1)))
    popular = range(habits.questions)
    fresh = (f"own {number}" for number in count())

    def person() -> Iterator[str]:
        while True:
            is_popular = chance.random() < habits.popular
            asked = [f"popular {chance.choices(popular, cum_weights=weights)[0]}" if is_popular else next(fresh)]
            yield asked[-1]
            while (following := _next_of_need(habits, chance, asked, fresh)) is not None:
                asked.append(following)
                yield following

    people = [person() for _ in range(habits.people)]
    while True:
        yield next(chance.choice(people))


def _next_of_need(habits: Habits, chance: random.Random, asked: list[str], fresh: Iterator[str]) -> str | None:
    """Return the next search for the same need; None if the person is done."""
    dice = chance.random()
    if dice < habits.refine:
        return next(fresh)
    if dice < habits.refine + habits.repeat:
        return asked[-1]
    if dice < habits.refine + habits.repeat + habits.back:
        return chance.choice(asked)
    return None
