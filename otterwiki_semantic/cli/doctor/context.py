"""The input and the findings of the checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
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
"""Characters from which a secret is hidden; shorter ones are parts of ordinary words."""
_ANY_PATH = Path("/wiki")


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """The valid settings, and the URL of the running wiki."""

    environment: Mapping[str, str]
    wiki_config: Mapping[str, Any]
    """The wiki's ``settings.cfg``."""
    config_error: str | None
    """Why the file cannot be read."""
    wrong: Mapping[str, str]
    """Invalid settings, alone or in combination, with the reasons."""
    settings: Settings | None
    """All other settings; None without a repository and a data directory."""
    settings_error: str | None
    """Why there are no settings."""
    without_paths: Settings
    """All valid settings, with placeholder paths."""
    url: str | None

    @property
    def services(self) -> Settings:
        """The settings of models and servers, which need no paths."""
        return self.settings or self.without_paths

    def given(self, name: str) -> str:
        """Return the raw value of a setting; empty if it is not set. The environment takes precedence."""
        return (self.environment.get(name) or str(self.wiki_config.get(name) or "")).strip()

    @property
    def secrets(self) -> tuple[str, ...]:
        """All values that must not be shown: secrets of the wiki, and variables named like the keys of providers."""
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
    """Read the settings; a subdirectory of a repository is read as the whole, as everywhere on the command line."""
    wrong = _wrong(wiki_config, environment)
    config, variables = (_without(wrong, source) for source in (wiki_config, environment))
    without_paths = read_settings(config, variables, _ANY_PATH, _ANY_PATH)
    settings, error = None, None
    try:
        settings = read_settings(config, variables, repository, data_dir)
        with suppress(RepositoryError, OSError):
            settings = read_settings(config, variables, Repository(settings.repository).root, data_dir)
    except (ConfigError, OSError, ValueError) as problem:
        error = str(problem)
    return DoctorContext(environment, wiki_config, config_error, wrong, settings, error, without_paths, url)


def _wrong(wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return all invalid settings with the reasons, ignoring the paths: leave out the one that an error names first, repeat."""
    wrong: dict[str, str] = {}
    valid = {name for name in (*wiki_config, *environment) if name.startswith(PREFIX)}
    while valid and (reason := _reason(wrong, wiki_config, environment)) is not None:
        found = [name for name in re.findall(r"\w+", reason) if name in valid]
        named_first = found[0] if found else min(valid)
        valid.remove(named_first)
        wrong[named_first] = _reason({*valid, *wrong}, wiki_config, environment) or reason  # one error may name several
    return dict(sorted(wrong.items()))


def _reason(ignored: Collection[str], wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> str | None:
    try:
        read_settings(_without(ignored, wiki_config), _without(ignored, environment), _ANY_PATH, _ANY_PATH)
    except ConfigError as error:
        return str(error).partition("; the settings are:")[0]
    return None


def _without(names: Collection[str], source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in names}


class Level(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of a check."""

    level: Level
    what: str
    detail: str
    hint: str = ""
    """What to do; a problem always has a hint."""


ok, note, problem = (partial(Finding, level) for level in Level)
"""A correct state; a fact that is worth knowing and breaks nothing; a failure, with what to do about it."""
