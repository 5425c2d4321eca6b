"""What the doctor is told: the settings, as far as they can be read, and the running wiki's address."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otterwiki_semantic.config import PREFIX, SECRETS, Settings, read_settings
from otterwiki_semantic.errors import ConfigError, RepositoryError
from otterwiki_semantic.repository import Repository

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSWORD|SQLALCHEMY_DATABASE_URI")
_SHORTEST_SECRET = 6
"""Characters; of a shorter value each word that has it would be hidden, and it hides nothing."""
_ANY = Path("/wiki")


@dataclass(frozen=True, slots=True)
class Case:
    """What is looked at.

    `wiki_config` is what the wiki's ``settings.cfg`` says, `config_error` why it cannot be read. `wrong` has the settings that
    cannot be understood, each with the reason, and `settings` all others; it is None without a repository, as
    `settings_error` says. `url` is the running wiki's address, if it is to be asked.
    """

    environment: Mapping[str, str]
    wiki_config: Mapping[str, Any]
    config_error: str | None
    wrong: Mapping[str, str]
    settings: Settings | None
    settings_error: str | None
    url: str | None

    def given(self, name: str) -> str:
        """Give a setting as it was written, from where it counts; empty if it is not set."""
        return (self.environment.get(name) or str(self.wiki_config.get(name) or "")).strip()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every value that must not be shown: the wiki's, and those of whatever is named as providers name their keys."""
        sources = (self.environment, self.wiki_config)
        ours = {str(source.get(name) or "").strip() for name in SECRETS.values() for source in sources}
        named = {str(value).strip() for source in sources for name, value in source.items() if _SECRET_NAME.search(name)}
        values = (ours - {""}) | {value for value in named if len(value) >= _SHORTEST_SECRET}
        return tuple(sorted(values, key=len, reverse=True))


def make_case(
    environment: Mapping[str, str],
    wiki_config: Mapping[str, Any],
    config_error: str | None = None,
    repository: Path | None = None,
    data_dir: Path | None = None,
    url: str | None = None,
) -> Case:
    """Give the case; a subfolder of a repository stands for the whole, as everywhere on the command line."""
    wrong = dict(_wrong(environment, wiki_config))
    config, variables = (_without(wrong, source) for source in (wiki_config, environment))
    settings, error = None, None
    try:
        settings = read_settings(config, variables, repository, data_dir)
        with suppress(RepositoryError, OSError):
            settings = read_settings(config, variables, Repository(settings.repository).root, data_dir)
    except (ConfigError, OSError, ValueError) as problem:
        error = str(problem)
    return Case(environment, wiki_config, config_error, wrong, settings, error, url)


def _wrong(environment: Mapping[str, str], wiki_config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give each setting that cannot be understood, not only the first, and why."""
    for name in sorted({name for source in (environment, wiki_config) for name in source if name.startswith(PREFIX)}):
        try:
            read_settings(_of(name, wiki_config), _of(name, environment), _ANY)
        except ConfigError as error:
            yield name, str(error).partition("; the settings are:")[0]


def _of(name: str, source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: source[name]} if name in source else {}


def _without(names: Collection[str], source: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in source.items() if name not in names}
