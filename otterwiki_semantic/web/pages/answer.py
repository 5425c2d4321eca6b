"""The answer above the results of the search page, complete or partly written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple
from urllib.parse import urljoin

from flask import request
from flask.typing import ResponseReturnValue
from markupsafe import Markup
from msgspec import structs

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import AnswerSentence, AskRequest, GroundedAnswer, Hit
from otterwiki_semantic.web.answer_stream import WaitingReader
from otterwiki_semantic.web.auth import session_asker
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, message_of, page_urls, pages, render_part, status_of
from otterwiki_semantic.web.pages.quotations import Quotation, is_numbered, item_parts, quotations, with_code
from otterwiki_semantic.web.pages.results import FILTERS, passage_url, trail
from otterwiki_semantic.web.pages.search import search, search_page

_BACKTICKS = re.compile("`+")
_SPECIAL = re.compile(r"[\\`*_\[\]<>]")
"""Characters with a meaning within a line of Markdown."""


class Note(NamedTuple):
    """A source of an answer; without URL if the wiki cannot show the page."""

    number: int
    name: str
    url: str | None


class Sentence(NamedTuple):
    """A sentence with its notes, and why its sources do not support it, if they do not."""

    text: str
    """The text; a list item as Markdown."""
    html: Markup
    """The text, with code as code."""
    notes: tuple[Note, ...]
    doubt: str | None


class Block(NamedTuple):
    """A paragraph, a list, numbered steps, or a block of code."""

    kind: str
    sentences: tuple[Sentence, ...]


@pages.post("/answer")
@guarded("READ", feature="answers")
def answer() -> ResponseReturnValue:
    """Return the search page with an answer; for its script (`part`) the answer alone, as far as it is written.

    The script gets an id, and polls for the answer so far (`writing`) until the id is null. When the reader has `left`, the
    answer is cancelled.
    """
    index = extension().index
    if "writing" in request.args:
        return _written(request.args["writing"])
    if "left" in request.args:
        with suppress(SemanticError):
            index.cancel_ask(request.args["left"])
        return "", 204
    try:
        asked = _question()
    except SemanticError:
        return search()  # shows the same error
    if "part" in request.args:
        try:
            return _written(index.ask(asked, page_urls()).id)
        except SemanticError as error:
            return {"id": None, "part": _rendered(None, message=message_of(error))}, status_of(error)
    try:
        reader = WaitingReader()
        part = _rendered(reader.whole_answer(index, index.ask(asked, page_urls())))
    except SemanticError as error:
        part = _rendered(None, message=message_of(error))
    return search_page(part)


def _question() -> AskRequest:
    filters = {name: request.args.getlist(name) if name == "tag" else request.args.get(name) for name in FILTERS}
    given = {"question": request.args.get("q"), **{name: value or None for name, value in filters.items()}}
    return structs.replace(parse_parameters(AskRequest, given), asker=session_asker())


def _written(id_: str) -> ResponseReturnValue:
    """Return the answer so far; its id is null when it is complete. If the index has lost it, return only the `message`."""
    try:
        found = extension().index.ask_progress(id_, None)
    except SemanticError as error:
        return {"message": f"The answer is incomplete: {error}"}, status_of(error)
    return {"id": None if found.done else id_, "part": _rendered(found.result, is_writing=not found.done)}


def _rendered(found: GroundedAnswer | None, message: str | None = None, *, is_writing: bool = False) -> str:
    """Return the answer so far as a part of the search page, with the reason if it is incomplete."""
    if found is None:
        return render_part("answer.html", message=message, is_writing=is_writing)
    if found.is_extractive:
        found = structs.replace(found, answer=_in_page_order(found))
    doubts = {each.text: each.reason for each in found.unsupported}
    numbered = {place: (number, found.sources[place]) for place, number in found.source_numbers.items()}
    written = [list(group) for _, group in groupby(found.answer, key=lambda each: (each.block, each.kind))]
    blocks = [Block(_kind(group[0], found), tuple(_sentence(each, numbered, doubts) for each in group)) for group in written]
    notes = [_note(number, hit) for number, hit in numbered.values()] if blocks else []
    return render_part(
        "answer.html",
        answer=found,
        blocks=blocks,
        quoted=list(_quoted(found, numbered)) if found.is_extractive else (),
        notes=notes,
        markdown=_markdown(blocks, notes),
        message=message or found.message,
        is_writing=is_writing,
    )


def _note(number: int, hit: Hit, sentence: str = "") -> Note:
    """Return the note for a source; its link leads to the sentence if the page has it verbatim, otherwise to the passage."""
    start = hit.snippet.find(sentence) if sentence and hit.best_sentence is None else -1
    linked = hit if start < 0 else structs.replace(hit, best_sentence=(start, start + len(sentence)))
    return Note(number, " › ".join(trail(hit)), passage_url(linked))


def _in_page_order(found: GroundedAnswer) -> tuple[AnswerSentence, ...]:
    """Return the quoted sentences grouped by section, the best section first, and in page order within a section."""
    hits = [found.sources[each.sources[0]] for each in found.answer]
    sections = list(map(_section, hits))
    places = [(sections.index(_section(hit)), hit.start_line, hit.best_sentence) for hit in hits]
    return tuple(found.answer[place] for place in sorted(range(len(places)), key=places.__getitem__))


def _quoted(found: GroundedAnswer, numbered: dict[int, tuple[int, Hit]]) -> Iterator[tuple[Note, list[Quotation]]]:
    """Yield each section that is quoted, with what is quoted from it."""
    for _, group in groupby(found.answer, key=lambda each: _section(found.sources[each.sources[0]])):
        section = list(group)
        yield _note(*numbered[section[0].sources[0]]), quotations((each, found.sources[each.sources[0]]) for each in section)


def _section(hit: Hit) -> tuple[str, str]:
    return hit.path, hit.breadcrumb


def _kind(first: AnswerSentence, found: GroundedAnswer) -> str:
    is_step = first.kind == "item" and any(is_numbered(found.sources[place]) for place in first.sources)
    return "step" if is_step else first.kind


def _sentence(sentence: AnswerSentence, numbered: dict[int, tuple[int, Hit]], doubts: dict[str, str]) -> Sentence:
    doubt = None if sentence.supported else doubts.get(sentence.text, "its sources do not say so")
    notes = tuple(_note(*numbered[place], sentence.text) for place in sentence.sources)
    sources = "\n".join(numbered[place][1].markdown or "" for place in sentence.sources)
    text = sentence.text
    if sentence.kind == "item" and sentence.sources:
        parts = item_parts(text, numbered[sentence.sources[0]][1])
        text = "  \n   ".join(_code_span(part) if is_code else part for part, is_code in parts)
    return Sentence(text, with_code(sentence.text, sources), notes, doubt)


def _code_span(line: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(line)), default=0)
    mark, room = "`" * (longest + 1), " " if longest else ""
    return f"{mark}{room}{line}{room}{mark}"


def _markdown(blocks: list[Block], notes: list[Note]) -> str:
    """Return an answer for the clipboard, with its sources as links."""

    def written(sentence: Sentence) -> str:
        marks = "".join(f"[{note.number}]" for note in sentence.notes)
        return f"{sentence.text} {marks}".rstrip() + (" (not confirmed by its source)" if sentence.doubt else "")

    texts = []
    for block in blocks:
        if block.kind == "code":
            texts += [f"```\n{sentence.text}\n```" for sentence in block.sentences]
        elif block.kind in {"item", "step"}:
            marked = enumerate(map(written, block.sentences), 1)
            texts.append("\n".join(f"{at}. {text}" if block.kind == "step" else f"- {text}" for at, text in marked))
        else:
            texts.append(" ".join(map(written, block.sentences)))
    links = []
    for note in notes:
        name = _SPECIAL.sub(r"\\\g<0>", note.name)
        target = urljoin(request.host_url, (note.url or "").replace("(", "%28").replace(")", "%29"))
        links.append(f"[{note.number}] " + (f"[{name}]({target})" if note.url else name))
    return "\n\n".join(filter(None, [*texts, "\n".join(links)]))
