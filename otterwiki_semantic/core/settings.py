"""Every setting: defined once, as a field of `Settings`, and read once, from the environment or the wiki's configuration."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.legacy_settings import LegacySettings, from_legacy_variables

PREFIX = "SEMANTIC_"
BUNDLED = "minilm"
CHROMA_PROVIDERS = {
    "bedrock": "amazon_bedrock",
    "cloudflare": "cloudflare_workers_ai",
    "cohere": "cohere",
    "google": "google_genai",
    "huggingface": "huggingface",
    "jina": "jina",
    "mistral": "mistral",
    "nomic": "nomic",
    "perplexity": "perplexity",
    "together": "together_ai",
    "voyage": "voyageai",
}
"""Embedding providers that ChromaDB's own embedding functions speak to, by their names there."""
PROVIDERS = ("sentence-transformers", "onnx", "openai", "ollama", *CHROMA_PROVIDERS)
RERANKERS = ("cohere", "cross-encoder")
CHUNKS = ("auto", "minilm", "long", "heading2", "fixed")
_PROVIDERS_OWN_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "model_key": {"openai": ("OPENAI_API_KEY",)},
    "reranker_key": {"cohere": ("COHERE_API_KEY", "CO_API_KEY")},
}
"""Names of a key that a provider's own programs use: taken where ours is not set."""
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


# Types of settings


class SettingType(ABC):
    """What a setting may be."""

    allowed: str
    """For people."""
    hides_value = False
    """Whether an error must not repeat the value: it may hold a key."""

    @abstractmethod
    def parse(self, name: str, value: str) -> Any:
        """Return the value of a setting; `ValueError` if it is not allowed, `ConfigError` if that has to be said otherwise."""


class Plain(SettingType):
    """Any text."""

    allowed = "text"

    def parse(self, name: str, value: str) -> str:  # noqa: ARG002
        return value


class Flag(SettingType):
    """True or false."""

    allowed = "true or false"

    def parse(self, name: str, value: str) -> bool:  # noqa: ARG002
        return read_flag(value)


class Number(SettingType):
    """A number within bounds."""

    def __init__(self, minimum: float, maximum: float, unit: str) -> None:
        self._bounds = minimum, maximum
        self.allowed = f"{unit}, {minimum} to {maximum}"

    def parse(self, name: str, value: str) -> float:  # noqa: ARG002
        number = float(value)
        if not self._bounds[0] <= number <= self._bounds[1]:
            raise ValueError
        return number


class Integer(Number):
    """A whole number within bounds."""

    def __init__(self, minimum: int, maximum: int) -> None:
        super().__init__(minimum, maximum, "a whole number")

    def parse(self, name: str, value: str) -> int:
        return int(super().parse(name, str(int(value))))


class OneOf(SettingType):
    """One of some values."""

    def __init__(self, *values: str) -> None:
        self._values = values
        self.allowed = f"one of: {', '.join(values)}"

    def parse(self, name: str, value: str) -> str:  # noqa: ARG002
        if value not in self._values:
            raise ValueError
        return value


class Model(SettingType):
    """A model as ``provider:name``, or one of some names alone."""

    def __init__(self, providers: tuple[str, ...], allowed: str, *alone: str) -> None:
        self._providers, self._alone, self.allowed = providers, alone, allowed

    def parse(self, name: str, value: str) -> str:  # noqa: ARG002
        provider, _, model = (part.strip() for part in value.partition(":"))
        if value in self._alone:
            return value
        if provider not in self._providers or not model:
            raise ValueError
        return f"{provider}:{model}"


class Secret(SettingType):
    """A key or token. It is never shown, logged, or part of a command line."""

    allowed = "ASCII without spaces"

    def parse(self, name: str, value: str) -> str:
        if not re.fullmatch(r"[!-~]+", value):
            raise ConfigError(f"{name} has a character that no key has, such as a space; allowed: {self.allowed}")
        return value


class ServerUrl(SettingType):
    """The address of a ChromaDB server."""

    allowed = "http://host:port or https://host:port, without a path"

    def parse(self, name: str, value: str) -> str:
        if "@" in value:  # not repeated: it may hold a password
            raise ConfigError(f"{name} holds a user name or a password, which it may not; allowed: http://host:port")
        found = re.fullmatch(r"(https?://(?:[\w.-]+|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?)/?", value.lower(), re.ASCII)
        if found is None or (found[3] and not 0 < int(found[3]) < 65536):
            raise ValueError
        if found[2]:
            IPv6Address(found[2])
        return found[1]


class ApiUrl(SettingType):
    """The address of an HTTP API."""

    allowed = "http://host:port or https://host:port, with or without a path"

    def parse(self, name: str, value: str) -> str:
        parts = urlsplit(value)
        if parts.username is not None or parts.password is not None:  # not repeated
            raise ConfigError(f"{name} holds a user name or a password, which it may not; set {name.replace('_URL', '_KEY')}")
        if parts.query or parts.fragment:  # either may hold a key
            raise ConfigError(f"{name} has a part that begins with ? or #, which it may not; allowed: {self.allowed}")
        if parts.scheme not in {"http", "https"} or not parts.hostname or (parts.port or 1) < 1:
            raise ValueError
        return value.rstrip("/")


