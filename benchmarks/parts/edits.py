"""How soon an edit is found: one section of a page changed in the editor, again and again, in a served wiki."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.support.client import Client
from benchmarks.support.corpus import page
from benchmarks.support.options import Options
from benchmarks.support.percentiles import p50, p95
from benchmarks.support.report import Figure, at_most, say
from benchmarks.support.serving import FLASK, GUNICORN, ServedWiki, Server, served
from otterwiki_semantic.content.chunking import Profile
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chunks import read_page

_EDITS = 40
_WARM_UP = 5
_SECTIONS = 12
_WORDS = 110
_PAGE = "an-edited-page"
_ELSEWHERE = 1_000_000
"""Pages from this number on are in no wiki that is measured: their sentences are new to it."""
_SENTENCE = re.compile(r"[A-Z][a-z, ]+\.")
_LOOK_SECONDS = 0.005
_REST_SECONDS = 0.2
_LONGEST_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Edit:
    """Seconds from the save's answer until its text was found, chunks that were embedded for it, and chunks that it changed."""

    seconds: float
    embedded: int
    changed: int


def measure(options: Options) -> list[Figure]:
    """Return how soon an edited section is found over HTTP, and whether more than its chunks were embedded, for each size."""
    cases = [(pages, GUNICORN) for pages in options.sizes] + [(options.small_pages, FLASK)]
    return [figure for pages, server in cases for figure in _measure(pages, server)]


def _measure(pages: int, server: Server) -> list[Figure]:
    with served(pages, server) as wiki:
        case = f"{wiki.status()['chunks']:,} chunks, {server.name}"
        say(f"{_WARM_UP + _EDITS} edits at {case}")
        edits = edit_sections(wiki, _EDITS)
    times = [1e3 * edit.seconds for edit in edits]
    embedded, changed = (sum(getattr(edit, name) for edit in edits) for name in ("embedded", "changed"))
    return [
        at_most(f"saved section found, p50, {case}", p50(times), "ms", 300, f"{len(times)} edits of a page of 12 sections"),
        at_most(f"saved section found, p95, {case}", p95(times), "ms", 1000, f"longest {max(times):.0f} ms"),
        at_most(f"chunks embedded for each one changed, {case}", embedded / changed, "", 1, f"{embedded} of {changed}"),
    ]


def edit_sections(wiki: ServedWiki, count: int) -> list[Edit]:
    """Change one section after another, each when the index is at rest; the first edits are not counted."""
    model = BundledModel()
    sections = [_text(number) for number in range(_SECTIONS)]
    edits: list[Edit] = []
    with wiki.client() as editor, wiki.client() as reader:
        editor.save(_PAGE, _source(sections))
        for number in range(_WARM_UP + count):
            before = _chunks(sections, model)
            sections[number % _SECTIONS] = _text(_SECTIONS + number)
            changed = len(_chunks(sections, model) - before)
            edits.append(_edit(editor, reader, sections, number % _SECTIONS, changed))
    return edits[_WARM_UP:]


def _edit(editor: Client, reader: Client, sections: Sequence[str], place: int, changed: int) -> Edit:
    """Save the page, and ask for the first sentence of the section at this place until a result has it."""
    embedded = _texts_embedded_at_rest(reader)
    sentence = sections[place].partition(".")[0]
    editor.save(_PAGE, _source(sections))
    seconds = seconds_until_found(reader, sentence)
    return Edit(seconds, _texts_embedded_at_rest(reader) - embedded, changed)


def seconds_until_found(reader: Client, text: str) -> float:
    """Return the seconds from now until a search for a text has a result that contains it."""
    start = time.perf_counter()
    while not any(text in result["snippet"] for result in reader.results(text)):
        assert time.perf_counter() - start < _LONGEST_SECONDS, f"not found: {text}"
        time.sleep(_LOOK_SECONDS)
    return time.perf_counter() - start


def _texts_embedded_at_rest(reader: Client) -> int:
    """Return the number of texts embedded so far, once the index has nothing more to do."""
    while True:
        status = reader.status()
        if status["status"] == status["chroma"]["state"] == "ready" and status["pending_pages"] == 0:
            time.sleep(_REST_SECONDS)
            return int(status["embedded_texts"])
        time.sleep(_LOOK_SECONDS)


def _text(number: int) -> str:
    """Return the text of a section, new to the wiki: sentences of one chunk's length."""
    sentences: list[str] = []
    for sentence in _SENTENCE.findall(page(_ELSEWHERE + number)[1]):
        sentences.append(sentence)
        if sum(each.count(" ") + 1 for each in sentences) >= _WORDS:
            break
    return " ".join(sentences)


def _source(sections: Sequence[str]) -> str:
    parts = (f"## Section {number}\n\n{text}" for number, text in enumerate(sections, 1))
    return "\n\n".join(["# An edited page", *parts])


def _chunks(sections: Sequence[str], model: BundledModel) -> set[str]:
    found = read_page(_PAGE, "", _source(sections).encode(), model, Profile())
    return {chunk.text for chunk in found.chunks}
