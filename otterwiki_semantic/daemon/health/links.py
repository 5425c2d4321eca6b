"""Find pages without incoming links, links to missing pages, and names of pages without a link."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from mimetypes import guess_type
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace
from rapidfuzz.distance import Prefix

from otterwiki_semantic.content.analysis import name_key, words
from otterwiki_semantic.content.pages import find_links, find_name, page_key, prose
from otterwiki_semantic.core.records import Finding, FindingKind, PlaceInPage
from otterwiki_semantic.daemon.health.survey import MAX_FINDINGS, MAX_PAGES, Findings, Survey, new_finding
from otterwiki_semantic.search import are_related
from otterwiki_semantic.storage import PageFacts

_OWN = ("-", "static")
"""Folders of the wiki's own addresses."""
_VIEWS = {
    *("a", "attachment", "attachments", "blame", "delete", "diff", "draft", "edit", "history", "inline_attachment"),
    *("preview", "rename", "save", "source", "t", "view"),
}
"""Parts of the wiki's own addresses that follow the path of a page."""

_FOLDER_PAGE = "/index"
_LEAST_LETTERS = 3
_MOST_WORDS = 8
"""Longer titles are sentences."""
_RARE, _SPECIFIC = 5, 20
"""The most pages on which a title of one word, or of several, may occur; above it, the title is an everyday expression."""
_MAX_CHUNKS = 200
_PER_PAGE = 3
_MAX_READ = 5_000


def find_orphans(survey: Survey) -> Findings:
    """Return a finding for each page without a link from another page, by path; the first 500 with related pages."""
    linked = {target for _, target in survey.links}
    orphans = [path for path, page in survey.by_path.items() if page.key not in linked]
    related = dict(_related(survey, orphans[:MAX_FINDINGS]))
    return [
        new_finding(FindingKind.ORPHAN, path, pages=[survey.page(path)], neighbours=related.get(path, ())) for path in orphans
    ]


def _related(survey: Survey, paths: list[str]) -> Iterator[tuple[str, tuple[PlaceInPage, ...]]]:
    """Yield each page with its related pages: up to three, nearest first."""
    reader = survey.generation.catalog.reader
    for path, others in survey.nearest(paths):
        vectors = reader.page_vectors([path, *(other for other, _ in others)])
        near = [other for other, _ in others if {path, other} <= vectors.keys()]
        yield path, tuple(survey.page(other) for other in near if are_related(vectors[path], vectors[other], survey.scale))


def find_broken_links(survey: Survey) -> Findings:
    """Return a finding for each missing page, most linked first."""
    is_folder = not survey.notation.is_wiki  # attachments of a wiki are not in git
    keys = {page.key for page in survey.by_path.values()}
    broken: dict[str, list[str]] = {}
    for target, links in groupby(survey.links, itemgetter(1)):
        survey.rest()
        sources = [path for path, _ in links if path in survey.by_path]
        if target not in keys and target not in survey.files and not (is_folder and guess_type(target)[0]):
            sources = [path for path in sources if not _is_elsewhere(target, path, survey.files)]
            if sources:
                broken[target] = sources
    wanted = sorted(broken, key=lambda target: (-len(broken[target]), target))[:MAX_FINDINGS]
    return _located(survey, {target: broken[target] for target in wanted})


def _namesakes(survey: Survey, broken: Mapping[str, list[str]]) -> dict[str, PlaceInPage]:
    """Return, for missing pages, the page with the same name; of several, the one in more folders of the same names, if one is.

    A page is not the target of its own link, unless other pages have the link as well.
    """
    names: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for page in survey.by_path.values():
        parts = _parts(page.key)
        names[parts[0]].append((page.path, parts))
    found = {}
    for target, sources in broken.items():
        survey.rest()
        parts = _parts(target)
        common = [(Prefix.similarity(parts, each), path) for path, each in names.get(parts[0], ())]
        most = max(common, default=(0, ""))[0]
        nearest = [path for count, path in common if count == most]
        if len(nearest) == 1 and nearest != sources:
            found[target] = survey.page(nearest[0])
    return found


def _parts(key: str) -> list[str]:
    """Return the name of a page and its folders, the innermost first; a folder's page is named after the folder."""
    return key.removesuffix(_FOLDER_PAGE).split("/")[::-1]


