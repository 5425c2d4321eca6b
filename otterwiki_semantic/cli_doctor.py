"""``otterwiki-semantic doctor``: what is wrong here, and what to do."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from otterwiki_semantic import __version__
from otterwiki_semantic.cli_index import index_options, wiki_config
from otterwiki_semantic.doctor.case import make_case
from otterwiki_semantic.doctor.examination import examine
from otterwiki_semantic.doctor.finding import Finding, Level
from otterwiki_semantic.errors import ConfigError

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
    found = examine(make_case(os.environ, config, error, repository, data_dir, url))
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
        for line in _lines(finding.cure):
            click.echo(line)
    count = levels.count(Level.PROBLEM)
    click.echo(f"\n{count or 'no'} problem{'' if count == 1 else 's'}")
    return levels


def _lines(cure: str) -> Iterator[str]:
    if cure:
        yield f"{'':{_WIDTH}}  to do: {cure}"


def _print_json(found: list[Finding]) -> list[Level]:
    levels = [finding.level for finding in found]
    body = {"version": __version__, "problems": levels.count(Level.PROBLEM), "findings": [asdict(each) for each in found]}
    click.echo(json.dumps(body, indent=2))
    return levels
