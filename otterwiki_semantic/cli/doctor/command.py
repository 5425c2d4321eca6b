"""``otterwiki-semantic doctor``: what is wrong here, and what to do."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.common import index_options, wiki_config
from otterwiki_semantic.cli.doctor.checks.chroma import check_vector_store
from otterwiki_semantic.cli.doctor.checks.data_directory import check_data_directory
from otterwiki_semantic.cli.doctor.checks.index import check_index
from otterwiki_semantic.cli.doctor.checks.installation import check_installation
from otterwiki_semantic.cli.doctor.checks.model import check_model
from otterwiki_semantic.cli.doctor.checks.packages import check_packages
from otterwiki_semantic.cli.doctor.checks.repository import check_repository
from otterwiki_semantic.cli.doctor.checks.resources import check_room
from otterwiki_semantic.cli.doctor.checks.settings import check_settings
from otterwiki_semantic.cli.doctor.checks.wiki import check_wiki
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, Level, make_context, problem
from otterwiki_semantic.core.errors import ConfigError

_COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.PROBLEM: "red"}
_WIDTH = max(map(len, Level))


@click.command("doctor")
@index_options
@click.option(
    "--url", envvar="OTTERWIKI_URL", help="Address of the running wiki, to see whether it answers. [env: OTTERWIKI_URL]"
)
def doctor_command(repository: Path | None, data_dir: Path | None, url: str | None, *, as_json: bool) -> None:
    """Look at everything that search needs, say what is wrong and what to do. Nothing is changed.

    Run it as the user that the wiki runs as, with the wiki's environment. The exit status is 1 if there is a problem.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may have what the terminal has not
    config, error = _read_config()
    found = examine(make_context(os.environ, config, error, repository, data_dir, url))
    levels = _print_json(list(found)) if as_json else _print(found)
    sys.exit(1 if Level.PROBLEM in levels else 0)


def _read_config() -> tuple[Mapping[str, Any], str | None]:
    try:
        return wiki_config(), None
    except ConfigError as error:
        return {}, str(error)


def _print(found: Iterable[Finding]) -> list[Level]:
    """Print each finding as soon as it is there, then how many problems there are."""
    levels = []
    for finding in found:
        levels.append(finding.level)
        click.secho(f"{finding.level:<{_WIDTH}}", fg=_COLOURS[finding.level], nl=False)
        click.echo(f"  {finding.what} — {finding.detail}")
        for line in _lines(finding.hint):
            click.echo(line)
    count = levels.count(Level.PROBLEM)
    click.echo(f"\n{count or 'no'} problem{'' if count == 1 else 's'}")
    return levels


def _lines(hint: str) -> Iterator[str]:
    if hint:
        yield f"{'':{_WIDTH}}  to do: {hint}"


def _print_json(found: list[Finding]) -> list[Level]:
    levels = [finding.level for finding in found]
    body = {"version": __version__, "problems": levels.count(Level.PROBLEM), "findings": [asdict(each) for each in found]}
    click.echo(json.dumps(body, indent=2))
    return levels


_CHECKS: tuple[tuple[str, Callable[[DoctorContext], Iterable[Finding]]], ...] = (
    ("installation", check_installation),
    ("packages", check_packages),
    ("settings", check_settings),
    ("repository", check_repository),
    ("data directory", check_data_directory),
    ("room", check_room),
    ("model", check_model),
    ("ChromaDB", check_vector_store),
    ("index", check_index),
    ("wiki", check_wiki),
)
_LONGEST_TEXT = 600


def examine(case: DoctorContext) -> Iterator[Finding]:
    """Give what each check finds, as it is found."""
    for what, check in _CHECKS:
        for finding in _guarded(what, check, case):
            yield replace(finding, detail=_shown(finding.detail, case), hint=_shown(finding.hint, case))


def _guarded(what: str, check: Callable[[DoctorContext], Iterable[Finding]], case: DoctorContext) -> Iterator[Finding]:
    """Give what a check finds, up to where it fails."""
    try:
        yield from check(case)
    except ModuleNotFoundError as error:
        hint = 'install the package again, with what it needs: pip install --force-reinstall "otterwiki-semantic"'
        yield problem(what, f"the Python package {error.name} is missing", hint)
    except Exception as error:  # noqa: BLE001 - whatever is broken here is what was asked for
        hint = "see whether another problem explains it; if none does, report it with this line"
        yield problem(what, f"this could not be checked: {type(error).__name__}: {error}", hint)


def _shown(text: str, case: DoctorContext) -> str:
    """Give a text as one line that can be shown: without secrets, and without characters that a terminal would obey."""
    for secret in case.secrets:
        text = text.replace(secret, "(secret)")
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
