"""Build the health report on request, cache it while the index is unchanged, and answer from it.

A report on 10,000 pages takes seconds of CPU time. It is therefore built only on request, in the background; the request
waits for it briefly.

Dismissed findings are in a file of the data directory, which survives every rebuild.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct, structs

from otterwiki_semantic.content import Repository
from otterwiki_semantic.content.pages import page_key
from otterwiki_semantic.core.backoff import Cooldown
from otterwiki_semantic.core.errors import DismissalError, FindingNotFoundError
from otterwiki_semantic.core.files import read_record, write_atomically
from otterwiki_semantic.core.records import (
    NO_URLS,
    DismissalAnswer,
    DismissalRequest,
    Finding,
    FindingCount,
    FindingKind,
    HealthReport,
    HealthRequest,
    HealthState,
    PageUrls,
    PlaceInPage,
)
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.health.duplicates import find_duplicates
from otterwiki_semantic.daemon.health.links import find_broken_links, find_mentions, find_orphans
from otterwiki_semantic.daemon.health.stale import find_stale
from otterwiki_semantic.daemon.health.survey import Check, Survey
from otterwiki_semantic.daemon.serving_reader import ServingReader, State, state_of
from otterwiki_semantic.indexing import IndexManager, Stopped, now
from otterwiki_semantic.storage import Generation

SLOT = "health"
_WAIT_SECONDS = 2.0
_MAX_AGE_SECONDS = 600.0
"""The age at which a report is rebuilt although the index is unchanged, because searches and dates change."""
_PAUSE_FACTOR, _RETRY_SECONDS = 5, 30.0
"""How long to pause after a report, as a multiple of its duration, and after a failure, in seconds."""
_QUESTIONS = FindingKind.UNANSWERED

_CHECKS = {
    FindingKind.DUPLICATE: find_duplicates,
    FindingKind.ORPHAN: find_orphans,
    FindingKind.BROKEN_LINK: find_broken_links,
    FindingKind.MENTION: find_mentions,
    FindingKind.STALE: find_stale,
}

_MAX_DISMISSED = 10_000
"""Above this number, the oldest are dropped."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Made:
    """A finished report."""

    state: State
    at: float
    """In seconds of `time.monotonic`."""
    moment: str
    commit: str | None
    findings: dict[FindingKind, tuple[Finding, ...]]


class HealthReporter:
    """Build the report of one data directory and answer requests from it."""

    def __init__(
        self, settings: Settings, repository: Repository, manager: IndexManager, reader: ServingReader, find_questions: Check
    ) -> None:
        self._repository = repository
        self._checks = {**_CHECKS, FindingKind.UNANSWERED: find_questions}
        self._manager = manager
        self._reader = reader
        self._keeps_searches = settings.search_log
        self._dismissals = Dismissals(settings.data_dir / "health.json")
        self._changed = threading.Condition()
        self._made: _Made | None = None
        self._cooldown = Cooldown(_RETRY_SECONDS)
        self._message: str | None = None

    def _refresh(self) -> None:
        """Start a report unless the last one is current, and wait for it briefly."""
        if self._is_current(self._manager.stable_generation()) or self._cooldown.is_active:
            return
        self._manager.scheduler.run_within(0, SLOT, self._make_if_due)
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_current(self._manager.stable_generation()) or self._cooldown.is_active, _WAIT_SECONDS
            )

    def _is_current(self, generation: Generation | None) -> bool:
        made = self._made
        if made is None or generation is None or made.state != state_of(generation):
            return False
        return time.monotonic() - made.at < _MAX_AGE_SECONDS

    def _make_if_due(self) -> None:
        try:
            generation = self._manager.stable_generation()
            if generation is not None and generation.catalog.is_current and not self._is_current(generation):
                self._make(generation)
        except Stopped:
            return
        except Exception as error:
            self._message = f"the last report could not be created: {error}"
            self._cooldown.start()
            log.warning("the report on the wiki's health could not be created: %s", error, exc_info=error)
        finally:
            with self._changed:
                self._changed.notify_all()

    def _make(self, generation: Generation) -> None:
        state, commit, start = state_of(generation), generation.catalog.commit, time.monotonic()
        survey = Survey(
            generation,
            self._repository,
            self._manager.model.recipe.scale(generation),
            self._manager.index.pause,
            self._dismissals.__contains__,
            self._dismissals.private_id,
        )
        findings = {kind: tuple(check(survey)) for kind, check in self._checks.items()}
        end = time.monotonic()
        self._made, self._message = _Made(state, end, now(), commit, findings), None
        self._cooldown.start(_PAUSE_FACTOR * (end - start))
        log.info("the report on the health of %d pages was made in %.1f s", len(survey.by_path), end - start)

    def health(self, request: HealthRequest, urls: PageUrls = NO_URLS) -> HealthReport:
        """Return the requested findings."""
        self._refresh()
        index = self._reader.ask(self._reader.freshness) or self._reader.freshness(None)
        made = self._made
        asked = (request.kind,) if request.kind else tuple(FindingKind)
        counted = tuple(FindingKind) if request.counts_all else asked
        kinds = [kind for kind in counted if request.shows_queries or kind is not _QUESTIONS]
        linked = {page_key(path.strip("/")) for path in request.linked}
        findings: list[Finding] = []
        counts = []
        for kind in kinds:
            found = [each for each in (made.findings[kind] if made else ()) if not _is_linked(each, linked)]
            found = [structs.replace(each, is_dismissed=each.id in self._dismissals) for each in found]
            listed = sorted((each for each in found if each.is_open or request.dismissed), key=lambda each: each.is_dismissed)
            findings += (_addressed(each, urls) for each in listed[: request.limit] if kind in asked)
            dismissed = sum(each.is_dismissed for each in found)
            counts.append(FindingCount(kind, sum(each.is_open for each in found), dismissed))
        state = HealthState.READY if made else HealthState.UNAVAILABLE if self._message else HealthState.MAKING
        return HealthReport(
            findings=tuple(findings),
            counts=tuple(counts),
            open=sum(count.open for count in counts if count.kind in asked),
            state=state,
            is_current=self._is_current(self._manager.stable_generation()),
            made=made.moment if made else None,
            commit=made.commit if made else None,
            index=index,
            keeps_searches=self._keeps_searches and request.shows_queries,
            message=self._message,
        )

    def dismiss(self, request: DismissalRequest) -> DismissalAnswer:
        """Dismiss findings of the report, or restore them. Errors: `FindingNotFoundError`, `DismissalError`.

        Findings about searches do not exist for users who may not see searches.
        """
        self._refresh()
        made = self._made.findings.items() if self._made else ()
        known = {each.id: kind for kind, found in made for each in found}
        for each in request.findings:
            is_seen = request.shows_queries or known.get(each) is not _QUESTIONS
            if not is_seen or (each not in known and each not in self._dismissals):
                raise FindingNotFoundError(f"the report has no finding {each!r}; it may have been updated since")
        self._dismissals.change(request.findings, restore=request.restore)
        return DismissalAnswer(tuple(request.findings), not request.restore)


