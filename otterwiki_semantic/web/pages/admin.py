"""Administrators' pages below ``/-/admin/semantic-search``: the state of the index, and the inspection of a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise
from math import ceil, log10
from pathlib import Path
from time import time
from typing import Any

from flask import Blueprint, flash, redirect, request, url_for
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from otterwiki_semantic.core.errors import PageNotFoundError, SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.humanize import ago, day, duration
from otterwiki_semantic.core.humanize import count as counted
from otterwiki_semantic.core.parameter_parsing import page_path, parse_parameters
from otterwiki_semantic.core.records import (
    Figures,
    QualityRecord,
    RebuildState,
    ReindexRequest,
    SearchHour,
    SuggestRequest,
    fall,
    query_text,
)
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.connect import end_connection
from otterwiki_semantic.web.pages.layout import guarded, keep_private, page_urls, render_page, render_part, sentence, status_of
from otterwiki_semantic.web.pages.suggestions import close_paths

_DAY = 24
_WEEK = 7 * _DAY
"""The most hours that a chart spans."""

_FEWEST_QUERIES = 10
"""Judged queries from which figures of quality mean something."""

pages = Blueprint("semantic_admin", __name__, url_prefix="/-/admin/semantic-search")
"""The wiki's CSRF protection applies to them."""
pages.after_request(keep_private)
pages.add_app_template_filter(duration, "semantic_duration")
pages.add_app_template_filter(counted, "semantic_count")


@pages.app_template_filter("semantic_moment")
def moment(time: str | float) -> Markup:
    """Format a time (ISO 8601 in UTC, or seconds since 1970): ``31 Jan 2026, 12:00 UTC``; scripts show it in local time."""
    at = datetime.fromisoformat(time) if isinstance(time, str) else datetime.fromtimestamp(int(time), UTC)
    return Markup('<time datetime="{}">{}, {:%H:%M} UTC</time>').format(at.isoformat(), day(at), at)


@pages.app_template_filter("semantic_date")
def date(time: str) -> Markup:
    """Format a time (ISO 8601 in UTC): ``3 days ago`` or, after a week, ``31 Jan 2026``, with date and time as its title."""
    at = datetime.fromisoformat(time)
    age = datetime.now(UTC) - at  # the same in every time zone
    said = ago(age.total_seconds()) if timedelta() <= age < timedelta(days=7) else day(at)
    return Markup('<time datetime="{}" title="{}, {:%H:%M} UTC">{}</time>').format(time[:10], day(at), at, said)


@pages.get("")
@guarded("ADMIN")
def index() -> ResponseReturnValue:
    """Return the page of the index."""
    programs = extension().connections.all()
    return render_page("index.html", title="Search index", programs=programs, **_work() | _state())


@pages.get("/state")
@guarded("ADMIN")
def state() -> ResponseReturnValue:
    """Return the current state of the index, a part of the page that its script polls."""
    return render_part("index_state.html", **_state())


@pages.get("/work")
@guarded("ADMIN")
def work() -> ResponseReturnValue:
    """Return the recent activity of the index, a part of the page that its script reloads after changes."""
    return render_part("index_work.html", **_work())


@pages.get("/page")
@guarded("ADMIN")
def page() -> ResponseReturnValue:
    """Return the passages of a page as the model gets them."""
    values: dict[str, Any] = {"path": request.args.get("path", "")}
    status = 200
    try:
        if values["path"]:
            values["inspection"] = extension().index.inspect_page(page_path(query_text(values["path"], "path")))
        else:
            values["offered"] = [each.path for each in extension().index.suggest(SuggestRequest()).suggestions]
    except SemanticError as error:
        values["message"], status = str(error), status_of(error)
        if isinstance(error, PageNotFoundError):
            values |= {"message": f"The index has no page “{values['path']}”.", "offered": close_paths(values["path"], error)}
    return render_page("inspect_page.html", title="Inspect a page", **values), status


@pages.route("/reindex", methods=["GET", "POST"])
@guarded("ADMIN")
def reindex() -> ResponseReturnValue:
    """Start a rebuild, or a rollback; a GET, which comes from the login page, redirects to the form."""
    if request.method == "POST":
        try:
            flash(_reindex(), "alert-success")
        except SemanticError as error:
            flash(sentence(str(error)), "alert-danger")
    return redirect(url_for("semantic_admin.index"))


def _reindex() -> str:
    asked = parse_parameters(ReindexRequest, {name: request.form.get(name) for name in ("full", "rollback")})
    if asked.rollback:
        extension().index.roll_back()
        return "The previous index will be used again in a moment, with its own settings."
    extension().index.reindex(full=asked.full)
    return "A new index is being built. The current one is used until then."


