"""The settings: whether they can be read, which are set, and where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.config import PREFIX, SECRETS, SETTING_NAMES, moved_in
from otterwiki_semantic.doctor.case import Case
from otterwiki_semantic.doctor.finding import Finding, note, ok, problem

_FILE = "OTTERWIKI_SETTINGS"
_PRIVATE = {*SECRETS.values(), "SEMANTIC_MODEL_OPTIONS"}
"""Settings whose value is not shown: secrets, and what may hold some."""
_PLACES = ("REPOSITORY", "SEMANTIC_DATA_DIR")
_CURE = "correct it, then restart the wiki: a bad setting keeps it from starting"


def check_settings(case: Case) -> Iterator[Finding]:
    """See to the wiki's own file, to each setting, and name those that are set."""
    yield from _file(case)
    yield from (problem("settings", _without_value(name, reason), _CURE) for name, reason in case.wrong.items())
    if case.settings is None:
        cure = "set REPOSITORY as the wiki has it, name its settings.cfg with OTTERWIKI_SETTINGS, or give --repository"
        yield problem("settings", case.settings_error or "they cannot be read", cure)
    yield _set(case)
    for notice in moved_in(case.wiki_config, case.environment).notices:
        yield note("earlier plugin", notice, "remove the variable, or set what it names")


def _without_value(name: str, reason: str) -> str:
    """Give why a setting is wrong, without its value if that may hold a secret."""
    if name not in _PRIVATE:
        return reason
    return f"{name} is not what it may be; allowed: {reason.partition('; allowed: ')[2]}"


def _file(case: Case) -> Iterator[Finding]:
    name = case.environment.get(_FILE)
    if not name:
        return
    if case.config_error is not None:
        yield problem("settings.cfg", case.config_error, f"correct the file, or the path in {_FILE}; the wiki reads it, too")
    elif not Path(name).is_absolute():
        yield note("settings.cfg", f"{_FILE} is {name}: the wiki looks for it from another directory", "give its whole path")
    else:
        yield ok("settings.cfg", name)


def _set(case: Case) -> Finding:
    names = [name for name in ("REPOSITORY", *SETTING_NAMES) if case.given(name)]
    shown = ", ".join(f"{_value(case, name)} ({_source(case, name)})" for name in names)
    return ok("settings", f"set: {shown}" if names else "none is set")


def _source(case: Case, name: str) -> str:
    return "environment" if case.environment.get(name) else "settings.cfg"


def _value(case: Case, name: str) -> str:
    """Give a setting with its value, if it can be shown; one that was not understood may hold anything."""
    if name in _PRIVATE or name in case.wrong or case.settings is None:
        return f"{name} is set"
    if name in _PLACES:  # options of the command line win over these
        return f"{name}={case.given(name)}"
    return f"{name}={getattr(case.settings, name.removeprefix(PREFIX).lower())}"
