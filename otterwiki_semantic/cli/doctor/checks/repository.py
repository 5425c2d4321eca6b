"""Check git, and that this user can read the wiki's repository."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import RepositoryError
from otterwiki_semantic.core.hints import SHOW_CAPITALS
from otterwiki_semantic.core.languages import ENGLISH, SNOWBALL
from otterwiki_semantic.core.records import PageUrls
from otterwiki_semantic.core.settings import BUNDLED, EXCLUDE, Settings, read_flag

_GIT_SECONDS = 10
_SAMPLED_PAGES, _SAMPLED_BYTES = 60, 20_000
_MIN_SHARE = 0.1
"""The share of pages in a language that is worth to be named."""


def user_name(uid: int) -> str:
    """Return the name and id of a user."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} ({uid})"
    except KeyError:
        return str(uid)


def check_repository(context: DoctorContext) -> Iterator[Finding]:
    """Check git, the repository, and its pages."""
    git = shutil.which("git", path=context.environment.get("PATH"))
    if git is None:
        yield problem("git", "not found on the PATH of this process", "install it: apt-get install git")
        return
    version = subprocess.run([git, "--version"], capture_output=True, text=True, timeout=_GIT_SECONDS, check=False).stdout
    yield ok("git", f"{version.removeprefix('git version ').strip()}, {git}")
    if context.settings is not None:
        yield from _repository(context, context.settings)


def _repository(context: DoctorContext, settings: Settings) -> Iterator[Finding]:
    place = settings.repository
    if not place.exists():
        yield problem("repository", f"{place} does not exist", "correct REPOSITORY, or mount its file system")
        return
    try:
        repository = Repository(place, settings.exclude)
        head = repository.head()
        if head is None:
            yield note("repository", f"{place} has no commit yet: there is nothing to index")
            return
        pages, excluded = repository.page_blobs(head), repository.excluded_pages(head)
        idle = [pattern for pattern in settings.exclude if not repository.matching_pages(head, [pattern])]
    except RepositoryError as error:
        reason = str(error)
        yield problem("repository", reason.splitlines()[0], _hint(place, reason))
        return
    left_out = f", without {len(excluded)} that {EXCLUDE} excludes" if excluded else ""
    yield ok("repository", f"{place}, {len(pages)} pages at {head[:12]}{left_out}")
    if idle:
        detail = f"no page's file matches {', '.join(idle)} of {EXCLUDE}"
        yield note("repository", detail, "files have their case and end in .md: notes.md, Notes/*.md, **/notes.md, notes/**")
    hidden = [path for path in pages if not PageUrls(retains_case=_retains_case(context)).shows(path)]
    if hidden:
        detail = f"the wiki cannot show {len(hidden)} of them, such as {min(hidden)}: their names have capitals, and"
        yield note("repository", f"{detail} RETAIN_PAGE_NAME_CASE is off, unless it is on in its preferences", SHOW_CAPITALS)
    yield from _synonyms(context, {*pages, *excluded})
    yield from _languages(context, repository, sorted(pages.values()))


def _languages(context: DoctorContext, repository: Repository, blobs: Sequence[str]) -> Iterator[Finding]:
    """Look at a sample of pages: the bundled model reads English only."""
    if context.settings is None or context.settings.model != BUNDLED or not blobs:
        return
    from otterwiki_semantic.content.analysis import detect_language

    sample = blobs[:: -(-len(blobs) // _SAMPLED_PAGES)]
    texts = (content.decode(errors="replace") for content in repository.read_blobs(sample, _SAMPLED_BYTES))
    found = Counter(detect_language([text], (ENGLISH, *sorted(SNOWBALL.keys() - {ENGLISH}))) for text in texts)
    others = [language for language, count in found.most_common() if language != ENGLISH and count >= _MIN_SHARE * len(sample)]
    if found[ENGLISH] < len(sample) / 2 and others:
        names = ", ".join(SNOWBALL[language].capitalize() for language in others)
        codes = ",".join((*others, *([ENGLISH] if found[ENGLISH] else [])))
        detail = f"most pages are not English but {names}, which the bundled model does not read"
        yield note("languages", detail, f"set SEMANTIC_MODEL=multilingual (see docs/models.md) and SEMANTIC_LANGUAGES={codes}")


def _synonyms(context: DoctorContext, pages: Container[str]) -> Iterator[Finding]:
    page = context.settings.synonyms if context.settings else None
    if page is not None and page not in pages:
        hint = "create it, or correct SEMANTIC_SYNONYMS; upper and lower case are those of its file"
        yield problem("synonyms", f"the repository has no page {page!r}", hint)


def _retains_case(context: DoctorContext) -> bool:
    try:
        return read_flag(context.given("RETAIN_PAGE_NAME_CASE"))
    except ValueError:
        return False


def _hint(place: Path, reason: str) -> str:
    """Return what to do if git fails: most often the repository belongs to another user."""
    owner = place.stat().st_uid
    if "dubious ownership" in reason or owner != os.geteuid():
        return (
            f"run this, and the wiki, as the user {user_name(owner)} that the repository belongs to (you are"
            f" {user_name(os.geteuid())}); or let git read it: git config --global --add safe.directory {place}"
        )
    if "not a git repository" in reason:
        return "correct REPOSITORY, or create the repository"
    return f"run git itself: git -C {place} log, git -C {place} fsck"
