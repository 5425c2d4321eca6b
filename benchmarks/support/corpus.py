"""A generated wiki: the same pages on every machine, with the statistics of real text, and nothing to download.

Words come from the bundled tokenizer's vocabulary, which is ordered by how frequent they are, and are drawn by Zipf's law (a
word's frequency falls with its rank). A third of a page's words are those of its topic, so that pages of a topic are related; a
few are made of two pieces, as names and inflected words are in real text. What the sentences say means nothing: these pages
measure time, memory and whether two ways of searching agree, not how well answers fit questions.

Page number k is the same whatever the number of pages: it links only to pages before it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from otterwiki_semantic.embedding.local.bundled import BUNDLED_MODEL

SELECTIVITY = {"rare": 0.01, "common": 0.3, "most": 0.9}
"""Tags, and the share of the pages that carry them."""

_GENERAL_WORDS = 12_000
_TOPICS = 300
_WORDS_A_TOPIC = 120
_TOPIC_SHARE = 0.33
_COMPOUND_SHARE = 0.1
_FREQUENT_RANKS = 400
"""The most frequent words, which no topic has for its own and no question is made of."""
_GOLDEN = 0.6180339887498949
_QUESTIONS = (
    "how to {} the {} of {}",
    "what is the {} {}",
    "{} {} {}",
    "where do we keep {} for {}",
    "why does {} need {} and {}",
    "{} {} without {} {}",
    "when was the {} {} changed",
    "difference between {} and {}",
)
_ENGLISH = re.compile(r"[a-z]{3,}")


class _Urn(NamedTuple):
    """Words, and the running totals of how often each is drawn."""

    words: Sequence[str]
    totals: Sequence[float]

    @classmethod
    def of(cls, words: Sequence[str]) -> _Urn:
        """Return words, the most frequent first, with the frequencies of Zipf's law in Mandelbrot's form."""
        return cls(words, list(accumulate(1 / (rank + 2.7) for rank in range(len(words)))))


class _Vocabulary(NamedTuple):
    general: _Urn
    topical: Sequence[str]
    endings: Sequence[str]


@cache
def _vocabulary() -> _Vocabulary:
    pieces: dict[str, int] = json.loads((BUNDLED_MODEL / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    ordered = sorted(pieces, key=lambda piece: pieces[piece])
    words = [piece for piece in ordered if _ENGLISH.fullmatch(piece)]
    endings = [piece[2:] for piece in ordered if piece.startswith("##") and _ENGLISH.fullmatch(piece[2:])]
    return _Vocabulary(_Urn.of(words[:_GENERAL_WORDS]), words[_FREQUENT_RANKS:], endings[:2000])


@cache
def _topic(number: int, seed: int) -> _Urn:
    return _Urn.of(random.Random(f"{seed}/topic/{number}").sample(_vocabulary().topical, _WORDS_A_TOPIC))


def _topic_of(number: int) -> int:
    """Return a page's topic: the first topics have many pages, the last ones few."""
    return int(_TOPICS * (number * _GOLDEN % 1) ** 2)


class _Author:
    """Writes the text of one page."""

    def __init__(self, number: int, seed: int) -> None:
        self.random = random.Random(f"{seed}/page/{number}")
        self._general, _, self._endings = _vocabulary()
        self._topic = _topic(_topic_of(number), seed)

    def words(self, count: int) -> list[str]:
        """Return words of the topic and general ones, mixed."""
        chance, (words, totals), (topical, topic_totals) = self.random, self._general, self._topic
        drawn = chance.choices(words, cum_weights=totals, k=count)
        special = iter(chance.choices(topical, cum_weights=topic_totals, k=count))
        for place, own in enumerate(special):
            dice = chance.random()
            if dice < _TOPIC_SHARE:
                drawn[place] = own
            elif dice < _TOPIC_SHARE + _COMPOUND_SHARE:
                drawn[place] = chance.choice(words) + chance.choice(self._endings)
        return drawn

    def name(self, least: int = 1, most: int = 4) -> str:
        """Return some words of the topic, as a heading or a title has them."""
        topical, totals = self._topic
        chosen = self.random.choices(topical, cum_weights=totals, k=self.random.randint(least, most))
        return " ".join(dict.fromkeys(chosen)).capitalize()

    def sentence(self) -> str:
        """Return a sentence of 6 to 25 words."""
        words = self.words(self.random.randint(6, 25))
        if len(words) > 12:
            words[len(words) // 2] += ","
        return " ".join(words).capitalize() + "."

    def paragraphs(self, words: int) -> str:
        """Return paragraphs of up to 90 words each, and together of about so many."""
        written, paragraph, blocks = 0, 0, [[self.sentence()]]
        while written < words - 15:
            if paragraph > 75:
                blocks.append([])
                paragraph = 0
            sentence = self.sentence()
            blocks[-1].append(sentence)
            written += sentence.count(" ") + 1
            paragraph += sentence.count(" ") + 1
        return "\n\n".join(" ".join(sentences) for sentences in blocks if sentences)

    def items(self) -> str:
        """Return a list of 3 to 8 items."""
        return "\n".join(f"- {' '.join(self.words(self.random.randint(3, 12)))}" for _ in range(self.random.randint(3, 8)))

    def table(self) -> str:
        """Return a table of three columns and 3 to 8 rows."""
        rows = [[" ".join(self.words(2)) for _ in range(3)] for _ in range(self.random.randint(4, 9))]
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], "|---|---|---|", *lines[1:]])

    def code(self) -> str:
        """Return a fenced block of 3 to 8 lines, with names as programs have them."""
        lines = []
        for _ in range(self.random.randint(3, 8)):
            target, function, argument = self.words(3)
            lines.append(f"{target} = {function}_{argument}({self.random.randint(0, 4096)})")
        return "\n".join(["```", *lines, "```"])


