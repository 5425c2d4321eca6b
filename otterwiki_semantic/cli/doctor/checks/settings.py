"""The settings: whether they can be read, which are set, and where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.settings import PREFIX, SECRETS, SETTING_NAMES, legacy_settings

_FILE = "OTTERWIKI_SETTINGS"
_PRIVATE = {*SECRETS.values(), "SEMANTIC_MODEL_OPTIONS"}
"""Settings whose value is not shown: secrets, and what may hold some."""
_PLACES = ("REPOSITORY", "SEMANTIC_DATA_DIR")
_HINT = "do what it says, then restart the wiki: a bad setting keeps it from starting"
_NAME_IT = "set REPOSITORY as the wiki has it, name its settings.cfg with OTTERWIKI_SETTINGS, or give --repository"


def check_settings(case: DoctorContext) -> Iterator[Finding]:
    """See to the wiki's own file, to each setting, and name those that are set."""
    yield from _file(case)
    yield from (problem("settings", reason, _HINT) for reason in case.wrong.values())
    if case.settings is None:
        reason = case.settings_error or "they cannot be read"
        yield problem("settings", reason, _NAME_IT if reason.startswith("no repository") else _HINT)
    yield _set(case)
    for notice in legacy_settings(case.wiki_config, case.environment).notices:
        yield note("earlier plugin", notice, "remove the variable, or set what it names")


def _file(case: DoctorContext) -> Iterator[Finding]:
    name = case.environment.get(_FILE)
    if not name:
        return
    if case.config_error is not None:
        yield problem("settings.cfg", case.config_error, f"correct the file, or the path in {_FILE}; the wiki reads it, too")
    elif not Path(name).is_absolute():
        yield note("settings.cfg", f"{_FILE} is {name}: the wiki looks for it from another directory", "give its whole path")
    else:
        yield ok("settings.cfg", name)


def _set(case: DoctorContext) -> Finding:
    names = [name for name in ("REPOSITORY", *SETTING_NAMES) if case.given(name)]
    shown = ", ".join(f"{_value(case, name)} ({_source(case, name)})" for name in names)
    return ok("settings", f"set: {shown}" if names else "none is set")


def _source(case: DoctorContext, name: str) -> str:
    return "environment" if case.environment.get(name) else "settings.cfg"


def _value(case: DoctorContext, name: str) -> str:
    """Give a setting with its value, if it can be shown; one that was not understood may hold anything."""
    if name in _PRIVATE or name in case.wrong:
        return f"{name} is set"
    if name in _PLACES:  # options of the command line win over these
        return f"{name}={case.given(name)}"
    return f"{name}={getattr(case.services, name.removeprefix(PREFIX).lower())}"
