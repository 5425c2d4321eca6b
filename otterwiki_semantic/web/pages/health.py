"""The page on the wiki's health: the findings by kind, and a button that dismisses one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Blueprint, flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameters import parse_parameters
from otterwiki_semantic.core.records import DismissalRequest, Finding, FindingCount, FindingKind, HealthReport, HealthRequest
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.pages.layout import guarded, keep_private, linked_pages, new_page, page_urls, render_page, status_of

HEALTH = "/-/semantic-search/health"
_FEW, _ALL = 10, 500


@dataclass(frozen=True, slots=True)
class Section:
    """The findings of a kind that are shown."""

    count: FindingCount
    findings: tuple[Finding, ...]


def make_health_pages(service: IndexService) -> Blueprint:
    """Return the page and its form; the wiki's CSRF protection applies to them."""
    views = _Views(service)
    pages = Blueprint("semantic_health", "otterwiki_semantic.web", url_prefix=HEALTH, template_folder="templates")
    pages.add_url_rule("", "health", guarded("READ", views.health))
    pages.add_url_rule("/dismiss", "dismiss", guarded("WRITE", views.dismiss), methods=["GET", "POST"])
    pages.after_request(keep_private)
    return pages


class _Views:
    def __init__(self, service: IndexService) -> None:
        self._service = service

    def health(self) -> ResponseReturnValue:
        values, status = self._values()
        return render_page("semantic_search/health.html", title="Health of the wiki", **values), status

    def dismiss(self) -> ResponseReturnValue:
        """Dismiss a finding, or restore it; a GET, which comes from the login page, redirects to the report."""
        shown = {name: request.form[name] for name in ("kind", "dismissed") if request.form.get(name)}
        if request.method == "POST":
            try:
                values = {"findings": request.form.getlist("finding"), "restore": request.form.get("restore")}
                asked = parse_parameters(DismissalRequest, values)
                self._service.dismiss(structs.replace(asked, shows_queries=has_permission("ADMIN")))
            except SemanticError as error:
                flash(str(error), "alert-danger")
        section = request.form.get("section")
        anchor = section if section in set(FindingKind) else None
        return redirect(url_for("semantic_health.health", **shown, _anchor=anchor))  # type: ignore[arg-type]

    def _values(self) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {
            "kind": request.args.get("kind", ""),
            "shows_dismissed": request.args.get("dismissed", ""),
            "may_write": has_permission("WRITE"),
            "new_page": new_page,
            "report": None,
            "problem": None,
        }
        try:
            asked = parse_parameters(HealthRequest, {name: request.args.get(name) or None for name in ("kind", "dismissed")})
            limit = _ALL if asked.kind else _FEW
            asked = structs.replace(asked, limit=limit, linked=linked_pages(), shows_queries=has_permission("ADMIN"))
            report = self._service.health(asked, page_urls())
        except SemanticError as error:
            return {**values, "problem": problem(error)}, status_of(error)
        values["shows_dismissed"] = asked.dismissed
        return {**values, "report": report, "sections": sections(report), "few": limit}, 200


def sections(report: HealthReport) -> list[Section]:
    """Return the findings of a report by kind."""
    return [Section(count, tuple(each for each in report.findings if each.kind is count.kind)) for count in report.counts]
