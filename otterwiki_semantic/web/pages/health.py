"""The health page: findings by kind, buttons to dismiss them, and the edit that links a mention."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, flash, redirect, request, session, url_for
from flask.typing import ResponseReturnValue
from msgspec import structs

from otterwiki_semantic.content.pages import page_key, redirect_links, unified_diff
from otterwiki_semantic.core.errors import SemanticError
from otterwiki_semantic.core.hints import problem
from otterwiki_semantic.core.parameter_parsing import page_path, parse_parameters
from otterwiki_semantic.core.records import (
    MAX_DISMISSED,
    DismissalRequest,
    DraftRequest,
    FindingKind,
    HealthRequest,
    HealthState,
    Mention,
    PageRequest,
    PageView,
    query_text,
)
from otterwiki_semantic.web.auth import has_permission
from otterwiki_semantic.web.extension import extension
from otterwiki_semantic.web.pages.layout import guarded, keep_private, linked_pages, page_urls, render_page, sentence, status_of

_FEW, _ALL = 10, 500
"""Findings of a kind that are listed: among other kinds, and alone."""
_UNDO = "semantic_undo"
"""The key of the last dismissal in the session, until the page has offered to undo it."""
_RELOAD_SECONDS = 5
"""How soon a browser loads the page again while the first report is being created."""

pages = Blueprint("semantic_health", __name__, url_prefix="/-/semantic-search/health")
pages.after_request(keep_private)


@pages.get("")
@guarded("READ", feature="health")
def health() -> ResponseReturnValue:
    """Return the health page."""
    values = {
        "kind": request.args.get("kind", ""),
        "is_selected": request.args.get("selected"),
        "may_write": has_permission("WRITE"),
        "at_once": MAX_DISMISSED,
        "last": session.pop(_UNDO) if _UNDO in session else None,
    }
    status, headers = 200, dict[str, str]()
    try:
        asked = parse_parameters(HealthRequest, {name: request.args.get(name) or None for name in ("kind", "dismissed")})
        limit = _ALL if asked.kind or asked.dismissed else _FEW
        is_admin = has_permission("ADMIN")
        asked = structs.replace(asked, limit=limit, linked=linked_pages(), shows_queries=is_admin, counts_all=True)
        report = extension().index.health(asked, page_urls())
    except SemanticError as error:
        values["problem"], status = problem(error), status_of(error)
    else:
        kinds = [count for count in report.counts if report.keeps_searches or count.kind is not FindingKind.UNANSWERED]
        shown = _ALL if asked.kind else _FEW
        found = [each for each in report.findings if each.is_open]
        values["sections"] = [(count, [each for each in found if each.kind is count.kind][:shown]) for count in kinds]
        values["dismissed"] = sum(count.dismissed for count in report.counts if asked.kind in (None, count.kind))
        values["closed"] = [each for each in report.findings if not each.is_open]
        values |= {"report": report, "kinds": kinds, "shows_dismissed": asked.dismissed}
        if report.state is HealthState.MAKING:
            headers["Refresh"] = str(_RELOAD_SECONDS)
    return render_page("health.html", title="Wiki health", **values), status, headers


@pages.get("/link")
@guarded("WRITE", feature="health")
def link() -> ResponseReturnValue:
    """Return the edit that links a page's first mention of each `target`, in the wiki's own form for saving.

    With `append`, links to targets that the page does not mention are added at its end. With `missing`, links to this page are
    changed to the target. If `page` is given several times, the first page is edited, and the others are offered instead.
    """
    values: dict[str, Any] = {"is_appended": "append" in request.args, "missing": request.args.get("missing")}
    status = 200
    try:
        reader = extension().pages
        sources = [
            reader.page(page_path(query_text(each, "page")), PageRequest()) for each in request.args.getlist("page") or [""]
        ]
        targets = [page_path(query_text(each, "target")) for each in request.args.getlist("target") or [""]]
        if missing := values["missing"]:
            texts, linked = _with_changed_links(sources, missing, targets[0])
            sources = [each for each in sources if each.path in texts]
        else:
            text, linked = _with_links(sources[0], targets, is_appended=values["is_appended"])
            texts = {sources[0].path: text}
        if linked:
            page, text = sources[0], texts[sources[0].path]
            lines = unified_diff(f"{page.content.rstrip()}\n", f"{text.rstrip()}\n", ("", "")).splitlines()
            diff = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
            values |= {"page": page, "linked": linked, "text": text, "diff": diff, "targets": targets}
            values["sources"] = sorted(sources, key=lambda each: each.title) if sources[1:] else []
    except SemanticError as error:
        values["problem"], status = problem(error), status_of(error)
    return render_page("health_link.html", title="Change links" if values["missing"] else "Add links", **values), status


def _with_changed_links(pages: list[PageView], missing: str, target: str) -> tuple[dict[str, str], list[Mention]]:
    """Return the texts of the pages that link to a missing page, by path, linking to another page instead; and what they link.

    Nothing if no page has such a link, or the target cannot be linked.
    """
    linked, key, page_first = _reference(target), page_key(missing), page_urls().links_begin_with_page
    texts = {each.path: redirect_links(each.content, each.path, key, target, page_first=page_first) for each in pages}
    changed = {each.path: texts[each.path] for each in pages if linked.link and texts[each.path] != each.content}
    return changed, [linked] if changed else []


def _with_links(page: PageView, targets: list[str], *, is_appended: bool) -> tuple[str, list[Mention]]:
    """Return a page's text with links to other pages, and what they link: mentions, or if there are none the pages."""
    mentions = extension().index.draft_links(DraftRequest(page.content, page.path), page_urls()).mentions
    linked = [each for each in mentions if each.path in targets and each.link]
    text = page.content
    for each in reversed(linked):  # mentions are in the order of the text
        text = f"{text[: each.start]}{each.link}{text[each.end :]}"
    if is_appended and not linked:
        linked = [each for each in map(_reference, targets) if each.link and each.link not in text]
        text = "\n\n".join((text.rstrip(), *(str(each.link) for each in linked)))
    return text, linked


def _reference(path: str) -> Mention:
    """Return a link to a page that is not mentioned."""
    page, urls = extension().pages.page(path, PageRequest()), page_urls()
    return Mention(0, 0, page.title, page.path, page.title, urls.of(page.path), urls.link(page.path, page.title))


@pages.route("/dismiss", methods=["GET", "POST"])
@guarded("WRITE", feature="health")
def dismiss() -> ResponseReturnValue:
    """Dismiss or restore one finding (`only`) or the selected ones (`finding`); a GET, after a login, redirects."""
    section = request.form.get("section")
    shown = {name: request.form[name] for name in ("kind", "dismissed") if request.form.get(name)}
    if request.method == "POST":
        try:
            findings = request.form.getlist("only") or request.form.getlist("finding")
            asked = parse_parameters(DismissalRequest, {"findings": findings, "restore": request.form.get("restore")})
            extension().index.dismiss(structs.replace(asked, shows_queries=has_permission("ADMIN")))
            if not asked.restore:
                session[_UNDO] = {"section": section, "findings": findings}
        except SemanticError as error:
            flash(sentence(str(error)), "alert-danger")
    anchor = section if section in {*FindingKind, "dismissed"} else None
    return redirect(url_for("semantic_health.health", **shown, _anchor=anchor))  # type: ignore[arg-type]
