"""Administrators' pages below ``/-/admin/semantic-search``: the state of the index, and the inspection of a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from flask import Blueprint, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from otterwiki_semantic.core.durations import duration
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameters import page_path, parse_parameters
from otterwiki_semantic.core.records import IndexStatus, QualityRecord, RebuildState, ReindexRequest, SearchHour, query_text
from otterwiki_semantic.daemon import IndexService
from otterwiki_semantic.web.pages.connect import connected_programs, end_connection
from otterwiki_semantic.web.pages.layout import guarded, keep_private, page_url, page_urls, render_page, status_of

ADMIN = "/-/admin/semantic-search"


def make_admin_pages(service: IndexService) -> Blueprint:
    """Return the pages; the wiki's CSRF protection applies to them."""
    views = _Views(service)
    pages = Blueprint("semantic_admin", "otterwiki_semantic.web", url_prefix=ADMIN, template_folder="templates")
    guard = partial(guarded, "ADMIN")
    pages.add_url_rule("", "index", guard(views.index))
    pages.add_url_rule("/state", "state", guard(views.state))
    pages.add_url_rule("/work", "work", guard(views.work))
    pages.add_url_rule("/page", "page", guard(views.page))
    pages.add_url_rule("/reindex", "reindex", guard(views.reindex), methods=["GET", "POST"])
    pages.add_url_rule("/disconnect", "disconnect", guard(views.disconnect), methods=["GET", "POST"])
    pages.after_request(keep_private)
    pages.add_app_template_filter(duration, "semantic_duration")
    pages.add_app_template_filter(moment, "semantic_moment")
    return pages


def moment(iso: str) -> str:
    """Format a time in UTC (ISO 8601): ``2026-01-31 12:00:00 UTC``."""
    return iso.replace("T", " ").replace("+00:00", " UTC")


class _Views:
    def __init__(self, service: IndexService) -> None:
        self._service = service

    def index(self) -> ResponseReturnValue:
        return render_page(
            "semantic_search/index.html", title="Search index", programs=connected_programs(), **self._work() | self._state()
        )

    def state(self) -> ResponseReturnValue:
        """Return the current state of the index, a part of the page that its script polls."""
        return render_template("semantic_search/index_state.html", **self._state())

    def work(self) -> ResponseReturnValue:
        """Return the recent activity of the index, a part of the page that its script reloads after changes."""
        return render_template("semantic_search/index_work.html", **self._work())

    def page(self) -> ResponseReturnValue:
        values: dict[str, Any] = {"path": request.args.get("path", ""), "inspection": None, "message": None}
        status = 200
        try:
            if values["path"]:
                path = page_path(query_text(values["path"], "path"))
                values["inspection"] = self._service.inspect_page(path)
        except SemanticError as error:
            values["message"], status = str(error), status_of(error)
        return render_page(
            "semantic_search/inspect_page.html", title="How search sees a page", page_url=page_url, **values
        ), status

    def reindex(self) -> ResponseReturnValue:
        """Start a rebuild, or return to the earlier index; a GET, which comes from the login page, redirects to the form."""
        if request.method != "POST":
            return redirect(url_for("semantic_admin.index"))
        try:
            asked = parse_parameters(ReindexRequest, {name: request.form.get(name) for name in ("full", "rollback")})
            if asked.rollback:
                self._service.roll_back()
                message = "The earlier index serves in a moment, with the settings that it was made with."
            else:
                self._service.reindex(full=asked.full)
                message = "A new index is being built; the current one serves until it is done."
        except SemanticError as error:
            flash(str(error), "alert-danger")
        else:
            flash(message, "alert-success")
        return redirect(url_for("semantic_admin.index"))

    def disconnect(self) -> ResponseReturnValue:
        """End the connection of a program; a GET, which comes from the login page, redirects to the list."""
        if request.method == "POST":
            end_connection(request.form.get("connection", ""))
        return redirect(url_for("semantic_admin.index", _anchor="programs"))

    def _state(self) -> dict[str, Any]:
        try:
            status = self._service.status(page_urls())
            insight, wiki_map = self._service.insight(), self._service.map()
            return {"status": status, "headline": headline(status), "insight": insight, "map": wiki_map}
        except SemanticError as error:
            found = problem(error)
            return {"status": None, "headline": Headline("attention", found.message, found.hint or ""), "insight": None}

    def _work(self) -> dict[str, Any]:
        try:
            insight = self._service.insight()
        except SemanticError:
            return {"insight": None, "chart": None, "quality": None}  # the state says why
        chart, quality = latency_chart(insight.searches), quality_chart(insight.quality[::-1])
        return {"insight": insight, "chart": chart, "quality": quality}


