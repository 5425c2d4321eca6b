"""Find pages without incoming links, and links to missing pages."""

from __future__ import annotations

from itertools import groupby
from mimetypes import guess_type
from operator import itemgetter

from otterwiki_semantic.content.pages import find_links, page_key
from otterwiki_semantic.core.records import Finding, FindingKind, Notation
from otterwiki_semantic.daemon.health.survey import MAX_FINDINGS, MAX_PAGES, Findings, Survey, finding_id

_OWN = ("-", "static")
"""Folders of the wiki's own addresses."""
_VIEWS = {
    *("a", "attachment", "attachments", "blame", "delete", "diff", "draft", "edit", "history", "inline_attachment"),
    *("preview", "rename", "save", "source", "t", "view"),
}
"""Parts of the wiki's own addresses that follow the path of a page."""


def find_orphans(survey: Survey) -> Findings:
    """Return a finding for each page without a link from another page, by path."""
    linked = {target for _, target in survey.links}
    return [
        Finding(
            id=finding_id(FindingKind.ORPHAN, page.path),
            kind=FindingKind.ORPHAN,
            is_dismissed=False,
            pages=(survey.page(page.path),),
            total_pages=1,
        )
        for page in survey.pages
        if page.key not in linked
    ]


def find_broken_links(survey: Survey) -> Findings:
    """Return a finding for each missing page, most linked first."""
    is_folder = survey.repository.notation is not Notation.WIKI  # attachments of a wiki are not in git
    broken: dict[str, list[str]] = {}
    for target, links in groupby(survey.links, itemgetter(1)):
        survey.slices.rest()
        sources = [path for path, _ in links if path in survey.by_path]
        if target not in survey.keys and target not in survey.files and not (is_folder and guess_type(target)[0]):
            sources = [path for path in sources if not _is_elsewhere(target, path, survey.files)]
            if sources:
                broken[target] = sources
    wanted = sorted(broken, key=lambda target: (-len(broken[target]), target))[:MAX_FINDINGS]
    return _located(survey, {target: broken[target] for target in wanted})


def _is_elsewhere(target: str, source: str, files: frozenset[str]) -> bool:
    """Whether a link leads to an attachment, or to one of the wiki's own addresses."""
    parts = target.split("/")
    if parts[0] in _OWN or f"{page_key(source)}/{parts[-1]}" in files:
        return True
    return any(part in _VIEWS and "/".join(parts[:place]) in files for place, part in enumerate(parts) if place)


def _located(survey: Survey, broken: dict[str, list[str]]) -> Findings:
    """Return the findings about missing pages, with the sections that contain the links."""
    wanted: dict[str, set[str]] = {}
    for target, sources in broken.items():
        for path in sources[:MAX_PAGES]:
            wanted.setdefault(path, set()).add(target)
    found = {}
    for path, markdown in survey.sources(sorted(wanted)):
        for target, link in find_links(markdown, path, wanted[path]).items():
            found[path, target] = link.text, survey.section(path, link.line)
    findings = []
    for target, sources in broken.items():
        links = [found.get((path, target)) or (target, survey.page(path)) for path in sources[:MAX_PAGES]]
        findings.append(
            Finding(
                id=finding_id(FindingKind.BROKEN_LINK, target),
                kind=FindingKind.BROKEN_LINK,
                is_dismissed=False,
                pages=tuple(place for _, place in links),
                total_pages=len(sources),
                missing=next((text for text, _ in links if text != target), target),
            )
        )
    return findings
