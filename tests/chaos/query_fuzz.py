"""Queries that nobody would type, asked of an index of the demo's pages, and what has to hold for each answer."""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random

from msgspec import structs

from otterwiki_semantic.core.errors import ParameterError
from otterwiki_semantic.core.parameter_parsing import MAX_QUERY_CHARACTERS
from otterwiki_semantic.core.records import Answer, Filters, Fusion, Hit, Mode, SearchOptions
from otterwiki_semantic.core.serialization import decode, encode
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.search.query import Query, has_phrases, parse_query
from tests.chaos.fuzzing import Batch, Finding, attempt
from tests.chaos.victim import wait_until_whole
from tests.support.live_wiki import make_repository

_DEMO = Path(__file__).parents[2] / "demo" / "pages"
_OPERATORS = (
    *("AND", "OR", "NOT", "NEAR(", "NEAR/2", "(", ")", '"', '""', "'", "*", "^", ":", "-", "--", "+", "{", "}", "body:"),
    *("“", "”", "„", "«", "»", "-“", '-"', "%", "_", "\\", ";", "--;", "/*", "rowid", "c++", "C#", "10.0.0.5", "->", "°"),
    *("5'", '6"', "\x00", "\x01", "\n", "\t", "\x1b[0m", "\u202e", "\u200b", "\ufeff", "\u0301" * 3, "\U0010ffff", "\ufffe"),
    *("İ", "ß", "ﬁ", "漢", "漢字", "かな", "한글", "ไทย", "😀", "👨\u200d👩\u200d👧", "café", "camelCaseWord", "max_chunks"),
    *("a.b.c", "x" * 70),
)
_FILTERS = (*(Filters(),) * 6, Filters(category="x"), Filters(path="m"), Filters(tags=("a", "b")), Filters(updated_since=1))
_RATIOS = (0.0, 0.3, 0.5, 1.0)
_PLAIN_RUN = re.compile(r"(?<=\s)[a-z]+(?: [a-z]+){1,4}(?=\s)")
_PLAIN_WORD = re.compile(r"\w+")
_FARTHEST = 2.001


class Demo:
    """An index of the demo's pages, and all that it may answer with."""

    def __init__(self, place: Path) -> None:
        pages: dict[str, str | bytes] = {str(path.relative_to(_DEMO)): path.read_bytes() for path in _DEMO.rglob("*.md")}
        self.index = IndexEngine(Settings(make_repository(place / "repository", pages), place / "index", threads=1, pages=()))
        self.index.start()
        wait_until_whole(self.index)
        (catalog,) = place.glob("index/generations/*/catalog.sqlite3")
        with closing(sqlite3.connect(catalog)) as connection:
            rows = connection.execute("SELECT path, ordinal, text FROM chunks").fetchall()
        self.passages = {(path, ordinal): text for path, ordinal, text in rows}
        self.texts = sorted(self.passages.values())
        self.words = sorted({word for text in self.texts for word in text.split()})
        self.runs = sorted({run for text in self.texts for run in _PLAIN_RUN.findall(text)})


@cache
def demo_in(place: Path) -> Demo:
    """Return this process's index, made in a directory for those of all processes."""
    directory = place / f"demo-{os.getpid()}"
    (directory / "index").mkdir(parents=True)
    return Demo(directory)


def try_queries(place: Path, name: str, count: int) -> Batch:
    """Make queries of a seed and ask them."""
    random, demo = Random(name), demo_in(place)
    findings, slowest = [], 0.0
    for _ in range(count):
        query, options = _made(random, demo), _options(random)
        fault, seconds = attempt(partial(_fault_of, demo, query, options))
        slowest = max(slowest, seconds)
        if fault:
            findings.append(Finding(repr(query), f"{fault}; {options}"))
    return Batch(count, slowest, tuple(findings))


def _fault_of(demo: Demo, text: str, options: SearchOptions) -> str:
    """Say what is wrong with the answer to a query; empty if nothing is."""
    if not _refuses_a_ratio(options):
        return "semantic_ratio is accepted where the mode is not hybrid"
    query = parse_query(text)
    if parse_query(text) != query:
        return "it is not the same query each time"
    (answer,) = demo.index.search([text], options)
    line = json.dumps(json.loads(encode(answer)), allow_nan=False)
    if decode(line.encode(), Answer) != answer:
        return "the answer does not survive its way through JSON"
    if answer.query != text or answer.degraded:
        return f"the answer is to {answer.query!r}, and {answer.degraded}"
    if len(answer.results) > options.n:
        return f"{len(answer.results)} results instead of {options.n}"
    if max(Counter(hit.path for hit in answer.results).values(), default=0) > options.max_chunks_per_page:
        return "a page has more than its share"
    if answer.confident != any(hit.relevant for hit in answer.results):
        return "it is not said rightly whether any result is relevant"
    run = _plain_run(demo, text)
    if run and not answer.results and options.filters == Filters() and options.min_similarity is None:
        return "a phrase of a page is not found"
    return next((fault for hit in answer.results if (fault := _fault_of_hit(demo, hit, query, run))), "")


