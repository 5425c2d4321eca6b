"""Find pages that name another page's title without a link: candidates by keyword, confirmed in the Markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from otterwiki_semantic.content.analysis import name_key, words
from otterwiki_semantic.content.pages import find_name, prose
from otterwiki_semantic.core.records import Finding, FindingKind
from otterwiki_semantic.daemon.health.survey import MAX_FINDINGS, Findings, Survey, finding_id
from otterwiki_semantic.storage import PageFacts

_LEAST_LETTERS = 3
_MOST_WORDS = 8
"""Longer titles are sentences."""
_RARE, _SPECIFIC = 5, 20
"""The most pages on which a title of one word, or of several, may occur; above it, the title is an everyday expression."""
_MAX_CHUNKS = 200
_PER_PAGE = 3
_MAX_READ = 5_000
"""The limit of pages to read."""


class _Title(NamedTuple):
    page: PageFacts
    pages: int
    """The number of pages that seem to name it."""


def find_mentions(survey: Survey) -> Findings:
    """Return up to three findings per page, the most specific first, not counting dismissed ones."""
    candidates = _candidates(survey)
    findings: list[Finding] = []
    for path, markdown in survey.sources(sorted(candidates)[:_MAX_READ]):
        found = 0
        for finding in _of_page(survey, path, markdown, candidates[path]):
            findings.append(finding)
            found += not survey.is_dismissed(finding.id)
            if found == _PER_PAGE:
                break
        if len(findings) >= MAX_FINDINGS:
            break
    return findings[:MAX_FINDINGS]


def _of_page(survey: Survey, path: str, markdown: str, titles: list[_Title]) -> Iterator[Finding]:
    """Yield the mentions on a page, longest titles first, then the rarest."""
    text, named_here = prose(markdown), list[str]()
    for title in sorted(titles, key=lambda each: (-len(each.page.title.split()), each.pages, each.page.path)):
        survey.slices.rest()
        name = title.page.title
        named = None if any(name.casefold() in longer for longer in named_here) else find_name(text, name, markdown)
        if named is not None:
            named_here.append(name.casefold())
            yield Finding(
                id=finding_id(FindingKind.MENTION, path, title.page.path),
                kind=FindingKind.MENTION,
                is_dismissed=False,
                pages=(survey.section(path, named.line, named.text),),
                total_pages=1,
                target=survey.page(title.page.path),
            )


def _candidates(survey: Survey) -> dict[str, list[_Title]]:
    """Return the titles that each page seems to mention without linking to their pages."""
    linked = set(survey.links)
    keywords = survey.generation.catalog.keywords
    found: defaultdict[str, list[_Title]] = defaultdict(list)
    for page in _named(survey):
        survey.slices.rest()
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
    """Return the pages with a unique title that could be part of a sentence."""
    times = Counter(name_key(page.title) for page in survey.pages)
    return [
        page
        for page in survey.pages
        if times[name_key(page.title)] == 1
        and sum(map(str.isalpha, page.title)) >= _LEAST_LETTERS
        and len(page.title.split()) <= _MOST_WORDS
        and (len(page.title.split()) > 1 or page.title != page.title.lower())
    ]
