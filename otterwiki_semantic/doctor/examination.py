"""All checks, one after the other. One that fails itself is a finding, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from otterwiki_semantic.doctor.case import Case
from otterwiki_semantic.doctor.configuration import check_settings
from otterwiki_semantic.doctor.data_directory import check_data_directory
from otterwiki_semantic.doctor.finding import Finding, problem
from otterwiki_semantic.doctor.git import check_repository
from otterwiki_semantic.doctor.index import check_index
from otterwiki_semantic.doctor.installation import check_installation
from otterwiki_semantic.doctor.model import check_model
from otterwiki_semantic.doctor.packages import check_packages
from otterwiki_semantic.doctor.room import check_room
from otterwiki_semantic.doctor.running_wiki import check_wiki
from otterwiki_semantic.doctor.vector_store import check_vector_store

_CHECKS: tuple[tuple[str, Callable[[Case], Iterable[Finding]]], ...] = (
    ("installation", check_installation),
    ("packages", check_packages),
    ("settings", check_settings),
    ("repository", check_repository),
    ("data directory", check_data_directory),
    ("room", check_room),
    ("model", check_model),
    ("ChromaDB", check_vector_store),
    ("index", check_index),
    ("wiki", check_wiki),
)
_LONGEST_TEXT = 600


def examine(case: Case) -> Iterator[Finding]:
    """Give what each check finds, as it is found."""
    for what, check in _CHECKS:
        for finding in _guarded(what, check, case):
            yield replace(finding, detail=_shown(finding.detail, case), cure=_shown(finding.cure, case))


def _guarded(what: str, check: Callable[[Case], Iterable[Finding]], case: Case) -> Iterator[Finding]:
    """Give what a check finds, up to where it fails."""
    try:
        yield from check(case)
    except ModuleNotFoundError as error:
        cure = 'install the package again, with what it needs: pip install --force-reinstall "otterwiki-semantic"'
        yield problem(what, f"the Python package {error.name} is missing", cure)
    except Exception as error:  # noqa: BLE001 - whatever is broken here is what was asked for
        cure = "see whether another problem explains it; if none does, report it with this line"
        yield problem(what, f"this could not be checked: {type(error).__name__}: {error}", cure)


def _shown(text: str, case: Case) -> str:
    """Give a text as one line that can be shown: without secrets, and without characters that a terminal would obey."""
    for secret in case.secrets:
        text = text.replace(secret, "(secret)")
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(text.split()))
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"
