"""Check the environment: Python, packages, the wiki's plugins, and the settings."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING

import otterwiki_semantic
from otterwiki_semantic import __version__
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.installation import NAME, pip_install, requirements
from otterwiki_semantic.core.legacy_names import EARLIER_DISTRIBUTION
from otterwiki_semantic.core.settings import PREFIX, SECRETS, SETTING_NAMES, legacy_notices

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_WIKI = "otterwiki"
_EXTRAS = {
    "attachments": "search in attached PDF and office files",
    "mcp": "otterwiki-semantic mcp, the server for agents",
    "map": "the map of the wiki",
    "metrics": "metrics for Prometheus",
    "eval": "otterwiki-semantic eval --plot",
    "sentence-transformers": "models and rerankers of Sentence Transformers",
}
_REPLACEMENTS = {"chromadb": "chromadb-client"}
"""Packages that do in place of a required one; the client is enough for a ChromaDB server."""
_FILE = "OTTERWIKI_SETTINGS"
_PRIVATE = {*SECRETS.values(), "SEMANTIC_MODEL_OPTIONS", "SEMANTIC_ANSWERS_OPTIONS"}
"""Settings whose value is not shown: secrets, and values that may contain one."""
_PLACES = ("REPOSITORY", "SEMANTIC_DATA_DIR")
_HINT = "correct this, then restart the wiki; until then its search is off"
_NO_REPOSITORY_HINT = "set REPOSITORY as for the wiki, set OTTERWIKI_SETTINGS to its settings.cfg, or give --repository"


def check_installation(_: DoctorContext) -> Iterator[Finding]:
    """Check Python, SQLite, this package, and its entry point."""
    yield ok("Python", f"{platform.python_version()}, {sys.executable}")
    yield _sqlite()
    yield _package()
    yield from _plugins(entry_points(group="otterwiki"))


def _sqlite() -> Finding:
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    except sqlite3.Error as error:
        hint = "use a Python whose sqlite3 has FTS5, as those of Linux distributions and python.org have"
        return problem("SQLite", f"{sqlite3.sqlite_version} has no FTS5: {error}", hint)
    return ok("SQLite", f"{sqlite3.sqlite_version}, with FTS5")


def _package() -> Finding:
    place, installed = Path(otterwiki_semantic.__file__).parent, installed_version(NAME)
    if installed is None:
        hint = f"install it into the wiki's environment: {pip_install()}"
        return problem(NAME, f"{__version__} in {place} is not installed: the wiki cannot find it", hint)
    if installed != __version__:
        detail = f"{place} is version {__version__}, but {installed} is installed"
        return problem(NAME, detail, f"install it again: {pip_install(reinstall=True)}")
    return ok(NAME, f"{installed} in {place}")


def _plugins(entries: Iterable[EntryPoint]) -> Iterator[Finding]:
    found = {entry.value: entry.dist.name if entry.dist else entry.name for entry in entries}
    ours = [value for value in found if value.startswith("otterwiki_semantic.")]
    earlier = [value for value, name in found.items() if name.lower().replace("_", "-") == EARLIER_DISTRIBUTION]
    others = sorted({name for value, name in found.items() if value not in {*ours, *earlier}})
    if ours:
        rest = f"; other plugins: {', '.join(others)}" if others else ""
        yield ok("plugin", f"a wiki in this environment finds it by its entry point{rest}")
    else:
        hint = f"install it again: {pip_install(reinstall=True)}"
        yield problem("plugin", "it has no entry point in the group otterwiki", hint)
    if earlier:
        detail = f"{EARLIER_DISTRIBUTION} is also installed, and serves the same URLs"
        yield problem("earlier plugin", detail, f"pip uninstall {EARLIER_DISTRIBUTION}, and restart the wiki")
    if installed := installed_version(_WIKI):
        yield ok("An Otter Wiki", installed)
    else:
        hint = "to check a wiki, run this with the wiki's own Python; to install one here: pip install otterwiki"
        yield note("An Otter Wiki", "not installed in this environment", hint)


def check_packages(_: DoctorContext) -> Iterator[Finding]:
    """Check the requirements of this package and of the wiki, the version of the wiki, and the extras."""
    required = [(name, requirement) for name in (NAME, _WIKI) for requirement in requirements(name)]
    unmet = [unmet for who, requirement in required if (unmet := _unmet(who, requirement)) is not None]
    yield from unmet
    if not unmet:
        both = f"{NAME} and the wiki" if installed_version(_WIKI) else NAME
        yield ok("packages", f"all {len(required)} requirements of {both} are met")
    for requirement in requirements(NAME, "wiki"):
        if requirement.name == _WIKI and installed_version(_WIKI) and (unmet_wiki := _unmet(NAME, requirement)) is not None:
            yield unmet_wiki
    for extra, purpose in _EXTRAS.items():
        if any(_unmet(NAME, requirement) for requirement in requirements(NAME, extra)):
            yield note(f"extra {extra}", f"not installed: {purpose}", pip_install(extra))
        else:
            yield ok(f"extra {extra}", f"installed: {purpose}")


def installed_version(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _unmet(who: str, requirement: Requirement) -> Finding | None:
    """Report a package that is missing or has the wrong version; None if the requirement is met."""
    installed = installed_version(requirement.name) or installed_version(_REPLACEMENTS.get(requirement.name, requirement.name))
    if installed is not None and requirement.specifier.contains(installed, prereleases=True):
        return None
    wanted = f"{requirement.name}{requirement.specifier}"
    detail = f"{who} requires {wanted}, but {installed or 'none'} is installed"
    return problem("packages", detail, f'pip install "{wanted}"')


def check_settings(context: DoctorContext) -> Iterator[Finding]:
    """Check the wiki's settings.cfg and each setting; list those that are set."""
    yield from _file(context)
    yield from (problem("settings", reason, _HINT) for reason in context.wrong.values())
    if context.settings is None:
        reason = context.settings_error or "they cannot be read"
        yield problem("settings", reason, _NO_REPOSITORY_HINT if reason.startswith("no repository") else _HINT)
    names = [name for name in ("REPOSITORY", *SETTING_NAMES) if context.given(name)]
    shown = (
        f"{_value(context, name)} ({'environment' if context.environment.get(name) else 'settings.cfg'})" for name in names
    )
    yield ok("settings", f"set: {', '.join(shown)}" if names else "none is set")
    for notice in legacy_notices(context.wiki_config, context.environment):
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


def _value(context: DoctorContext, name: str) -> str:
    """Return a setting with its value, unless that may contain a secret, as an invalid one may."""
    if name in _PRIVATE or name in context.wrong:
        return f"{name} is set"
    if name in _PLACES:  # options of the command line take precedence
        return f"{name}={context.given(name)}"
    return f"{name}={getattr(context.services, name.removeprefix(PREFIX).lower())}"
