"""The command `ask`: an answer whose sentences cite their sources."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import click

from otterwiki_semantic.cli.common import IndexPlace, index_options, parameter_options, print_json
from otterwiki_semantic.cli.results import url_option, urls_of
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import AnswerSentence, AskProgress, AskRequest, GroundedAnswer
from otterwiki_semantic.daemon import progress_of


@click.command("ask")
@index_options
@url_option
@parameter_options(AskRequest, without=("question", "history", "stream"))
@click.argument("question", nargs=-1, required=True)
def ask_command(place: IndexPlace, url: str | None, question: tuple[str, ...], *, as_json: bool, **values: Any) -> None:
    """Answer QUESTION from the pages, citing a source for each sentence.

    SEMANTIC_ANSWERS sets what writes the answer; `extractive` needs no model. The exit status is 1 if there is no answer.
    """
    request = parse_parameters(AskRequest, {**values, "question": " ".join(question)})
    with place.open() as index, closing(progress_of(index, index.ask(request, urls_of(url)))) as parts:
        answer = _followed(parts, is_printed=not as_json)
    if as_json:
        print_json(answer)
    else:
        _print_rest(answer)
    if not answer.answer:
        raise SystemExit(1)


def _followed(parts: Iterable[AskProgress], *, is_printed: bool) -> GroundedAnswer:
    before = None
    numbers: dict[int, int] = {}
    for progress in parts:
        for sentence in progress.answer if is_printed else ():
            named = [numbers.setdefault(place, len(numbers) + 1) for place in sentence.sources]
            click.echo(_separator(before, sentence) + _shown(sentence, named), nl=False)
            before = sentence
    assert progress.result is not None
    return progress.result


def _separator(before: AnswerSentence | None, sentence: AnswerSentence) -> str:
    if before is None:
        return ""
    is_same = before.block == sentence.block
    if is_same and sentence.kind == "sentence":
        return " "
    return "\n" if is_same else "\n\n"


def _shown(sentence: AnswerSentence, numbers: Iterable[int]) -> str:
    notes = "".join(f" [{number}]" for number in numbers)
    doubt = "" if sentence.supported else click.style(" (not confirmed)", fg="yellow")
    text = {"item": f"- {sentence.text}", "code": f"{sentence.text}\n"}.get(sentence.kind, sentence.text)
    return f"{text}{notes}{doubt}"


def _print_rest(answer: GroundedAnswer) -> None:
    if answer.answer:
        click.echo("\n")
    for message in filter(None, (answer.message, answer.degraded)):
        click.echo(message, err=True)
    if answer.rewrites:
        click.echo(f"Searched for: {' · '.join(answer.rewrites)}")
    for conflict in answer.conflicts:
        click.echo(f"The sources differ: {conflict.text}.")
    if answer.sources and not answer.answer:
        click.echo("Nearest passages:")
    for place, number in answer.source_numbers.items():
        hit = answer.sources[place]
        click.secho(f"[{number}] {hit.path}:{hit.markdown_start_line or hit.start_line}", fg="green", nl=False)
        click.echo(f"  {hit.breadcrumb}" + (f"\n    {hit.url}" if hit.url else ""))
    for each in answer.unsupported:
        click.echo(f"not confirmed: {each.text} ({each.reason})", err=True)
