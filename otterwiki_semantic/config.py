"""Every setting, read once: from the environment first, then from the wiki's own configuration."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from otterwiki_semantic.errors import ConfigError

PREFIX = "SEMANTIC_"
MODELS = ("minilm",)
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the plugin and the command line were told.

    `repository` is the wiki's git repository, `data_dir` where the index lives, `sync_interval` the seconds between two looks
    at HEAD, `threads` the texts embedded at a time (0: one for each processor), `eval_queries` the judged questions that a new
    index has to answer as well as the old one, `api_key` what programs authenticate with, `chroma_url` the ChromaDB server that
    holds the vectors (None: ChromaDB runs in the process that owns the index), `related` whether related pages are shown beside
    the wiki's pages, `search_log` whether searches are noted, `map` whether a map of the wiki is made.
    """

    repository: Path
    data_dir: Path
    model: str = "minilm"
    sync_interval: float = 60.0
    threads: int = 0
    eval_queries: Path | None = None
    api_key: str | None = field(default=None, repr=False)
    chroma_url: str | None = None
    related: bool = True
    search_log: bool = False
    map: bool = True


def _number(least: float, most: float) -> Callable[[str], float]:
    def read(value: str) -> float:
        number = float(value)
        if not least <= number <= most:
            raise ValueError
        return number

    return read


def _one_of(*values: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if value not in values:
            raise ValueError
        return value

    return read


def read_flag(value: str) -> bool:
    """Give true or false, from a text in any case; `ValueError` for another one."""
    text = value.strip().lower()
    if text not in _FLAGS:
        raise ValueError(value)
    return _FLAGS[text]


def _server_url(value: str) -> str:
    if "@" in value:  # the value is not repeated: it may hold a password
        raise ConfigError("SEMANTIC_CHROMA_URL holds a user name or a password, which it may not; allowed: http://host:port")
    found = re.fullmatch(r"(https?://(?:[\w.-]+|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?)/?", value.lower(), re.ASCII)
    if found is None or (found[3] and not 0 < int(found[3]) < 65536):
        raise ValueError
    if found[2]:
        IPv6Address(found[2])
    return found[1]


def _readable_file(value: str) -> Path:
    path = Path(value).absolute()
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ValueError
    return path


_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "SEMANTIC_CHROMA_URL": (_server_url, "http://host:port or https://host:port, without a path"),
    "SEMANTIC_MAP": (read_flag, "true or false"),
    "SEMANTIC_MODEL": (_one_of(*MODELS), f"one of: {', '.join(MODELS)}"),
    "SEMANTIC_RELATED": (read_flag, "true or false"),
    "SEMANTIC_SYNC_INTERVAL": (_number(1, 86_400), "seconds, 1 to 86400"),
    "SEMANTIC_THREADS": (lambda value: int(_number(0, 256)(str(int(value)))), "a whole number, 0 to 256"),
    "SEMANTIC_SEARCH_LOG": (read_flag, "true or false"),
    "SEMANTIC_EVAL_QUERIES": (_readable_file, "the path of a file that can be read"),
}
SETTING_NAMES = ("OTTERWIKI_API_KEY", "SEMANTIC_DATA_DIR", *_READERS)
"""Every setting's name, beside the wiki's own ``REPOSITORY``."""


def read_settings(
    wiki_config: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    repository: Path | None = None,
    data_dir: Path | None = None,
) -> Settings:
    """Give the settings; `repository` and `data_dir`, where given, win over what is configured.

    Errors: `ConfigError` for a name that begins like a setting's but is none, for a value that is not allowed, and when no
    repository is configured.
    """
    given = {
        name: str(value).strip()
        for source in (wiki_config, environment)
        for name, value in source.items()
        if value or value == 0
    }
    unknown = sorted(name for name in given if name.startswith(PREFIX) and name not in SETTING_NAMES)
    if unknown:
        raise ConfigError(f"unknown setting {', '.join(unknown)}; the settings are: {', '.join(SETTING_NAMES)}")
    values = {_field(name): _read(name, given[name]) for name in _READERS if given.get(name)}
    if repository is None and not given.get("REPOSITORY"):
        raise ConfigError("no repository: set REPOSITORY, in the environment or in the wiki's settings.cfg")
    place = (repository or Path(given["REPOSITORY"])).resolve()
    configured = Path(given["SEMANTIC_DATA_DIR"]).absolute() if given.get("SEMANTIC_DATA_DIR") else None
    return Settings(
        repository=place,
        data_dir=(data_dir or configured or place.with_name(f"{place.name}-semantic")).absolute(),
        api_key=given.get("OTTERWIKI_API_KEY") or None,
        **values,
    )


def _read(name: str, value: str) -> Any:
    reader, allowed = _READERS[name]
    try:
        return reader(value)
    except ValueError:
        raise ConfigError(f"{name} is {value!r}; allowed: {allowed}") from None


def _field(name: str) -> str:
    field = name.removeprefix(PREFIX).lower()
    assert field in {known.name for known in fields(Settings)}
    return field
