"""Texts that repeat a piece of Markdown, given to all that reads a text of others outside of a process with limits."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from otterwiki_semantic.content.analysis import indexed_text, name_key, sentence_ranges
from otterwiki_semantic.content.markdown import passage_markdown, truncate_markdown
from otterwiki_semantic.content.pages import find_links, find_name, prose
from otterwiki_semantic.content.pages.edits import append_after, saved_text, unified_diff
from otterwiki_semantic.search.answering.plain import clean, plain_text, visible_markdown
from otterwiki_semantic.search.answering.statements import StatementParser
from otterwiki_semantic.search.answering.units import read_unit
from otterwiki_semantic.web.pages.excerpts import excerpt, text_fragment
from tests.chaos.fuzzing import Batch, Finding

_SIZE = 100_000
_SECONDS = 0.25
"""Of processor time. Ordinary text takes 0.1 s at most."""
_PASSAGE = 20_000
"""Characters of a source of an answer; most have a tenth of it."""
_PIECES = (
    *("a ", "a. ", "A. ", " ", "\n", "- a\n", "- ", "``` ", "```\n", "~~~\n", "> ", ">\n", "> ```\n", "- ```\n", "["),
    *("[[", "[a](", "[a](b) ", "[[a]] ", "[a]: b\n", "<a ", "<s>", "<!-- ", "~~a ", "~~", "`", "`a ", "``a `", "**a "),
    *("*", "_", "# a\n", "#", "--- ", "---\n", "\\", "$$\n", "$$ a\n", "http://a ", "a@", "a.b", "a-", "1-", "1.", "("),
    *("((", ")", "!", "![a]", '"', "é", "中", "a:\n", "a:\n- b\n", "a:\n```\n", "\t", "    a\n", "x-", "=", "a_", "%"),
    *("\r\n", "[1] ", "[1", "。", "quokka ", "quokka\n", "- [ ] ", "1) a\n", "&amp;", "&", "<", ">", "|", "a | b\n"),
    *("| a | b |\n", "a | b\n--|--\n", "||"),
)
_READERS: dict[str, Callable[[str], object]] = {
    "prose": prose,
    "links": lambda text: find_links(text, "x", {"a", "b"}),
    "name": lambda text: find_name(prose(text), "quokka zebra", text),
    "passage": lambda text: passage_markdown(text, 1, 6),
    "passage in the middle": lambda text: passage_markdown(text, text.count("\n") // 2, text.count("\n") // 2 + 3),
    "beginning": lambda text: truncate_markdown(text, 3_000),
    "most": lambda text: truncate_markdown(text, len(text) * 9 // 10),
    "saved": saved_text,
    "appended": lambda text: append_after(text, 3, text),
    "changed": lambda text: unified_diff(text, f"{text}x", ("a", "b")),
    "words": indexed_text,
    "key": name_key,
    "ranges": sentence_ranges,
    "clean": clean,
    "plain": plain_text,
    "visible": visible_markdown,
    "unit": lambda text: read_unit(text[:_PASSAGE], "en"),
    "statements": lambda text: StatementParser(5).feed(text[:40_000]),
    "excerpt": lambda text: excerpt(text, 0, [(5, 8)]),
    "fragment": lambda text: text_fragment(text, 0, [(5, 8)]),
}


def try_texts(_place: Path, seed: str, count: int) -> Batch:
    """Try so many texts with all readers."""
    random = Random(seed)
    findings: list[Finding] = []
    slowest = 0.0
    for _ in range(count):
        pieces = "".join(random.sample(_PIECES, random.choice((1, 1, 2))))
        before, after = random.choice(("", "quokka zebra ", "a | b\n")), random.choice(("", "x", "x-\n", "\n```\n"))
        text = f"{before}{pieces * (_SIZE // len(pieces))}{after}"
        for name, read in _READERS.items():
            start = time.process_time()
            read(text)
            taken = time.process_time() - start
            slowest = max(slowest, taken)
            if taken > _SECONDS:
                findings.append(Finding(f"{before!r} + {pieces!r} * … + {after!r}", f"{name} takes {taken:.2f} s"))
    return Batch(count, slowest, tuple(findings))
