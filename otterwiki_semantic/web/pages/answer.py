"""The answer above the results of the search page: whole, or as far as it is written."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from flask import render_template, request
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.parameters import parse_parameters
from otterwiki_semantic.core.records import AnswerSentence, AskRequest, GroundedAnswer, Hit
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.auth import asker
from otterwiki_semantic.web.pages.layout import page_urls, status_of
from otterwiki_semantic.web.pages.results import FILTERS, passage_url, trail
from otterwiki_semantic.web.waiting import WaitingReader

_TEMPLATE = "semantic_search/answer.html"
_SPECIAL = re.compile(r"[\\`*_\[\]<>]")
"""What has a meaning within a line of Markdown."""


@dataclass(frozen=True, slots=True)
class Note:
    """A source of an answer."""

    number: int
    """From 1."""
    name: str
    url: str | None
    """The passage in the wiki; None if it cannot show the page."""


@dataclass(frozen=True, slots=True)
class SentenceView:
    """A sentence, the notes behind it, and why its sources do not support it, if they do not."""

    text: str
    notes: tuple[Note, ...]
    doubt: str | None


@dataclass(frozen=True, slots=True)
class BlockView:
    """A paragraph, a list, or a block of code."""

    kind: str
    sentences: tuple[SentenceView, ...]


@dataclass(frozen=True, slots=True)
class AnswerView:
    """What the search page shows of an answer."""

    blocks: tuple[BlockView, ...]
    notes: tuple[Note, ...]
    """The sources that its sentences name."""
    markdown: str
    """The answer for the clipboard, with its sources as links."""


def asked_question() -> AskRequest:
    """Return the question of the search in the current URL, and who asks it. Errors: `ParameterError`."""
    filters = {name: request.args.getlist(name) if name == "tag" else request.args.get(name) for name in FILTERS}
    given = {"question": request.args.get("q"), **{name: value or None for name, value in filters.items()}}
    return structs.replace(parse_parameters(AskRequest, given), asker=asker(None))


def answer_part(service: IndexService, asked: AskRequest) -> str:
    """Return the answer to a question as a part of the search page, or why there is none."""
    try:
        reader = WaitingReader()
        return _rendered(reader.whole_answer(service, service.ask(asked, page_urls())))
    except SemanticError as error:
        return _rendered(None, message=str(error))


def begun_answer(service: IndexService, asked: AskRequest) -> ResponseReturnValue:
    """Begin to write an answer for the script of the search page; return its id, which is null if there is none, and its part.

    The script fetches what there is of it (`written_answer`) until the id is null: no request waits for a model.
    """
    try:
        return written_answer(service, service.ask(asked, page_urls()).id)
    except SemanticError as error:
        return {"id": None, "part": _rendered(None, message=str(error))}, status_of(error)


def written_answer(service: IndexService, id_: str) -> ResponseReturnValue:
    """Return what there is of an answer; its id is null when it is whole. If the index has lost it, only the `message`."""
    try:
        found = service.ask_progress(id_, None)
    except SemanticError as error:
        return {"message": f"The rest did not come: {error}"}, status_of(error)
    return {"id": None if found.done else id_, "part": _rendered(found.result, is_writing=not found.done)}


def left_answer(service: IndexService, id_: str) -> ResponseReturnValue:
    """Stop writing an answer whose reader has left."""
    with suppress(SemanticError):
        service.cancel_ask(id_)
    return "", 204


def _rendered(answer: GroundedAnswer | None, message: str | None = None, *, is_writing: bool = False) -> str:
    """Return what there is of an answer as a part of the search page, with why there is no more."""
    values = {"answer": answer, "view": answer and _view(answer), "message": message or (answer and answer.message)}
    return render_template(_TEMPLATE, **values, is_writing=is_writing)


def _view(answer: GroundedAnswer) -> AnswerView:
    doubts = {each.text: each.reason for each in answer.unsupported}
    numbered = {place: (number, answer.sources[place]) for place, number in answer.source_numbers.items()}
    blocks = tuple(
        BlockView(kind, tuple(_sentence(each, numbered, doubts) for each in sentences))
        for (_, kind), sentences in groupby(answer.answer, key=lambda each: (each.block, each.kind))
    )
    used = tuple(_note(number, hit) for number, hit in numbered.values()) if blocks else ()
    return AnswerView(blocks, used, _markdown(blocks, used))


def _note(number: int, hit: Hit, sentence: str = "") -> Note:
    """Return the note for a source; its link leads to the sentence if that stands there word for word, else to the passage."""
    start = hit.snippet.find(sentence) if sentence and hit.best_sentence is None else -1
    linked = hit if start < 0 else structs.replace(hit, best_sentence=(start, start + len(sentence)))
    return Note(number, " › ".join((hit.title, *trail(hit))), passage_url(linked))


def _sentence(sentence: AnswerSentence, numbered: dict[int, tuple[int, Hit]], doubts: dict[str, str]) -> SentenceView:
    doubt = None if sentence.supported else doubts.get(sentence.text, "its sources do not say so")
    notes = tuple(_note(*numbered[place], sentence.text) for place in sentence.sources)
    return SentenceView(sentence.text, notes, doubt)


def _markdown(blocks: tuple[BlockView, ...], notes: tuple[Note, ...]) -> str:
    """Return an answer as Markdown."""

    def written(sentence: SentenceView) -> str:
        marks = "".join(f"[{note.number}]" for note in sentence.notes)
        return f"{sentence.text} {marks}".rstrip() + (" (not confirmed by its source)" if sentence.doubt else "")

    texts = []
    for block in blocks:
        if block.kind == "code":
            texts += [f"```\n{sentence.text}\n```" for sentence in block.sentences]
        elif block.kind == "item":
            texts.append("\n".join(f"- {written(sentence)}" for sentence in block.sentences))
        else:
            texts.append(" ".join(map(written, block.sentences)))
    texts.append("\n".join(f"[{note.number}] {_link(note)}" for note in notes))
    return "\n\n".join(filter(None, texts))


def _link(note: Note) -> str:
    """Return a source as a link in Markdown, whatever its page is called; only its name if the wiki cannot show it."""
    name = _SPECIAL.sub(r"\\\g<0>", note.name)
    if not note.url:
        return name
    target = note.url.replace("(", "%28").replace(")", "%29")
    return f"[{name}]({request.host_url.rstrip('/')}{target})"
