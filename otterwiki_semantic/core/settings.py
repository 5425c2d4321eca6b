"""Every setting, read once: from the environment first, then from the wiki's own configuration."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.legacy_settings import LegacySettings, move_in
from otterwiki_semantic.core.network import is_on_this_machine

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
"""Providers of embeddings that ChromaDB's own embedding functions speak to, by what they are called there."""
PROVIDERS = ("sentence-transformers", "onnx", "openai", "ollama", *CHROMA_PROVIDERS)
RERANKERS = ("cohere", "cross-encoder")
CHUNKS = ("auto", "minilm", "long", "heading2", "fixed")
SECRETS = {
    "api_key": "OTTERWIKI_API_KEY",
    "chroma_token": "SEMANTIC_CHROMA_TOKEN",
    "model_key": "SEMANTIC_MODEL_KEY",
    "reranker_key": "SEMANTIC_RERANKER_KEY",
}
"""The fields that hold a secret, and the settings they come from. None is ever shown, logged, or part of a command line."""
_KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "model_key": {"openai": ("OPENAI_API_KEY",)},
    "reranker_key": {"cohere": ("COHERE_API_KEY", "CO_API_KEY")},
}
"""What a provider's own programs call its key: taken where ours is not set."""
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the plugin and the command line were told.

    `repository` is the wiki's git repository, `data_dir` where the index lives, `sync_interval` the seconds between two looks
    at HEAD, `threads` the texts embedded at a time (0: one for each processor), `eval_queries` the judged questions that a new
    index has to answer as well as the old one, `api_key` what programs authenticate with, `chroma_url` the ChromaDB server that
    holds the vectors (None: ChromaDB runs in the process that owns the index), `related` whether related pages are shown beside
    the wiki's pages, `search_log` whether searches are noted, `map` whether a map of the wiki is made, `metrics` whether
    figures are kept for Prometheus.

    `model` and `reranker` are ``provider:name`` (or ``minilm``), `model_url` and `reranker_url` where their servers are (None:
    the provider's own), `model_options` a JSON object of what else the provider is given, `model_window` how many word pieces
    the model takes (None: it is asked), the prompts what is put before queries and passages (None: what the model wants).
    `chunks` names the chunk profile (``auto``: it follows the model). `slow_search` is the number of milliseconds from which
    on a search is noted as slow.
    """

    repository: Path
    data_dir: Path
    model: str = "minilm"
    sync_interval: float = 60.0
    threads: int = 0
    eval_queries: Path | None = None
    api_key: str | None = field(default=None, repr=False)
    chroma_url: str | None = None
    chroma_token: str | None = field(default=None, repr=False)
    chroma_tenant: str = "default_tenant"
    chroma_database: str = "default_database"
    chroma_ca: Path | None = None
    model_url: str | None = None
    model_key: str | None = field(default=None, repr=False)
    model_options: str = "{}"
    model_window: int | None = None
    query_prompt: str | None = None
    passage_prompt: str | None = None
    chunks: str = "auto"
    reranker: str | None = None
    reranker_url: str | None = None
    reranker_key: str | None = field(default=None, repr=False)
    slow_search: float = 1000.0
    related: bool = True
    search_log: bool = False
    map: bool = True
    metrics: bool = True


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


def _secret(name: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        if not re.fullmatch(r"[!-~]+", value):  # the value is not repeated
            raise ConfigError(f"{name} has a character that no key has, such as a space; allowed: ASCII without spaces")
        return value

    return read


def _chroma_name(value: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]", value):
        raise ValueError
    return value


def _provided(providers: tuple[str, ...], *alone: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        provider, colon, name = value.partition(":")
        if value not in alone and not (colon and provider.strip() in providers and name.strip()):
            raise ValueError
        return value if value in alone else f"{provider.strip()}:{name.strip()}"

    return read


def _api_url(name: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        parts = urlsplit(value)
        if parts.username is not None or parts.password is not None:  # the value is not repeated
            raise ConfigError(f"{name} holds a user name or a password, which it may not; set {name.replace('_URL', '_KEY')}")
        is_plain = not parts.query and not parts.fragment
        if not is_plain:  # it may hold a key
            raise ConfigError(f"{name} has a part that begins with ? or #, which it may not; allowed: {_ALLOWED_URLS}")
        if parts.scheme not in {"http", "https"} or not parts.hostname or (parts.port or 1) < 1:
            raise ValueError
        return value.rstrip("/")

    return read


def _json_object(value: str) -> str:
    if not isinstance(json.loads(value), dict):
        raise ValueError
    return value


def _whole(least: int, most: int) -> Callable[[str], int]:
    return lambda value: int(_number(least, most)(str(int(value))))


def _readable_file(value: str) -> Path:
    path = Path(value).absolute()
    if not path.is_file() or not os.access(path, os.R_OK):
        raise ValueError
    return path


_CHROMA_NAME = "3 to 512 letters, digits, dots, hyphens and underscores, the first and the last a letter or a digit"
_ALLOWED_URLS = "http://host:port or https://host:port, with or without a path"
_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "SEMANTIC_CHROMA_URL": (_server_url, "http://host:port or https://host:port, without a path"),
    "SEMANTIC_CHROMA_TOKEN": (_secret("SEMANTIC_CHROMA_TOKEN"), "ASCII without spaces"),
    "SEMANTIC_CHROMA_TENANT": (_chroma_name, _CHROMA_NAME),
    "SEMANTIC_CHROMA_DATABASE": (_chroma_name, _CHROMA_NAME),
    "SEMANTIC_CHROMA_CA": (_readable_file, "the path of a file that can be read"),
    "SEMANTIC_CHUNKS": (_one_of(*CHUNKS), f"one of: {', '.join(CHUNKS)}"),
    "SEMANTIC_MAP": (read_flag, "true or false"),
    "SEMANTIC_METRICS": (read_flag, "true or false"),
    "SEMANTIC_MODEL": (
        _provided(PROVIDERS, BUNDLED),
        f"{BUNDLED}, or provider:model, such as ollama:mxbai-embed-large, with one of these providers: {', '.join(PROVIDERS)}",
    ),
    "SEMANTIC_MODEL_KEY": (_secret("SEMANTIC_MODEL_KEY"), "ASCII without spaces"),
    "SEMANTIC_MODEL_OPTIONS": (_json_object, 'a JSON object, such as {"region": "eu-central-1"}'),
    "SEMANTIC_MODEL_URL": (_api_url("SEMANTIC_MODEL_URL"), _ALLOWED_URLS),
    "SEMANTIC_MODEL_WINDOW": (_whole(64, 1_000_000), "a whole number, 64 to 1000000"),
    "SEMANTIC_PASSAGE_PROMPT": (str, "text"),
    "SEMANTIC_QUERY_PROMPT": (str, "text"),
    "SEMANTIC_RELATED": (read_flag, "true or false"),
    "SEMANTIC_RERANKER": (_provided(RERANKERS), "cohere:model or cross-encoder:model"),
    "SEMANTIC_RERANKER_KEY": (_secret("SEMANTIC_RERANKER_KEY"), "ASCII without spaces"),
    "SEMANTIC_RERANKER_URL": (
        _api_url("SEMANTIC_RERANKER_URL"),
        "http://host:port or https://host:port, with or without a path",
    ),
    "SEMANTIC_SLOW_SEARCH": (_number(0, 3_600_000), "milliseconds, 0 to 3600000"),
    "SEMANTIC_SYNC_INTERVAL": (_number(1, 86_400), "seconds, 1 to 86400"),
    "SEMANTIC_THREADS": (_whole(0, 256), "a whole number, 0 to 256"),
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
    given = _given(wiki_config, environment)
    given = {**_moved_in(environment, given).settings, **given}
    unknown = sorted(name for name in given if name.startswith(PREFIX) and name not in SETTING_NAMES)
    if unknown:
        meant = get_close_matches(unknown[0], SETTING_NAMES, 1)
        hint = f" (did you mean {meant[0]}?)" if meant else ""
        raise ConfigError(f"unknown setting {', '.join(unknown)}{hint}; the settings are: {', '.join(SETTING_NAMES)}")
    values = {_field(name): _read(name, given[name]) for name in _READERS if given.get(name)}
    values = _provider_keys(values, given) | values
    _check_token_is_safe(values)
    if repository is None and not given.get("REPOSITORY"):
        raise ConfigError("no repository: set REPOSITORY, in the environment or in the wiki's settings.cfg")
    place = (repository or Path(given["REPOSITORY"])).resolve()
    configured = Path(given["SEMANTIC_DATA_DIR"]).absolute() if given.get("SEMANTIC_DATA_DIR") else None
    if not place.name and not (data_dir or configured):
        raise ConfigError(f"nothing can stand beside the repository {place}: set SEMANTIC_DATA_DIR")
    return Settings(
        repository=place,
        data_dir=(data_dir or configured or place.with_name(f"{place.name}-semantic")).absolute(),
        api_key=given.get("OTTERWIKI_API_KEY") or None,
        **values,
    )


def _check_token_is_safe(values: Mapping[str, Any]) -> None:
    url = str(values.get("chroma_url", ""))
    if "chroma_token" in values and _is_readable_on_the_way(url):
        raise ConfigError(
            f"SEMANTIC_CHROMA_TOKEN would go to {url} for everyone on the way to read; "
            "allowed: an address that begins with https, or one of this machine"
        )


def _is_readable_on_the_way(url: str) -> bool:
    return url.startswith("http:") and not is_on_this_machine(url)


def keys_in_the_clear(settings: Settings) -> list[str]:
    """Name the keys that go to another machine unencrypted; often it is one of the same private network, so none is refused."""
    pairs = (("model", settings.model_key, settings.model_url), ("reranker", settings.reranker_key, settings.reranker_url))
    return [f"SEMANTIC_{name.upper()}_KEY" for name, key, url in pairs if key and url and _is_readable_on_the_way(url)]


def moved_in(wiki_config: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> LegacySettings:
    """Give what of the earlier plugin's variables is taken as settings, and what is to be said of each: see `move_in`."""
    return _moved_in(environment, _given(wiki_config, environment))


def _moved_in(environment: Mapping[str, str], given: Mapping[str, str]) -> LegacySettings:
    return move_in(environment, lambda name: bool(given.get(name)), _accepts)


def _given(wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Give what is set, by name, as text; the environment wins."""
    return {
        name: str(value) if name.endswith("_PROMPT") else str(value).strip()
        for source in (wiki_config, environment)
        for name, value in source.items()
        if value or value == 0
    }


def _provider_keys(values: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Give the keys that are set as the providers' own programs call them; they go to the providers' own addresses only."""
    found = {}
    for key, names_of in _KEYS.items():
        if key.replace("_key", "_url") in values:
            continue
        provider = str(values.get(key.removesuffix("_key")) or "").partition(":")[0]
        name = next((name for name in names_of.get(provider, ()) if given.get(name)), None)
        if name is not None:
            found[key] = given[name]
    return found


def _read(name: str, value: str) -> Any:
    reader, allowed = _READERS[name]
    try:
        return reader(value)
    except (ValueError, RecursionError):
        shown = "not what it may be" if name == "SEMANTIC_MODEL_OPTIONS" else repr(value)  # a key may stand in them
        raise ConfigError(f"{name} is {shown}; allowed: {allowed}") from None


def _accepts(name: str, value: str) -> bool:
    try:
        _read(name, value)
    except ConfigError:
        return False
    return True


def _field(name: str) -> str:
    field = name.removeprefix(PREFIX).lower()
    assert field in {known.name for known in fields(Settings)}
    return field
