"""Pages from tidy to absurd, and what has to hold for the chunks of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import cycle
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings

from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.content.pages.page import read_page
from otterwiki_semantic.core.chunk_profiles import PROFILES, Profile
from otterwiki_semantic.core.records import Page
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.chaos.fuzzing import Batch, Finding, attempt
from tests.support.chunks import body, is_subsequence, new_text, page_words, shown_path
from tests.support.markdown_strategies import BLOCK_MARKUP, INLINE_MARKUP, PAGES, RAW

_DEMO = Path(__file__).parents[2] / "demo" / "pages"
_PATH = "folder/Some page"
_DEFAULT, *_OTHERS = PROFILES.values()
_ONLY_GENERATE = settings(
    database=None, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), print_blob=False
)
_FROM_STRATEGIES = 0.1
_LONGEST = 2_000
_LONGEST_WORD = 50
_LESS_TRIES = 300
_ODD = "\x00\x0b\x0c\x1c\x85\u2028\u00a0\u200b\u200d\u202e\ufeff\ufffd\u0301\u3000漢ก😀İß\r\t"
_FRONT = ("---\n", "title: ", "tags: [", "]\n", "category: ", '"', "'", "\\ud800", "&a ", "*a", "!!int ", "- ", ": ", "\n---\n")
_MARKS = (*BLOCK_MARKUP, *INLINE_MARKUP, *_FRONT, *_ODD)


@cache
def _model() -> BundledModel:
    return BundledModel(threads=1)


@cache
def _demo() -> list[bytes]:
    return [path.read_bytes() for path in sorted(_DEMO.rglob("*.md"))]


def try_pages(_place: Path, name: str, count: int) -> Batch:
    """Make pages of a seed and chunk each with the default profile, and with one of the others in turn."""
    random = Random(name)
    tidy = _from_strategies(max(1, round(count * _FROM_STRATEGIES)), random.getrandbits(32))
    seeds = [*tidy, *_demo()]
    sources = [*tidy, *(_made(random, seeds) for _ in range(count - len(tidy)))]
    findings, slowest = [], 0.0
    for source, other in zip(sources, cycle(_OTHERS), strict=False):
        for profile in (_DEFAULT, other):
            fault, seconds = attempt(partial(fault_of, source, profile))
            slowest = max(slowest, seconds)
            if fault:
                findings.append(Finding(repr(_reduced(source, profile)), f"{profile.name}: {fault}"))
    return Batch(len(sources), slowest, tuple(findings))


def fault_of(source: bytes, profile: Profile) -> str:
    """Say what is wrong with the page that is made of a file; empty if nothing is."""
    page, again = (read_page(_PATH, "blob", source, _model(), profile) for _ in range(2))
    return fault_of_page(page, source, profile) if again == page else "it is not the same page each time"


def fault_of_page(page: Page, source: bytes, profile: Profile) -> str:
    """Say what is wrong with the chunks of a page."""
    chunks = page.chunks
    text = source.decode("utf-8", errors="replace")
    found = [word for chunk in chunks for part in (shown_path(chunk), new_text(chunk)) for word in part.split()]
    wanted = [word for word in page_words(parse_markdown(text)) if len(word) < _LONGEST_WORD]
    if not is_subsequence(wanted, found):
        return "not every word stands in a chunk in order"
    if not all(body(chunk).strip() for chunk in chunks):
        return "a chunk is empty"
    largest = max(_model().count_tokens([chunk.text for chunk in chunks]), default=0)
    if largest > profile.window:
        return f"a chunk has {largest} word pieces"
    last = text.count("\n") + text.count("\r") + 1
    if not all(1 <= chunk.start_line <= chunk.end_line <= last for chunk in chunks):
        return "a chunk stands on lines that are not there"
    return _unstorable(page)


def _unstorable(page: Page) -> str:
    texts = [page.title, page.category or "", *page.tags, *page.links_to]
    for chunk in page.chunks:
        texts += (chunk.text, chunk.section, chunk.anchor, *chunk.section_path, *chunk.headings)
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            return f"SQLite cannot store {text!r}: {error}"
    return ""


# Making pages


def _from_strategies(count: int, number: int) -> list[bytes]:
    made: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(source=PAGES | RAW)
    def take(source: str) -> None:
        made.append(source.encode("utf-8", errors="replace"))

    take()
    return made[:count]


def _made(random: Random, seeds: list[bytes]) -> bytes:
    """Return a page: a real one changed a little, marks in a row, any text, or any bytes."""
    kind = random.random()
    if kind < 0.7:
        source = random.choice(seeds)
        for _ in range(random.randint(1, 6)):
            source = random.choice(_CHANGES)(random, source, seeds)
        return source[: _LONGEST if random.random() < 0.98 else 20 * _LONGEST]
    if kind < 0.9:
        marks = random.choices((*_MARKS, " ", "    "), k=random.randint(1, 200))
        return "".join(marks).encode()
    if kind < 0.95:
        limit = random.choice((0x80, 0x250, 0x3000, 0x110000))
        return "".join(chr(random.randrange(limit)) for _ in range(random.randint(0, 300))).encode(errors="replace")
    return random.randbytes(random.randint(0, 400))


def _place(random: Random, source: bytes) -> tuple[int, int]:
    start = random.randint(0, len(source))
    return start, min(len(source), start + random.choice((1, 3, 10, 40, 200)))


def _cut(random: Random, source: bytes, _: list[bytes]) -> bytes:
    start, end = _place(random, source)
    return source[:start] + source[end:]


def _repeat(random: Random, source: bytes, _: list[bytes]) -> bytes:
    start, end = _place(random, source)
    return source[:end] + source[start:end] * random.choice((1, 2, 5, 50)) + source[end:]


def _insert(random: Random, source: bytes, _: list[bytes]) -> bytes:
    start, _end = _place(random, source)
    mark: bytes = random.choice(_MARKS).encode()
    return source[:start] + mark * random.choice((1, 1, 1, 2, 30)) + source[start:]


def _splice(random: Random, source: bytes, seeds: list[bytes]) -> bytes:
    other = random.choice(seeds)
    return source[: _place(random, source)[0]] + other[_place(random, other)[0] :]


def _scramble(random: Random, source: bytes, _: list[bytes]) -> bytes:
    start, end = _place(random, source)
    return source[:start] + random.randbytes(end - start) + source[end:]


def _rearrange(random: Random, source: bytes, _: list[bytes]) -> bytes:
    lines = source.split(b"\n")
    random.shuffle(lines)
    mark: bytes = random.choice((b"\n", b"\r\n", b" ", b"\n\n", b"\r"))
    return mark.join(lines)


def _indent(random: Random, source: bytes, _: list[bytes]) -> bytes:
    mark: bytes = random.choice((b"> ", b"    ", b"- ", b"| ", b">| ", b"# ", b"\t"))
    lines = source.split(b"\n")
    return b"\n".join([mark + line if random.random() < 0.7 else line for line in lines])


_Change = Callable[[Random, bytes, list[bytes]], bytes]
_CHANGES: tuple[_Change, ...] = (_cut, _repeat, _insert, _insert, _splice, _scramble, _rearrange, _indent)


def _reduced(source: bytes, profile: Profile) -> bytes:
    """Return a smaller input that fails as well: without every part that can go."""
    size, tries = max(1, len(source) // 2), 0
    while size and tries < _LESS_TRIES:
        start = 0
        while start < len(source) and tries < _LESS_TRIES:
            less = source[:start] + source[start + size :]
            tries += 1
            if attempt(partial(fault_of, less, profile))[0]:
                source = less
            else:
                start += size
        size //= 2
    return source
