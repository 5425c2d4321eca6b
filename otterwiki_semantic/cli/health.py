"""The command `health`: findings about the wiki, for people and for CI."""

from __future__ import annotations

import time
from typing import Any

import click
from msgspec import structs

from otterwiki_semantic.cli.common import NO_COMMIT, IndexPlace, index_options, indexed, parameter_options, print_json
from otterwiki_semantic.core.errors import IndexUnavailableError
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import Finding, FindingKind, HealthReport, HealthRequest, HealthState

_POLL_SECONDS = 0.2
_HOME_PAGES = ("Home", "README", "index")
"""Pages that readers find without a link, in a wiki or in another repository."""


@click.command("health")
@index_options
@parameter_options(HealthRequest)
@click.option("--linked", multiple=True, metavar="PAGE", help="A page that needs no link, such as one of the wiki's menu.")
def health_command(place: IndexPlace, linked: tuple[str, ...], *, as_json: bool, **values: Any) -> None:
    """Find problems for readers of the wiki, such as links to missing pages.

    The exit status is 1 if there are open findings.
    """
    request = structs.replace(parse_parameters(HealthRequest, values), linked=(*_HOME_PAGES, *linked), shows_queries=True)
    with place.open() as index:
        status = indexed(index)
        if status.index.head is None:
            click.echo(NO_COMMIT, err=True)
            return
        if status.is_outdated:
            raise IndexUnavailableError("the index is of other settings or of another version; try: otterwiki-semantic reindex")
        while not (report := index.health(request)).is_current:
            if report.message:
                raise IndexUnavailableError(report.message)
            time.sleep(_POLL_SECONDS)
    if as_json:
        print_json(report)
    else:
        _print(report)
    if report.open:
        raise SystemExit(1)


def _print(report: HealthReport) -> None:
    for finding in report.findings:
        mark = " (dismissed)" if finding.is_dismissed else ""
        click.secho(f"{finding.kind} {finding.id}{mark}", fg="yellow", nl=False)
        click.echo(f"  {_summary(finding)}")
        for place in (*finding.pages, *finding.neighbours) if finding.kind is not FindingKind.ORPHAN else ():
            anchor, excerpt = place.anchor and f"#{place.anchor}", place.excerpt and f": {place.excerpt}"
            click.echo(f"    {place.path}{anchor}{excerpt}")
        if finding.total_pages > len(finding.pages):
            click.echo(f"    and {finding.total_pages - len(finding.pages)} more")
    for count in report.counts:
        if count.open or count.dismissed:
            click.echo(f"{count.kind}: {count.open}" + (f", {count.dismissed} dismissed" if count.dismissed else ""), err=True)
    if report.state is HealthState.READY and not report.open:
        click.echo("No findings." if not any(count.dismissed for count in report.counts) else "No open findings.", err=True)


def _summary(finding: Finding) -> str:
    match finding.kind:
        case FindingKind.DUPLICATE:
            return f"{finding.passages} nearly equal on {finding.total_pages} pages"
        case FindingKind.BROKEN_LINK:
            return f"no page {finding.missing!r}" + (f"; perhaps {finding.target.path!r}" if finding.target else "")
        case FindingKind.MENTION:
            return f"no link to {finding.target.path if finding.target else ''}"
        case FindingKind.STALE:
            return f"unchanged since {(finding.pages[0].updated or '')[:10]}, unlike the pages next to it"
        case FindingKind.UNANSWERED:
            answered = f"; answered now by {finding.answered_by.path}" if finding.answered_by else ""
            return f"{', '.join(map(repr, finding.queries))} ({finding.times} times){answered}"
    return finding.pages[0].path
