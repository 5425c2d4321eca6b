"""The health of the wiki: problems for readers that the index reveals."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from otterwiki_semantic.core.parameter_parsing import Choice
from otterwiki_semantic.core.records.document import FileKind
from otterwiki_semantic.core.records.status import Freshness


class FindingKind(Choice):
    """What a finding is about, most important first."""

    BROKEN_LINK = "broken_link"
    """Links to a page that does not exist."""
    UNANSWERED = "unanswered"
    """Questions that found nothing relevant, grouped by meaning."""
    DUPLICATE = "duplicate"
    """Pages and attached files that share nearly equal passages."""
    STALE = "stale"
    """A page unchanged for a year, while the pages nearest in meaning changed."""
    MENTION = "mention"
    """A page that names another one's title without a link to it."""
    ORPHAN = "orphan"
    """A page that no other links to."""


class PlaceInPage(Struct, frozen=True, omit_defaults=True):
    """A page or an attached file, or a section of it."""

    path: str
    title: str
    section: str = ""
    """The heading of the section, if the finding is about one."""
    anchor: str = ""
    """The heading's id in the page."""
    excerpt: str = ""
    """The text that the finding is about."""
    excerpt_highlights: tuple[tuple[int, int], ...] = ()
    """Only of a mention: where it is in the excerpt, as offsets."""
    updated: str | None = None
    """When a commit last changed the page, ISO 8601 in UTC; only of stale pages and those near to them."""
    url: str | None = None
    """The section in the wiki."""
    kind: FileKind | None = None
    """Only of an attached file: what it is."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something about the wiki that may be worth a change."""

    id: str
    """A hash of the kind and of what it is about: the same in every report, also after a rebuild."""
    kind: FindingKind
    is_dismissed: bool
    pages: tuple[PlaceInPage, ...] = ()
    """The pages to look at, at most 20; see `total_pages`."""
    total_pages: int = 0
    """The number of pages that it is about, listed or not."""
    passages: int = 0
    """Of a duplicate: the number of passages that the pages share."""
    missing: str | None = None
    """Of a broken link: the path of the page that does not exist, as it is written in the first of the `pages`."""
    target: PlaceInPage | None = None
    """Of a mention: the page that is named. Of a broken link: the page that seems to be meant, as it has the
    same name; of several, the one in more folders of the same names."""
    neighbours: tuple[PlaceInPage, ...] = ()
    """Nearby pages. For a stale page, they changed after it did; for an orphan, they are related to it."""
    queries: tuple[str, ...] = ()
    """The unanswered questions, most frequent first."""
    times: int = 0
    """How often they were asked in 90 days."""
    answered_by: PlaceInPage | None = None
    """The page that answers all of them now; such a finding is not open."""

    @property
    def is_open(self) -> bool:
        return not self.is_dismissed and self.answered_by is None


class FindingCount(Struct, frozen=True):
    """How many findings of a kind there are, listed or not."""

    kind: FindingKind
    open: int
    """Neither dismissed, nor answered in the meantime."""
    dismissed: int


class HealthState(StrEnum):
    """Whether there is a report."""

    READY = "ready"
    MAKING = "making"
    """The first one is being made."""
    UNAVAILABLE = "unavailable"


class HealthReport(Struct, frozen=True, omit_defaults=True):
    """The findings about a wiki."""

    findings: tuple[Finding, ...]
    """By kind, the most important first, up to `limit` of each kind."""
    counts: tuple[FindingCount, ...]
    """Of every requested kind."""
    open: int
    """The number of open findings of these kinds."""
    state: HealthState
    """`ready`, `making`, or `unavailable`: `message` says why."""
    is_current: bool
    """Whether the report is of the index as it is now; if not, the next one is being made."""
    made: str | None
    """When the report was made, ISO 8601 in UTC."""
    commit: str | None
    """The commit that it is about."""
    index: Freshness
    keeps_searches: bool
    """Whether searches are logged (`SEMANTIC_SEARCH_LOG`), and may be shown; if not, there are no unanswered questions."""
    message: str | None = None
    """Only if there is no report, or an old one: why."""


class DismissalAnswer(Struct, frozen=True):
    """The findings that were dismissed or restored."""

    findings: tuple[str, ...]
    is_dismissed: bool
