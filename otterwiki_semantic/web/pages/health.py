"""The page on the wiki's health: the findings by kind, and a button that dismisses one."""

from __future__ import annotations

from flask import Blueprint, flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import DismissalRequest, FindingKind, HealthRequest
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, keep_private, linked_pages, page_urls, render_page, status_of

_FEW, _ALL = 10, 500

pages = Blueprint("semantic_health", __name__, url_prefix="/-/semantic-search/health")
pages.after_request(keep_private)


@pages.get("")
@guarded("READ", feature="health")
def health() -> ResponseReturnValue:
    """Return the report."""
    values = {
        "kind": request.args.get("kind", ""),
        "shows_dismissed": request.args.get("dismissed", ""),
        "may_write": has_permission("WRITE"),
    }
    status = 200
    try:
        asked = parse_parameters(HealthRequest, {name: request.args.get(name) or None for name in ("kind", "dismissed")})
        limit = _ALL if asked.kind else _FEW
        asked = structs.replace(asked, limit=limit, linked=linked_pages(), shows_queries=has_permission("ADMIN"))
        report = extension().index.health(asked, page_urls())
    except SemanticError as error:
        values["problem"], status = problem(error), status_of(error)
    else:
        sections = [(count, [each for each in report.findings if each.kind is count.kind]) for count in report.counts]
        values |= {"report": report, "sections": sections, "few": limit, "shows_dismissed": asked.dismissed}
    return render_page("health.html", title="Health of the wiki", **values), status


@pages.route("/dismiss", methods=["GET", "POST"])
@guarded("WRITE", feature="health")
def dismiss() -> ResponseReturnValue:
    """Dismiss a finding, or restore it; a GET, which comes from the login page, redirects to the report."""
    shown = {name: request.form[name] for name in ("kind", "dismissed") if request.form.get(name)}
    if request.method == "POST":
        try:
            values = {"findings": request.form.getlist("finding"), "restore": request.form.get("restore")}
            asked = parse_parameters(DismissalRequest, values)
            extension().index.dismiss(structs.replace(asked, shows_queries=has_permission("ADMIN")))
        except SemanticError as error:
            flash(str(error), "alert-danger")
    section = request.form.get("section")
    anchor = section if section in set(FindingKind) else None
    return redirect(url_for("semantic_health.health", **shown, _anchor=anchor))  # type: ignore[arg-type]