class ChromaName(SettingType):
    """A name of ChromaDB."""

    allowed = "3 to 512 letters, digits, dots, hyphens and underscores, the first and the last a letter or a digit"

    def parse(self, name: str, value: str) -> str:  # noqa: ARG002
        if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]", value):
            raise ValueError
        return value


class JsonObject(SettingType):
    """A JSON object, kept as text."""

    allowed = 'a JSON object, such as {"region": "eu-central-1"}'
    hides_value = True

    def parse(self, name: str, value: str) -> str:  # noqa: ARG002
        if not isinstance(json.loads(value), dict):
            raise ValueError
        return value


class ReadableFile(SettingType):
    """The path of a file."""

    allowed = "the path of a file that can be read"

    def parse(self, name: str, value: str) -> Path:  # noqa: ARG002
        path = Path(value).absolute()
        if not path.is_file() or not os.access(path, os.R_OK):
            raise ValueError
        return path


def setting(type_: SettingType, default: Any, help_: str) -> Any:
    """Return a dataclass field that is a setting; its name is that of the field, after ``SEMANTIC_``."""
    return field(default=default, repr=not isinstance(type_, Secret), metadata={"setting": (type_, help_)})


@dataclass(frozen=True, slots=True)
class Settings:
    """What the plugin and the command line are told."""

    repository: Path
    """The wiki's git repository."""
    data_dir: Path
    """Where the index lives."""
    api_key: str | None = field(default=None, repr=False)
    """``OTTERWIKI_API_KEY``: what programs authenticate with."""
    model: str = setting(
        Model(
            PROVIDERS,
            f"{BUNDLED}, or provider:model, such as ollama:mxbai-embed-large; the providers are {', '.join(PROVIDERS)}",
            BUNDLED,
        ),
        BUNDLED,
        "The embedding model.",
    )
    model_key: str | None = setting(Secret(), None, "The key for the model's server.")
    model_url: str | None = setting(ApiUrl(), None, "The address of the model's server; by default the provider's own.")
    model_options: str = setting(JsonObject(), "{}", "What else the provider is given.")
    model_window: int | None = setting(Integer(64, 1_000_000), None, "Tokens that the model takes; by default it is asked.")
    query_prompt: str | None = setting(Plain(), None, "Text before each query; by default what the model wants.")
    passage_prompt: str | None = setting(Plain(), None, "Text before each passage; by default what the model wants.")
    chunks: str = setting(OneOf(*CHUNKS), "auto", "The chunk profile; `auto` follows the model.")
    threads: int = setting(Integer(0, 256), 0, "Texts embedded at a time; 0 is one for each processor.")
    reranker: str | None = setting(
        Model(RERANKERS, "cohere:model or cross-encoder:model"), None, "The reranking model; none by default."
    )
    reranker_key: str | None = setting(Secret(), None, "The key for the reranker's server.")
    reranker_url: str | None = setting(ApiUrl(), None, "The address of the reranker's server.")
    chroma_url: str | None = setting(ServerUrl(), None, "The ChromaDB server; by default ChromaDB runs in the index daemon.")
    chroma_token: str | None = setting(Secret(), None, "The token for the ChromaDB server.")
    chroma_tenant: str = setting(ChromaName(), "default_tenant", "The tenant on the ChromaDB server.")
    chroma_database: str = setting(ChromaName(), "default_database", "The database on the ChromaDB server.")
    chroma_ca: Path | None = setting(ReadableFile(), None, "Certificates for the ChromaDB server, in PEM format.")
    sync_interval: float = setting(Number(1, 86_400, "seconds"), 60.0, "Longest time between two checks of HEAD.")
    related: bool = setting(Flag(), True, "Show related pages next to the wiki's pages.")
    map: bool = setting(Flag(), True, "Make a map of the wiki.")
    search_log: bool = setting(Flag(), False, "Log searches.")
    slow_search: float = setting(Number(0, 3_600_000, "milliseconds"), 1000.0, "Searches this slow are logged.")
    eval_queries: Path | None = setting(ReadableFile(), None, "Judged queries that a new index has to answer as well.")
    metrics: bool = setting(Flag(), True, "Keep metrics for Prometheus.")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting as people know it."""

    name: str
    field: str
    type: SettingType
    default: Any
    help: str

    def read(self, value: str) -> Any:
        """Return its value; `ConfigError` says what is allowed."""
        try:
            return self.type.parse(self.name, value)
        except (ValueError, RecursionError):
            shown = "not what it may be" if self.type.hides_value else repr(value)
            raise ConfigError(f"{self.name} is {shown}; allowed: {self.type.allowed}") from None


SETTINGS = {
    f"{PREFIX}{each.name.upper()}": Setting(f"{PREFIX}{each.name.upper()}", each.name, type_, each.default, help_)
    for each in fields(Settings)
    if "setting" in each.metadata
    for type_, help_ in [each.metadata["setting"]]
}
SETTING_NAMES = ("OTTERWIKI_API_KEY", "SEMANTIC_DATA_DIR", *SETTINGS)
"""The names of all settings, beside the wiki's own ``REPOSITORY``."""
SECRETS = {"api_key": "OTTERWIKI_API_KEY"} | {
    each.field: name for name, each in SETTINGS.items() if isinstance(each.type, Secret)
}
"""The fields that hold a secret, and the settings they come from."""