def _is_elsewhere(target: str, source: str, files: frozenset[str]) -> bool:
    """Whether a link leads to an attachment, or to one of the wiki's own addresses."""
    parts = target.split("/")
    if parts[0] in _OWN or f"{page_key(source)}/{parts[-1]}" in files:
        return True
    return any(part in _VIEWS and "/".join(parts[:place]) in files for place, part in enumerate(parts) if place)


def _located(survey: Survey, broken: dict[str, list[str]]) -> Findings:
    wanted: dict[str, set[str]] = {}
    for target, sources in broken.items():
        for path in sources[:MAX_PAGES]:
            wanted.setdefault(path, set()).add(target)
    found = {}
    page_first = survey.notation.is_page_first
    for path, markdown in survey.sources(sorted(wanted)):
        for target, link in find_links(markdown, path, wanted[path], page_first=page_first).items():
            found[path, target] = link.text, survey.section(path, link.line)
    findings = []
    namesakes = _namesakes(survey, broken)
    for target, sources in broken.items():
        links = [found.get((path, target)) or (target, survey.page(path)) for path in sources[:MAX_PAGES]]
        missing = next((text for text, _ in links if text != target), target)
        places = [place for _, place in links]
        facts = {"total_pages": len(sources), "missing": missing, "target": namesakes.get(target)}
        findings.append(new_finding(FindingKind.BROKEN_LINK, target, pages=places, **facts))
    return findings


class _Title(NamedTuple):
    page: PageFacts
    pages: int
    """The number of pages that seem to name it."""


def find_mentions(survey: Survey) -> Findings:
    """Return up to three findings per page, the most specific first, not counting dismissed ones."""
    candidates = _mentioned(survey)
    findings: list[Finding] = []
    for path, markdown in survey.sources(sorted(candidates)[:_MAX_READ]):
        found = 0
        for finding in _mentions_on(survey, path, markdown, candidates[path]):
            findings.append(finding)
            found += not survey.is_dismissed(finding.id)
            if found == _PER_PAGE:
                break
        if len(findings) >= MAX_FINDINGS:
            break
    return findings[:MAX_FINDINGS]


def _mentions_on(survey: Survey, path: str, markdown: str, titles: list[_Title]) -> Iterator[Finding]:
    """Yield the mentions on a page, longest titles first, then the rarest."""
    text, named_here, page_first = prose(markdown), list[str](), survey.notation.is_page_first
    for title in sorted(titles, key=lambda each: (-len(each.page.title.split()), each.pages, each.page.path)):
        survey.rest()
        name = title.page.title
        is_named = any(name.casefold() in longer for longer in named_here)
        named = None if is_named else find_name(text, name, markdown, page_first=page_first)
        if named is not None:
            named_here.append(name.casefold())
            place = replace(survey.section(path, named.line), excerpt=named.text, excerpt_highlights=(named.name,))
            target = survey.page(title.page.path)
            yield new_finding(FindingKind.MENTION, path, target.path, pages=[place], target=target)


def _mentioned(survey: Survey) -> dict[str, list[_Title]]:
    """Return the titles that each page seems to mention without linking to their pages."""
    linked = set(survey.links)
    keywords = survey.generation.catalog.keywords
    found: defaultdict[str, list[_Title]] = defaultdict(list)
    for page in _named(survey):
        survey.rest()
        parts = [part for word in words(page.title, page.language) if not word.is_unigram for part in word.parts]
        phrase = " ".join(parts).replace('"', "")
        if not phrase:
            continue
        chunks = survey.index.candidates(keywords.matches(f'body : "{phrase}"', _MAX_CHUNKS))
        naming = {chunk.path for chunk in chunks} - {page.path}
        most = _SPECIFIC if len(page.title.split()) > 1 else _RARE
        if len(chunks) == _MAX_CHUNKS or len(naming) > most:
            continue
        for path in naming:
            if (path, page.key) not in linked and path in survey.by_path:
                found[path].append(_Title(page, len(naming)))
    return found


def _named(survey: Survey) -> list[PageFacts]:
    times = Counter(name_key(page.title) for page in survey.by_path.values())
    return [
        page
        for page in survey.by_path.values()
        if times[name_key(page.title)] == 1
        and sum(map(str.isalpha, page.title)) >= _LEAST_LETTERS
        and len(page.title.split()) <= _MOST_WORDS
        and (len(page.title.split()) > 1 or page.title != page.title.lower())
    ]