@pages.route("/disconnect", methods=["GET", "POST"])
@guarded("ADMIN")
def disconnect() -> ResponseReturnValue:
    """End the connection of a program; a GET, which comes from the login page, redirects to the list."""
    if request.method == "POST":
        end_connection(request.form.get("connection", ""))
    return redirect(url_for("semantic_admin.index", _anchor="programs"))


def _state() -> dict[str, Any]:
    """Return the values of the index's state; its `kind` is ``ok``, ``working`` or ``attention``."""
    service = extension().index
    try:
        status, insight = service.status(page_urls()), service.insight()
        values = {"status": status, "insight": insight, "map": service.map(), "problems": status.problems}
    except SemanticError as error:
        return {"status": None, "problems": (problem(error),), "kind": "attention"}
    is_rebuilding = status.rebuild.state is RebuildState.RUNNING
    is_working = is_rebuilding or status.status == "indexing"
    values |= {"is_rebuilding": is_rebuilding, "progress": status.rebuild if is_rebuilding else status.progress}
    kind = "attention" if status.problems else "working" if is_working else "ok"
    warnings = quality_warnings(insight.quality, extension().settings.eval_queries)
    return {**values, "is_working": is_working, "kind": kind, "warnings": warnings}


def quality_warnings(quality: Sequence[QualityRecord], file: Path | None = None) -> list[str]:
    """Return what is wrong with the latest of the checks, newest first; it is worse by the rule that refuses a new index.

    `file` has the judged queries.
    """
    last, before = (*quality[:2], None, None)[:2]
    warnings = []
    if (
        last
        and before
        and last.queries == before.queries >= _FEWEST_QUERIES
        and (worse := fall(_figures(before), _figures(last)))
    ):
        if last.recall_at_10 < before.recall_at_10:
            found = f"{last.recall_at_10:.0%} of the expected pages, and found {before.recall_at_10:.0%}"
            worse = f"it finds {found} in the check before"
        warnings.append(f"Search got worse: {worse}.")
    if last and last.unanswerable:
        names = ", ".join(f"“{name}”" for name in last.missing)
        verb, such_as = ("names a page that does", ": ") if last.unanswerable == 1 else ("name pages that do", ", such as ")
        missing = f"{last.unanswerable} of {counted(last.queries, 'test question')} {verb} not exist{names and such_as + names}"
        warnings.append(f"{missing}. Correct the names in {file or 'the file of SEMANTIC_EVAL_QUERIES'}.")
    return warnings


def _figures(record: QualityRecord) -> Figures:
    return Figures(record.recall_at_10, record.semantic_recall_at_10, record.mrr)


def _work() -> dict[str, Any]:
    try:
        insight = extension().index.insight()
    except SemanticError:
        return {}  # the state says why
    return {
        "insight": insight,
        "fewest_queries": _FEWEST_QUERIES,
        "chart": latency_chart(insight.searches, time()),
    }


def latency_chart(hours: Sequence[SearchHour], now: float) -> dict[str, Any] | None:
    """Return the values of the charts of searches per hour, or None without searches.

    The time axis is the `width` hours until now, from the first search: at least half a day, at most a week. `bars` are
    the hours with searches: each with its distance in hours from the start of this axis, and the distances of p95 and p50 from
    the top of a logarithmic axis, which is `decades` above 1 ms. `marks` are the distances of marked times, each with its
    label: the beginnings of days (UTC), or every six or twelve hours if the axis is shorter than two days. A day without room
    for its name has an empty label. `top` is the highest number on the axis of searches.
    """
    if not hours:
        return None
    starts = [int(datetime.fromisoformat(hour.hour).timestamp()) // 3600 for hour in hours]
    end = max(int(now) // 3600, starts[-1]) + 1
    start = max(end - _WEEK, min(end - _DAY // 2, starts[0]))
    width = end - start
    decades = ceil(log10(max(10, *(hour.p95_ms for hour in hours))))
    below = [[decades - log10(max(1, latency)) for latency in (hour.p95_ms, hour.p50_ms)] for hour in hours]
    if width < 2 * _DAY:
        step = _DAY // 4 if width <= _DAY else _DAY // 2
        marks = [(0, ""), *((width - hours_ago, f"{hours_ago} h ago") for hours_ago in range(step, width + 1, step))]
    else:
        days = pairwise([*dict.fromkeys((0, *range(-start % _DAY, width, _DAY))), width])
        marks = [(x, f"{datetime.fromtimestamp(3600 * (start + x), UTC):%a}" * (after - x >= width / 10)) for x, after in days]
    return {
        "bars": [(at - start, hour, *each) for at, hour, each in zip(starts, hours, below, strict=True) if at >= start],
        "decades": decades,
        "marks": marks,
        "width": width,
        "top": _round_top(max(hour.count for hour in hours)),
    }


def _round_top(most: float) -> int:
    """Round up to an even number of one digit and zeros, at least 2."""
    return next(top for power in count() for step in range(1, 10) if most <= (top := step * int(10**power)) and not top % 2)
