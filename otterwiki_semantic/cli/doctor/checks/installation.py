"""What the plugin stands on: Python, SQLite, the wiki, and whether the plugin is where the wiki looks for it."""

from __future__ import annotations

import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path

import otterwiki_semantic
from otterwiki_semantic import __version__
from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.legacy_settings import EARLIER_DISTRIBUTION

NAME = "otterwiki-semantic"
_PYTHON = (3, 11)


def check_installation(_: DoctorContext) -> Iterator[Finding]:
    """See to Python, SQLite, this package, and how the wiki finds it."""
    yield _python()
    yield _sqlite()
    yield from _package()
    yield from _plugins(entry_points(group="otterwiki"))


def _python() -> Finding:
    detail = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < _PYTHON:
        return problem("Python", detail, "run the wiki with Python 3.11 or newer")
    return ok("Python", detail)


def _sqlite() -> Finding:
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    except sqlite3.Error as error:
        hint = "take a Python whose sqlite3 has FTS5: those of the distributions and of python.org do"
        return problem("SQLite", f"{sqlite3.sqlite_version} has no FTS5: {error}", hint)
    return ok("SQLite", f"{sqlite3.sqlite_version}, with FTS5")


def _package() -> Iterator[Finding]:
    place = Path(otterwiki_semantic.__file__).parent
    try:
        installed = version(NAME)
    except PackageNotFoundError:
        hint = "install it into the wiki's environment: pip install . in its checkout"
        yield problem(NAME, f"{__version__} in {place} is not installed: the wiki cannot find it", hint)
        return
    if installed != __version__:
        detail = f"{place} is version {__version__}, but {installed} is what is installed"
        yield problem(NAME, detail, "install it again: pip install --force-reinstall . in its checkout")
        return
    yield ok(NAME, f"{installed} in {place}")


def _plugins(entries: Iterable[EntryPoint]) -> Iterator[Finding]:
    """See which plugins the wiki of this environment loads."""
    found = {entry.value: entry.dist.name if entry.dist else entry.name for entry in entries}
    ours = [value for value in found if value.startswith("otterwiki_semantic.")]
    earlier = [value for value, name in found.items() if name.lower().replace("_", "-") == EARLIER_DISTRIBUTION]
    others = sorted({name for value, name in found.items() if value not in {*ours, *earlier}})
    if ours:
        beside = f"; other plugins: {', '.join(others)}" if others else ""
        yield ok("plugin", f"the wiki finds it by its entry point{beside}")
    else:
        hint = "install it again: pip install --force-reinstall . in its checkout"
        yield problem("plugin", "there is no entry point in the group otterwiki that leads to it", hint)
    if earlier:
        detail = f"{EARLIER_DISTRIBUTION} is installed, too: both answer the same addresses"
        yield problem("earlier plugin", detail, f"pip uninstall {EARLIER_DISTRIBUTION}, and restart the wiki")
    try:
        yield ok("An Otter Wiki", version("otterwiki"))
    except PackageNotFoundError:
        yield note(
            "An Otter Wiki", "it is not installed in this environment", "to see to a wiki, run this with the wiki's own Python"
        )