@dataclass(frozen=True, slots=True)
class Headline:
    """What an administrator has to know first."""

    kind: str
    """``ok``, ``working`` or ``attention``."""
    reason: str = ""
    """Why it needs attention."""
    hint: str = ""
    """The one thing to do."""
    seconds_left: float | None = None
    """Of the work; None if unknown."""


def headline(status: IndexStatus) -> Headline:
    """Return the state of an index in one line: its first problem, else its work, else that there is none."""
    if status.problems:
        first = status.problems[0]
        return Headline("attention", first.message, first.hint)
    if status.rebuild.state is RebuildState.RUNNING or status.status == "indexing":
        work = status.rebuild if status.rebuild.state is RebuildState.RUNNING else status.progress
        return Headline("working", seconds_left=work.seconds_left)
    return Headline("ok")


WIDTH, HEIGHT = 600, 140
_SECONDS_OF_AN_HOUR = 3600
_LEAST_HOURS = 24
_LEAST_EVALUATIONS = 30


@dataclass(frozen=True, slots=True)
class Bar:
    """An hour in the charts; coordinates in units of the drawing, from its top left."""

    x: float
    width: float
    p50_y: float
    p95_y: float
    unanswered_y: float
    hour: SearchHour


@dataclass(frozen=True, slots=True)
class LatencyChart:
    """The hours with searches."""

    bars: tuple[Bar, ...]
    top_ms: int
    """Milliseconds at the top of the latency chart."""
    top_unanswered: int
    """Queries at the top of the other chart."""
    width: int = WIDTH
    height: int = HEIGHT


def latency_chart(hours: Sequence[SearchHour]) -> LatencyChart | None:
    """Return the chart of searches per hour; None if there were none."""
    if not hours:
        return None
    starts = [datetime.fromisoformat(hour.hour).timestamp() / _SECONDS_OF_AN_HOUR for hour in hours]
    width = WIDTH / max(_LEAST_HOURS, starts[-1] - starts[0] + 1)
    top, most = _round_top(max(hour.p95_ms for hour in hours)), _round_top(max(hour.unanswered for hour in hours))

    def bar(start: float, hour: SearchHour) -> Bar:
        left = round((start - starts[0]) * width, 2)
        return Bar(
            left, round(width, 2), _place(hour.p50_ms, top), _place(hour.p95_ms, top), _place(hour.unanswered, most), hour
        )

    return LatencyChart(tuple(map(bar, starts, hours)), top, most)


@dataclass(frozen=True, slots=True)
class QualityBar:
    """An evaluation in the chart; coordinates as in `Bar`."""

    x: float
    width: float
    recall_y: float
    mrr_y: float


@dataclass(frozen=True, slots=True)
class QualityChart:
    """The evaluations with judged queries, at equal distances; 1 is at the top."""

    bars: tuple[QualityBar, ...]
    since: str
    width: int = WIDTH
    height: int = HEIGHT


def quality_chart(records: Sequence[QualityRecord]) -> QualityChart | None:
    """Return the chart of evaluations, oldest first; None if there were none."""
    if not records:
        return None
    width = WIDTH / max(_LEAST_EVALUATIONS, len(records))
    bars = (
        QualityBar(round(number * width, 2), round(width, 2), _place(each.recall_at_10, 1), _place(each.mrr, 1))
        for number, each in enumerate(records)
    )
    return QualityChart(tuple(bars), records[0].finished)


def _round_top(most: float) -> int:
    """Round up to 10, 20, 50, 100, 200 and so on."""
    power = 10 ** math.floor(math.log10(max(most, 1)))
    return int(max(10, next(power * step for step in (1, 2, 5, 10) if most <= power * step)))


def _place(value: float, top: int) -> float:
    return round(HEIGHT * (1 - value / top), 2)
