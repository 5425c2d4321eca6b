"""Check the settings: whether they are valid, which are set, and where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.settings import PREFIX, SECRETS, SETTING_NAMES, legacy_settings

_FILE = "OTTERWIKI_SETTINGS"
_PRIVATE = {*SECRETS.values(), "SEMANTIC_MODEL_OPTIONS"}
"""Settings whose value is not shown: secrets, and what may hold some."""
_PLACES = ("REPOSITORY", "SEMANTIC_DATA_DIR")
_HINT = "correct this, then restart the wiki; until then its search is off"
_NO_REPOSITORY_HINT = "set REPOSITORY as for the wiki, set OTTERWIKI_SETTINGS to its settings.cfg, or give --repository"


def check_settings(context: DoctorContext) -> Iterator[Finding]:
    """Check the wiki's settings.cfg and each setting; list those that are set."""
    yield from _file(context)
    yield from (problem("settings", reason, _HINT) for reason in context.wrong.values())
    if context.settings is None:
        reason = context.settings_error or "they cannot be read"
        yield problem("settings", reason, _NO_REPOSITORY_HINT if reason.startswith("no repository") else _HINT)
    yield _set(context)
    for notice in legacy_settings(context.wiki_config, context.environment).notices:
        yield note("old setting", notice, "remove the variable, or set what it names")


def _file(context: DoctorContext) -> Iterator[Finding]:
    name = context.environment.get(_FILE)
    if not name:
        return
    if context.config_error is not None:
        yield problem(
            "settings.cfg", context.config_error, f"correct the file, or the path in {_FILE}; the wiki reads it as well"
        )
    elif not Path(name).is_absolute():
        yield note("settings.cfg", f"{_FILE} is {name}, which depends on the current directory", "set it to the absolute path")
    else:
        yield ok("settings.cfg", name)


def _set(context: DoctorContext) -> Finding:
    names = [name for name in ("REPOSITORY", *SETTING_NAMES) if context.given(name)]
    shown = ", ".join(f"{_value(context, name)} ({_source(context, name)})" for name in names)
    return ok("settings", f"set: {shown}" if names else "none is set")


def _source(context: DoctorContext, name: str) -> str:
    return "environment" if context.environment.get(name) else "settings.cfg"


def _value(context: DoctorContext, name: str) -> str:
    """Return a setting with its value, unless that may contain a secret, as an invalid one may."""
    if name in _PRIVATE or name in context.wrong:
        return f"{name} is set"
    if name in _PLACES:  # options of the command line win over these
        return f"{name}={context.given(name)}"
    return f"{name}={getattr(context.services, name.removeprefix(PREFIX).lower())}"
