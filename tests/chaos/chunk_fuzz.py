"""Pages of the demo wiki, made absurd, and what has to hold for the chunks of each.

`tests/integration/content/test_chunker.py` tries pages that Hypothesis makes.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import cycle
from pathlib import Path
from random import Random

from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.chunk_profiles import PROFILES, Profile
from otterwiki_semantic.core.records import Page
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.chaos.fuzzing import Batch, Finding, attempt
from tests.support.chunks import body, is_subsequence, new_text, page_words, read_page, shown_path
from tests.support.markdown_strategies import BLOCK_MARKUP, INLINE_MARKUP

_DEMO = Path(__file__).parents[2] / "demo" / "pages"
_PATH = "folder/Some page"
_DEFAULT, *_OTHERS = PROFILES.values()
_LONGEST = 2_000
_LONGEST_WORD = 50
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
    findings, slowest = [], 0.0
    for source, other in zip((_made(random) for _ in range(count)), cycle(_OTHERS), strict=False):
        for profile in (_DEFAULT, other):
            fault, seconds = attempt(partial(fault_of, source, profile))
            slowest = max(slowest, seconds)
            if fault:
                findings.append(Finding(repr(source), f"{profile.name}: {fault}"))
    return Batch(count, slowest, tuple(findings))


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


def _made(random: Random) -> bytes:
    """Return a page: a real one changed a little, marks in a row, any text, or any bytes."""
    kind = random.random()
    if kind < 0.7:
        source = random.choice(_demo())
        for _ in range(random.randint(1, 6)):
            source = _changed(random, source)
        return source[: _LONGEST if random.random() < 0.98 else 20 * _LONGEST]
    if kind < 0.9:
        marks = random.choices((*_MARKS, " ", "    "), k=random.randint(1, 200))
        return "".join(marks).encode()
    if kind < 0.95:
        limit = random.choice((0x80, 0x250, 0x3000, 0x110000))
        return "".join(chr(random.randrange(limit)) for _ in range(random.randint(0, 300))).encode(errors="replace")
    return random.randbytes(random.randint(0, 400))


def _changed(random: Random, source: bytes) -> bytes:
    """Return a page of which a place is cut, repeated, scrambled or marked, or all lines are moved or indented."""
    start = random.randint(0, len(source))
    end = min(len(source), start + random.choice((1, 3, 10, 40, 200)))
    place, lines = source[start:end], source.split(b"\n")
    match random.choice(("cut", "repeat", "scramble", "insert", "insert", "splice", "rearrange", "indent")):
        case "cut":
            place = b""
        case "repeat":
            place *= random.choice((2, 3, 6, 51))
        case "scramble":
            place = random.randbytes(len(place))
        case "insert":
            place = random.choice(_MARKS).encode() * random.choice((1, 1, 1, 2, 30)) + place
        case "splice":
            other = random.choice(_demo())
            return source[:start] + other[random.randint(0, len(other)) :]
        case "rearrange":
            return random.choice((b"\n", b"\r\n", b" ", b"\n\n", b"\r")).join(random.sample(lines, len(lines)))
        case "indent":
            mark = random.choice((b"> ", b"    ", b"- ", b"| ", b">| ", b"# ", b"\t"))
            return b"\n".join([mark + line if random.random() < 0.7 else line for line in lines])
    return source[:start] + place + source[end:]
