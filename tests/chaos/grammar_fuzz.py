"""Texts that repeat pieces of mistune's and the wiki's grammar: a parser that looks back over all of them takes too long."""

from __future__ import annotations

from functools import cache
from heapq import nlargest
from pathlib import Path
from random import Random
from time import process_time

from otterwiki_semantic.content.chunking import ByteCounter
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.core.errors import LimitExceededError
from otterwiki_semantic.core.worker_process import WorkerProcess
from tests.chaos.fuzzing import Batch, Finding
from tests.support.chunks import read_page

SECONDS = 5.0
"""Of processor time: far more than any of these texts takes, unless its time grows with more than the square of its length."""
_LARGEST = 6_000
_KEPT = 10
_BLOCKS = (
    *("#", "# a", "## ", "===", "---", "\n===", "\n---", "***", "___", "> ", ">", "\n> ", ">! ", ">| ", "- ", "* "),
    *("+ ", "1. ", "10) ", "\n- ", "\n  - ", "\n\t- ", "- [ ] ", "```", "\n```\n", "~~~", "    ", "\n    ", "\n\t"),
    *("|", "|-", "| - |", ":-:", "\n|", "|\n", ":::", "::: ", "\n:::\n", "$$", "\n$$\n", "[a]: ", "[a]: b\n"),
    *('[a]: b "', "[a]: b (\n", "[^a]: ", "{{", "}}", "---\n", "<div>", "</div>", "<pre>", "<script>", "<!--", "-->"),
    *("<?", "?>", "<![CDATA[", "]]>", "<!A", "<a ", "<b x=", '<b x="'),
)
_INLINES = (
    *("*", "**", "***", "_", "__", "`", "``", "~~", "==", "$", "[", "]", "![", "](", "(", ")", "[[", "]]", "[[a|"),
    *("[^", "[^a]", "<", ">", "</", "<a", "<a@", "<a:b", "http://", "https://a", "www.", "@", "a@b", "&", "&amp;"),
    *("&#", "\\", "\\\\", "\\[", "\\\n", '"', "'", "!", ".", ":", ";", ",", "a", "b c", "é", "漢", "\N{OTTER}"),
)
_SPACES = (" ", "  ", " " * 40, "\t", "\n", "\n\n", "  \n", "\r\n", "\f", "\v", "\x00", "\u00a0", "\u2028", "\u3000", "\u200b")
_PIECES = (*_BLOCKS, *_INLINES, *_SPACES)
_PROFILE = Profile()


@cache
def _worker() -> WorkerProcess:
    return WorkerProcess()


def try_texts(_place: Path, name: str, count: int) -> Batch:
    """Make texts of a seed, and read each as a page."""
    random = Random(name)
    findings, timed = [], []
    for _ in range(count):
        text = _made(random)
        try:
            seconds = _worker().call(SECONDS, seconds_to_read, text)
        except LimitExceededError as error:
            seconds = SECONDS
            findings.append(Finding(repr(text), str(error)))
        timed.append((seconds, _shown(text)))
    slowest = nlargest(_KEPT, timed)
    return Batch(count, slowest[0][0], tuple(findings), tuple(slowest))


def seconds_to_read(text: str) -> float:
    """Return how much processor time it takes to parse, divide and analyse a page."""
    start = process_time()
    read_page("page", "blob", text.encode(), ByteCounter(), _PROFILE)
    return process_time() - start


def _made(random: Random) -> str:
    """Return up to three runs of a repeated unit, each of one to four pieces, with other pieces around them."""
    size = random.randrange(_LARGEST)
    runs = random.choice((1, 1, 1, 2, 3))
    parts = []
    for _ in range(runs):
        unit = "".join(random.choices(_PIECES, k=random.choice((1, 1, 2, 2, 3, 4))))
        parts += ["".join(random.choices(_PIECES, k=random.randrange(3))), unit * max(1, size // runs // len(unit))]
    return "".join((*parts, *random.choices(_PIECES, k=random.randrange(3))))


def _shown(text: str) -> str:
    return f"{text[:60]!r}…{text[-20:]!r} ({len(text):,} characters)"