def read_flag(value: str) -> bool:
    """Return true or false, from a text in any case; `ValueError` for another one."""
    text = value.strip().lower()
    if text not in _FLAGS:
        raise ValueError(value)
    return _FLAGS[text]


def is_on_this_machine(url: str) -> bool:
    """Return whether an address is on this host: no proxy leads there, and nobody listens on the way."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read_settings(
    wiki_config: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    repository: Path | None = None,
    data_dir: Path | None = None,
) -> Settings:
    """Return the settings; `repository` and `data_dir`, where given, win over what is configured.

    Errors: `ConfigError` for a name that begins like a setting's and is none, for a value that is not allowed, and without a
    repository.
    """
    given = _given(wiki_config, environment)
    given = {**_legacy(environment, given).settings, **given}
    unknown = sorted(name for name in given if name.startswith(PREFIX) and name not in SETTING_NAMES)
    if unknown:
        meant = get_close_matches(unknown[0], SETTING_NAMES, 1)
        hint = f" (did you mean {meant[0]}?)" if meant else ""
        raise ConfigError(f"unknown setting {', '.join(unknown)}{hint}; the settings are: {', '.join(SETTING_NAMES)}")
    values = {each.field: each.read(given[name]) for name, each in SETTINGS.items() if given.get(name)}
    values = _providers_own_keys(values, given) | values
    _check_token_is_safe(values)
    if repository is None and not given.get("REPOSITORY"):
        raise ConfigError("no repository: set REPOSITORY, in the environment or in the wiki's settings.cfg")
    place = (repository or Path(given["REPOSITORY"])).resolve()
    configured = Path(given["SEMANTIC_DATA_DIR"]).absolute() if given.get("SEMANTIC_DATA_DIR") else None
    if not place.name and not (data_dir or configured):
        raise ConfigError(f"nothing can be put next to the repository {place}: set SEMANTIC_DATA_DIR")
    return Settings(
        repository=place,
        data_dir=(data_dir or configured or place.with_name(f"{place.name}-semantic")).absolute(),
        api_key=given.get("OTTERWIKI_API_KEY") or None,
        **values,
    )


def legacy_settings(wiki_config: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> LegacySettings:
    """Return which of the earlier plugin's variables are taken as settings, and what to say of each."""
    return _legacy(environment, _given(wiki_config, environment))


def unencrypted_keys(settings: Settings) -> list[str]:
    """Return the keys that go to another machine unencrypted, which may be one of the same private network."""
    pairs = (("model", settings.model_key, settings.model_url), ("reranker", settings.reranker_key, settings.reranker_url))
    return [f"SEMANTIC_{name.upper()}_KEY" for name, key, url in pairs if key and url and _is_unencrypted(url)]


def _check_token_is_safe(values: Mapping[str, Any]) -> None:
    url = str(values.get("chroma_url", ""))
    if "chroma_token" in values and _is_unencrypted(url):
        raise ConfigError(
            f"SEMANTIC_CHROMA_TOKEN would go to {url} for everyone on the way to read; "
            "allowed: an address that begins with https, or one of this machine"
        )


def _is_unencrypted(url: str) -> bool:
    return url.startswith("http:") and not is_on_this_machine(url)


def _legacy(environment: Mapping[str, str], given: Mapping[str, str]) -> LegacySettings:
    return from_legacy_variables(environment, lambda name: bool(given.get(name)), _accepts)


def _accepts(name: str, value: str) -> bool:
    try:
        SETTINGS[name].read(value)
    except ConfigError:
        return False
    return True


def _given(wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what is set, by name, as text; the environment wins."""
    return {
        name: str(value) if name.endswith("_PROMPT") else str(value).strip()
        for source in (wiki_config, environment)
        for name, value in source.items()
        if value or value == 0
    }


def _providers_own_keys(values: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys that are set under the names of providers' own programs; they go to the providers' own addresses only."""
    found = {}
    for key, names_of in _PROVIDERS_OWN_KEYS.items():
        if key.replace("_key", "_url") in values:
            continue
        provider = str(values.get(key.removesuffix("_key")) or "").partition(":")[0]
        name = next((name for name in names_of.get(provider, ()) if given.get(name)), None)
        if name is not None:
            found[key] = given[name]
    return found