def _refuses_a_ratio(options: SearchOptions) -> bool:
    """Return whether these options, in any other mode than the hybrid one, are refused with every share of meaning."""
    for mode, ratio in product((Mode.SEMANTIC, Mode.KEYWORD), _RATIOS):
        with suppress(ParameterError):
            structs.replace(options, mode=mode, semantic_ratio=ratio)
            return False
    return True


def _plain_run(demo: Demo, text: str) -> str:
    """Return the words of a query that is nothing but a phrase that stands on some page."""
    return text[1:-1] if text[:1] == text[-1:] == '"' and text[1:-1] in demo.runs else ""


def _fault_of_hit(demo: Demo, hit: Hit, query: Query, run: str) -> str:
    if demo.passages.get((hit.path, hit.chunk_index)) != hit.snippet:
        return f"{hit.path} has no such passage"
    if not has_phrases(hit.snippet, query.phrases) or not all(literal in hit.snippet for literal in query.literals):
        return f"an exact phrase is missing on {hit.path}"
    if run not in " ".join(_PLAIN_WORD.findall(hit.snippet.casefold())):
        return f"the phrase does not stand on {hit.path}, looked for as plain text"
    if any(has_phrases(hit.snippet, [excluded]) for excluded in query.without):
        return f"what is excluded stands on {hit.path}"
    if not math.isfinite(hit.score) or (hit.distance is not None and not 0 <= hit.distance <= _FARTHEST):
        return f"score {hit.score}, distance {hit.distance}"
    edges = [edge for pair in hit.highlights for edge in pair]
    if edges != sorted(edges) or not all(0 <= start < end <= len(hit.snippet) for start, end in hit.highlights):
        return f"highlights {hit.highlights}"
    return ""


# Making queries


def _made(random: Random, demo: Demo) -> str:
    kind = random.random()
    if kind < 0.15:
        return f'"{random.choice(demo.runs)}"'
    if kind < 0.3:
        return "".join(map(chr, (_character(random) for _ in range(random.randint(0, 60)))))
    if kind < 0.35:
        return _long(random, demo)
    parts = [_part(random, demo) for _ in range(random.randint(1, 10))]
    return random.choice(("", " ", " ", " ", "  ")).join(parts)


def _part(random: Random, demo: Demo) -> str:
    kind = random.random()
    if kind < 0.4:
        return random.choice(_OPERATORS)
    word = random.choice(demo.words) if kind < 0.7 else random.choice(demo.runs)
    shape = random.choice(("{}", "{}", '"{}"', '-"{}"', "-{}", "“{}”", "«{}", '"{}', "{}*", "^{}", "{}:x", "({})"))
    return shape.format(random.choice((word, word.upper(), word.title(), word[: random.randint(0, len(word))])))


def _long(random: Random, demo: Demo) -> str:
    """Return a query of up to the length that the index takes."""
    unit = random.choice((*_OPERATORS, "a", " ", '"a" ', '-"b" ', "-word ", "漢", "é", random.choice(demo.texts)))
    return (unit * 4_000)[: random.choice((500, 1_000, MAX_QUERY_CHARACTERS))]


def _character(random: Random) -> int:
    """Return a code point of some plane; no half of a pair, which no request can hold."""
    limit = random.choice((0x20, 0x80, 0x250, 0x3000, 0xD800, 0x110000))
    point = random.randrange(limit)
    return point if not 0xD800 <= point <= 0xDFFF else 0xFFFD


def _options(random: Random) -> SearchOptions:
    mode = random.choice(tuple(Mode))
    return SearchOptions(
        n=random.choice((1, 3, 5, 50)),
        max_chunks_per_page=random.randint(1, 5),
        mode=mode,
        semantic_ratio=random.choice((None, *_RATIOS)) if mode is Mode.HYBRID else None,
        fusion=random.choice(tuple(Fusion)),
        filters=random.choice(_FILTERS),
        min_similarity=random.choice((None, None, None, 0.3)),
        diversity=random.choice((0.0, 0.0, 0.5, 1.0)),
        context=random.choice((0, 0, 3)),
        facets=random.random() < 0.3,
        explain=random.random() < 0.3,
    )
