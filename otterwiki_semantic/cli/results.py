"""Search results in a terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

import click

from otterwiki_semantic.cli.common import NO_COMMIT, wiki_config
from otterwiki_semantic.core.humanize import count
from otterwiki_semantic.core.records import NO_URLS, Answer, Hit, PageUrls

CROP_WORDS = 50
_MAX_WIDTH, _INDENT = 100, "    "
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Enclose a match while lines are wrapped, because style codes would be counted."""


url_option = click.option("--url", envvar="OTTERWIKI_URL", help="URL of the wiki, to show page addresses. [env: OTTERWIKI_URL]")
"""The option that names the wiki's address."""


def urls_of(url: str | None) -> PageUrls:
    """Return page addresses below the wiki's; none without it."""
    if not url:
        return NO_URLS
    return PageUrls(f"{url.rstrip('/')}/", retains_case=bool(wiki_config().get("RETAIN_PAGE_NAME_CASE")))


def print_answer(answer: Answer) -> None:
    """Print the passages found, and notices on standard error."""
    for hit in answer.results:
        _print_hit(hit)
    for each in answer.corrections:
        click.echo(f"Also searched for {each.corrected}: no page has {each.typed}.", err=True)
    if answer.degraded:
        click.echo(answer.degraded, err=True)
    if answer.index.commit != answer.index.head:
        behind = count(answer.index.pending_pages, "page")
        how_far = f" ({answer.index.progress.describe()})" if answer.index.progress else ""
        click.echo(f"The index is behind by {behind}{how_far}. To wait for it: otterwiki-semantic index", err=True)
    elif not answer.results:
        click.echo("Nothing was found." if answer.index.head else NO_COMMIT, err=True)
    elif not answer.confident:
        click.echo("Nothing relevant was found; these are the nearest passages.", err=True)


def _print_hit(hit: Hit) -> None:
    click.secho(f"{hit.path}:{hit.start_line}", fg="green", nl=False)
    section = hit.breadcrumb if hit.kind else " > ".join(hit.section_path[1:])
    click.echo(f"  {_number(None if hit.distance is None else 1 - hit.distance)}  {section}")
    if hit.url:
        click.secho(f"{_INDENT}{hit.url}", fg="cyan")
    excerpt = hit.excerpt or hit.snippet[hit.prefix_length :]
    for part in (hit.context_before, _marked(excerpt, hit.excerpt_highlights or ()), hit.context_after):
        _print_wrapped(part or "")
    if hit.also_on:
        click.echo(f"{_INDENT}(nearly the same on {', '.join(hit.also_on)})")
    if hit.explain:
        _print_reasons(hit)
    click.echo()


def _print_reasons(hit: Hit) -> None:
    why = hit.explain
    assert why is not None
    both = (("meaning", why.semantic), ("words", why.keyword))
    sides = (f"{name} {_number(side.score)} (rank {side.rank or '-'})" for name, side in both)
    read = f", reranked {_number(why.rerank.score)} (rank {why.rerank.rank} before)" if why.rerank.rank else ""
    parts = (("page", why.page_credit), ("names", why.names), ("links", why.links), ("recency", why.recency))
    more = "".join(f" + {name} {points:.2f}" for name, points in parts if points or name == "page")
    click.echo(f"{_INDENT}{why.rule}: {', '.join(sides)}, fused {why.fused:.4g}{more}{read}")


def _marked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in ranges:
        parts += [text[at:start], _OPEN, text[start:end], _CLOSE]
        at = end
    return "".join((*parts, text[at:]))


def _print_wrapped(text: str) -> None:
    width = min(shutil.get_terminal_size().columns, _MAX_WIDTH)
    on, off = click.style("|", bold=True, underline=True).split("|")
    for line in text.splitlines():
        for wrapped in textwrap.wrap(line, max(width, 2 * len(_INDENT)), initial_indent=_INDENT, subsequent_indent=_INDENT):
            click.echo(wrapped.replace(_OPEN, on).replace(_CLOSE, off))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