def _is_linked(finding: Finding, linked: Iterable[str]) -> bool:
    """Whether a finding is void because the wiki itself links to its page."""
    if finding.kind is FindingKind.ORPHAN:
        return page_key(finding.pages[0].path) in linked
    is_mention = finding.kind is FindingKind.MENTION
    return is_mention and finding.target is not None and page_key(finding.target.path) in linked


def _addressed(finding: Finding, urls: PageUrls) -> Finding:
    def addressed(place: PlaceInPage) -> PlaceInPage:
        return structs.replace(place, url=urls.of(place.path, place.anchor, place.kind))

    return structs.replace(
        finding,
        pages=tuple(map(addressed, finding.pages)),
        neighbours=tuple(map(addressed, finding.neighbours)),
        target=finding.target and addressed(finding.target),
        answered_by=finding.answered_by and addressed(finding.answered_by),
    )


class _Stored(Struct, frozen=True):
    dismissed: dict[str, str] = {}
    """Time of dismissal by id, oldest first."""
    secret: str = ""
    """The key of the private ids."""


class Dismissals:
    """The ids of dismissed findings. A damaged file counts as empty and is logged."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._changing = threading.Lock()
        stored = read_record(file, _Stored, "no finding about the wiki counts as dismissed") or _Stored()
        self._dismissed = dict(stored.dismissed)
        self._secret = stored.secret

    def __contains__(self, finding: str) -> bool:
        return finding in self._dismissed

    def private_id(self, finding: str) -> str:
        """Return an opaque id of a finding; only this wiki can resolve it."""
        with self._changing:
            if not self._secret:
                self._secret = secrets.token_hex(16)
                try:
                    self._store(self._dismissed)
                except OSError as error:
                    log.warning("the key of ids cannot be stored, so that they change with the next start: %s", error)
        return hmac.digest(self._secret.encode(), finding.encode(), "sha256").hex()[:16]

    def change(self, findings: Sequence[str], *, restore: bool) -> None:
        """Dismiss or restore findings. If that cannot be stored, raise `DismissalError` and change nothing."""
        with self._changing:
            changed = {each: when for each, when in self._dismissed.items() if each not in findings}
            if not restore:
                changed.update(dict.fromkeys(findings, now()))
            changed = dict(list(changed.items())[-_MAX_DISMISSED:])
            try:
                self._store(changed)
            except OSError as error:
                hint = "let the wiki's user write to the data directory, or make room on its disk"
                raise DismissalError(f"the dismissal cannot be stored: {error}; {hint}") from error
            self._dismissed = changed

    def _store(self, dismissed: dict[str, str]) -> None:
        write_atomically(self._file, json.dumps({"dismissed": dismissed, "secret": self._secret}))
