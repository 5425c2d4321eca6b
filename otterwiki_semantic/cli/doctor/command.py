"""``otterwiki-semantic doctor``: find problems without changing anything."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import click

from otterwiki_semantic import __version__
from otterwiki_semantic.cli.common import IndexPlace, index_options, wiki_config
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, Level, make_context, problem
from otterwiki_semantic.cli.doctor.environment import check_installation, check_packages, check_settings
from otterwiki_semantic.cli.doctor.files import check_data_directory, check_repository, check_resources
from otterwiki_semantic.cli.doctor.index import check_index
from otterwiki_semantic.cli.doctor.services import check_model, check_vector_store, check_wiki
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.installation import pip_install

_COLOURS = {Level.OK: "green", Level.NOTE: "cyan", Level.PROBLEM: "red"}
_WIDTH = max(map(len, Level))


@click.command("doctor")
@index_options
@click.option(
    "--url", envvar="OTTERWIKI_URL", help="URL of the running wiki, to check whether it answers. [env: OTTERWIKI_URL]"
)
def doctor_command(place: IndexPlace, url: str | None, *, as_json: bool) -> None:
    """Check everything that search needs, and say how to fix what is wrong. Changes nothing.

    Run it as the wiki's user, in the wiki's environment. The exit status is 1 if there is a problem.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path may have characters that the terminal cannot show
    config, error = _read_config()
    findings = []
    for finding in run_checks(make_context(os.environ, config, error, place.repository, place.data_dir, url)):
        findings.append(finding)
        if not as_json:
            _print(finding)
    count = [each.level for each in findings].count(Level.PROBLEM)
    if as_json:
        body = {"version": __version__, "problems": count, "findings": [asdict(each) for each in findings]}
        click.echo(json.dumps(body, indent=2))
    else:
        click.echo(f"\n{count or 'no'} problem{'' if count == 1 else 's'}")
    sys.exit(1 if count else 0)


def _read_config() -> tuple[Mapping[str, Any], str | None]:
    try:
        return wiki_config(), None
    except ConfigError as error:
        return {}, str(error)


def _print(finding: Finding) -> None:
    click.secho(f"{finding.level:<{_WIDTH}}", fg=_COLOURS[finding.level], nl=False)
    click.echo(f"  {finding.what} — {finding.detail}")
    if finding.hint:
        click.echo(f"{'':{_WIDTH}}  hint: {finding.hint}")


_CHECKS: tuple[tuple[str, Callable[[DoctorContext], Iterable[Finding]]], ...] = (
    ("installation", check_installation),
    ("packages", check_packages),
    ("settings", check_settings),
    ("repository", check_repository),
    ("data directory", check_data_directory),
    ("resources", check_resources),
    ("model", check_model),
    ("ChromaDB", check_vector_store),
    ("index", check_index),
    ("wiki", check_wiki),
)
_MAX_TEXT = 600


def run_checks(context: DoctorContext) -> Iterator[Finding]:
    """Run every check and yield its findings, without secrets."""
    for what, check in _CHECKS:
        for finding in _guarded(what, check, context):
            yield replace(finding, detail=_shown(finding.detail, context), hint=_shown(finding.hint, context))


def _guarded(what: str, check: Callable[[DoctorContext], Iterable[Finding]], context: DoctorContext) -> Iterator[Finding]:
    try:
        yield from check(context)
    except ModuleNotFoundError as error:
        hint = f"install the package again, with its dependencies: {pip_install(reinstall=True)}"
        yield problem(what, f"the Python package {error.name} is missing", hint)
    except Exception as error:  # noqa: BLE001 - anything may be broken here
        hint = "see whether another problem explains it; if none does, report a bug with this line"
        yield problem(what, f"cannot check this: {type(error).__name__}: {error}", hint)


def _shown(text: str, context: DoctorContext) -> str:
    """Return a text as one line without secrets and control characters."""
    for secret in context.secrets:
        text = text.replace(secret, "(secret)")
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= _MAX_TEXT else f"{line[:_MAX_TEXT]}…"