def _path(author: _Author, number: int) -> str:
    folder, *words = author.name(3, 4).lower().split()
    return "/".join((folder, "-".join([*words, str(number)])))


@cache
def path_of(number: int, seed: int = 1) -> str:
    """Return the path of a page in its repository, without ``.md``."""
    return _path(_Author(number, seed), number)


def title_of(number: int, seed: int = 1) -> str:
    """Return the title of a page."""
    heading = re.search(r"^# (.+)$", page(number, seed)[1], re.MULTILINE)
    assert heading
    return heading[1]


def page(number: int, seed: int = 1) -> tuple[str, str]:
    """Return a page's path (with ``.md``) and its markdown; `number` counts from 0."""
    author = _Author(number, seed)
    path = _path(author, number)
    title = f"{author.name(2, 4)} {number}"
    parts = [*_front_matter(author, number, title), f"# {title}", author.paragraphs(author.random.randint(20, 60))]
    level = 2
    for _ in range(_section_count(author)):
        parts += [f"{'#' * level} {author.name()}", author.paragraphs(int(author.random.triangular(60, 300, 120)))]
        parts += _extra(author)
        level = author.random.choice((2, 2, 3))
    parts.append(_links(author, number, seed))
    return f"{path}.md", "\n\n".join(part for part in parts if part) + "\n"


def _section_count(author: _Author) -> int:
    return min(14, 3 + int(author.random.expovariate(1 / 1.7)))


def _extra(author: _Author) -> Iterator[str]:
    """Return what some sections have below their text."""
    dice = author.random.random()
    if dice < 0.10:
        yield author.items()
    elif dice < 0.15:
        yield author.table()
    elif dice < 0.20:
        yield author.code()


def tags_of(number: int) -> list[str]:
    """Return the tags of `SELECTIVITY` that a page carries."""
    carried = {"rare": number % 100 == 7, "common": number * 7 % 10 < 3, "most": number % 10 != 4}
    return [tag for tag, is_carried in carried.items() if is_carried]


def _front_matter(author: _Author, number: int, title: str) -> Iterator[str]:
    tags = tags_of(number)
    if tags:
        shown = f"title: {title}\n" if author.random.random() < 0.3 else ""
        yield f"---\n{shown}category: topic {_topic_of(number)}\ntags: [{', '.join(tags)}]\n---"


def _links(author: _Author, number: int, seed: int) -> str:
    if not number:
        return ""
    targets = dict.fromkeys(_target(author, number) for _ in range(author.random.randint(1, 4)))
    return "See " + ", ".join(f"[{author.name(1, 3)}](/{path_of(target, seed)})" for target in targets) + "."


def _target(author: _Author, number: int) -> int:
    """Return the number of an earlier page, of the same topic if a few attempts find one."""
    candidates = [author.random.randrange(number) for _ in range(12)]
    return next((each for each in candidates if _topic_of(each) == _topic_of(number)), candidates[0])


def write_pages(directory: Path, pages: int, seed: int = 1) -> None:
    """Write the first pages of the wiki as files below a directory, in folders."""
    folders: set[Path] = set()
    for number in range(pages):
        name, source = page(number, seed)
        path = directory / name
        if path.parent not in folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            folders.add(path.parent)
        path.write_text(source, encoding="utf-8")


def questions(count: int, pages: int, seed: int = 1) -> list[str]:
    """Return distinct queries of 3 to 9 words about the first pages of the wiki of seed 1; another seed gives other queries.

    A query's own words stand together in one sentence of a page, and none is among the most frequent ones.
    """
    chance = random.Random(f"{seed}/questions")
    found: dict[str, None] = {}
    while len(found) < count:
        template = chance.choice(_QUESTIONS)
        words = _content_words(chance, page(chance.randrange(pages))[1], template.count("{}"))
        if words:
            found[template.format(*words)] = None
    return list(found)


@cache
def _frequent() -> frozenset[str]:
    return frozenset(_vocabulary().general.words[:_FREQUENT_RANKS])


def _content_words(chance: random.Random, source: str, count: int) -> list[str]:
    """Return distinct words of one sentence of a page, in their order; none if the sentence that was met has too few."""
    sentence = chance.choice(re.findall(r"[A-Z][a-z, ]+\.", source))
    words = [word for word in dict.fromkeys(_ENGLISH.findall(sentence.lower())) if word not in _frequent()]
    return [words[place] for place in sorted(chance.sample(range(len(words)), count))] if len(words) >= count else []
