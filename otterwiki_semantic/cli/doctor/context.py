"""What the doctor is told: the settings, as far as they can be read, and the running wiki's address."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from otterwiki_semantic.content import Repository
from otterwiki_semantic.core.errors import ConfigError, RepositoryError
from otterwiki_semantic.core.settings import PREFIX, SECRETS, Settings, read_settings

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD|SQLALCHEMY_DATABASE_URI")
_SHORTEST_SECRET = 4
"""Characters from which on a secret is hidden; shorter ones are parts of ordinary words."""
_ANY = Path("/wiki")


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """What is looked at.

    `wiki_config` is what the wiki's ``settings.cfg`` says, `config_error` why it cannot be read. `wrong` has the settings that
    cannot be understood, alone or with another one, each with the reason, and `settings` all others; it is None without a
    place for the repository and the index, as `settings_error` says, and then only `placeless` has them, whose places mean
    nothing. `url` is the running wiki's address, if it is to be asked.
    """

    environment: Mapping[str, str]
    wiki_config: Mapping[str, Any]
    config_error: str | None
    wrong: Mapping[str, str]
    settings: Settings | None
    settings_error: str | None
    placeless: Settings
    url: str | None

    @property
    def services(self) -> Settings:
        """What is said of models and servers, which need no place."""
        return self.settings or self.placeless

    def given(self, name: str) -> str:
        """Give a setting as it was written, from where it counts; empty if it is not set."""
        return (self.environment.get(name) or str(self.wiki_config.get(name) or "")).strip()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must not be shown: the wiki's, and those of whatever is named as providers name their keys."""
        sources = (self.environment, self.wiki_config)
        secret = {
            str(value).strip()
            for source in sources
            for name, value in source.items()
            if name in SECRETS.values() or _SECRET_NAME.search(name)
        }
        return tuple(sorted((value for value in secret if len(value) >= _SHORTEST_SECRET), key=len, reverse=True))


def make_context(
    environment: Mapping[str, str],
    wiki_config: Mapping[str, Any],
    config_error: str | None = None,
    repository: Path | None = None,
    data_dir: Path | None = None,
    url: str | None = None,
) -> DoctorContext:
    """Give the case; a subfolder of a repository stands for the whole, as everywhere on the command line."""
    wrong = dict(_wrong(environment, wiki_config))
    wrong |= _wrong_together(*(_without(wrong, source) for source in (wiki_config, environment)))
    config, variables = (_without(wrong, source) for source in (wiki_config, environment))
    placeless = read_settings(config, variables, _ANY, _ANY)
    settings, error = None, None
    try:
        settings = read_settings(config, variables, repository, data_dir)
        with suppress(RepositoryError, OSError):
            settings = read_settings(config, variables, Repository(settings.repository).root, data_dir)
    except (ConfigError, OSError, ValueError) as problem:
        error = str(problem)
    return DoctorContext(environment, wiki_config, config_error, wrong, settings, error, placeless, url)


def _wrong(environment: Mapping[str, str], wiki_config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give each setting that cannot be understood, not only the first, and why."""
    for name in _named(environment, wiki_config):
        reason = _reason(_of(name, wiki_config), _of(name, environment))
        if reason is not None:
            yield name, reason.partition("; the settings are:")[0]


def _wrong_together(wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Give settings of which each can be understood, but not beside the others, and why; without them the others can."""
    wrong: dict[str, str] = {}
    names = _named(environment, wiki_config)
    while names and (reason := _reason(_without(wrong, wiki_config), _without(wrong, environment))) is not None:
        wrong[names.pop(names.index(min(names, key=partial(_place_in, reason))))] = reason
    return wrong


def _reason(wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    """Tell why settings cannot be understood, wherever the wiki is; None if they can."""
    try:
        read_settings(wiki_config, environment, _ANY, _ANY)
    except ConfigError as error:
        return str(error)
    return None


def _place_in(text: str, name: str) -> int:
    place = text.find(name)
    return place if place >= 0 else len(text)


def _named(*sources: Mapping[str, Any]) -> list[str]:
    return sorted({name for source in sources for name in source if name.startswith(PREFIX)})


def _of(name: str, source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source[name]} if name in source else {}


def _without(names: Collection[str], source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in names}


class Level(StrEnum):
    """How a thing is: as it should be, worth knowing, or in the way."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """How one thing is. `hint` is what to do about it: a problem always has one."""

    level: Level
    what: str
    detail: str
    hint: str = ""


def ok(what: str, detail: str) -> Finding:
    """Tell that a thing is as it should be."""
    return Finding(Level.OK, what, detail)


def note(what: str, detail: str, hint: str = "") -> Finding:
    """Tell something worth knowing, which keeps nothing from working."""
    return Finding(Level.NOTE, what, detail, hint)


def problem(what: str, detail: str, hint: str) -> Finding:
    """Tell what keeps something from working, and what to do about it."""
    return Finding(Level.PROBLEM, what, detail, hint)
