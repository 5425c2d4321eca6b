"""Every setting: defined once, as a field of `Settings`, and read once, from the environment or the wiki's configuration."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import partial
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from otterwiki_semantic.core.addresses import is_on_this_machine
from otterwiki_semantic.core.chunk_profiles import AUTO, EXAMPLE, PROFILES, profile_named
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.languages import ENGLISH, SNOWBALL
from otterwiki_semantic.core.legacy_names import PAGES, REMOVED, from_legacy_variables

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
"""Embedding providers available through ChromaDB's embedding functions, by their names in ChromaDB."""
PRESETS = {"multilingual": "sentence-transformers:intfloat/multilingual-e5-small", "ollama:multilingual": "ollama:bge-m3"}
_E5 = "multilingual-e5-"
_E5_PROMPTS = {"query_prompt": "query: ", "passage_prompt": "passage: "}
"""The prompts that these models were trained with; their files do not contain them."""
PROVIDERS = ("sentence-transformers", "onnx", "openai", "ollama", *CHROMA_PROVIDERS)
CHAT_PROVIDERS = ("ollama", "openai", "anthropic")
EXTRACTIVE = "extractive"
_PROVIDERS_OWN_KEYS = (
    ("model", "openai", ("OPENAI_API_KEY",)),
    ("reranker", "cohere", ("COHERE_API_KEY", "CO_API_KEY")),
    ("answers", "openai", ("OPENAI_API_KEY",)),
    ("answers", "anthropic", ("ANTHROPIC_API_KEY",)),
)
"""Fallback names of keys, as providers' own programs use them: model setting, provider, names."""
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


class _RefusedError(ValueError):
    """A value is not allowed. The message continues the setting's name, and does not repeat the value."""


@dataclass(frozen=True, slots=True)
class SettingType:
    """The type of a setting, with its allowed values."""

    allowed: str
    parse: Callable[[str], Any]
    """Returns the value; `ValueError` if it is not allowed."""
    wrong: str = ""
    """The error text to use instead of the value, which may contain a key."""

    def read(self, name: str, value: str) -> Any:
        """Return the value of the setting `name`. Errors: `ConfigError` with the allowed values."""
        try:
            return self.parse(value)
        except _RefusedError as refused:
            raise ConfigError(f"{name} {refused}") from None
        except (ValueError, RecursionError):
            allowed = f"allowed: {self.allowed}"
            raise ConfigError(
                f"{name} {self.wrong or f'is {value!r}'}; {allowed}", f"{name} {self.wrong or 'is not valid'}; {allowed}"
            ) from None


def _check(is_allowed: object) -> None:
    if not is_allowed:
        raise ValueError


def read_flag(value: str) -> bool:
    """Parse a boolean in any case. Errors: `ValueError` for another text."""
    text = value.strip().lower()
    _check(text in _FLAGS)
    return _FLAGS[text]


def _number(minimum: float, maximum: float, unit: str, kind: Callable[[str], float] = float) -> SettingType:
    def parse(value: str) -> float:
        number = kind(value)
        _check(minimum <= number <= maximum)
        return number

    return SettingType(f"{unit}, {minimum} to {maximum}", parse)


_whole_number = partial(_number, unit="a whole number", kind=int)


def _matching(pattern: str, allowed: str, wrong: str = "") -> SettingType:
    def parse(value: str) -> str:
        _check(re.fullmatch(pattern, value))
        return value

    return SettingType(allowed, parse, wrong)


def _model(providers: Sequence[str], allowed: str, *alone: str, presets: Mapping[str, str] | None = None) -> SettingType:
    """A model as ``provider:name``, or one of the names in `alone`."""

    def parse(value: str) -> str:
        value = (presets or {}).get(value, value)
        if value in alone:
            return value
        provider, _, name = (part.strip() for part in value.partition(":"))
        _check(provider in providers and name)
        return f"{provider}:{name}"

    return SettingType(allowed, parse)


def _server_url(value: str) -> str:
    if "@" in value:
        raise _RefusedError("must not contain a user name or a password; allowed: http://host:port")
    found = re.fullmatch(r"(https?://(?:[\w.-]+|\[([0-9a-f:.]+)\])(?::(\d{1,5}))?)/?", value.lower(), re.ASCII)
    if found is None or (found[3] and not 0 < int(found[3]) < 65536):
        raise ValueError
    if found[2]:
        IPv6Address(found[2])
    return found[1]


def _api_url(key: str) -> SettingType:
    """The address of an HTTP API that receives the key in the setting `key`."""
    allowed = "http://host:port or https://host:port, with or without a path"

    def parse(value: str) -> str:
        parts = urlsplit(value)
        if parts.username is not None or parts.password is not None:
            raise _RefusedError(f"must not contain a user name or a password; set {key}")
        if parts.query or parts.fragment:  # either may contain a key
            raise _RefusedError(f"must not contain ? or #; allowed: {allowed}")
        _check(parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1) >= 1)
        return value.rstrip("/")

    return SettingType(allowed, parse)


def _json_object(value: str) -> str:
    _check(isinstance(json.loads(value), dict))
    return value


def _languages(value: str) -> tuple[str, ...]:
    codes = tuple(dict.fromkeys(code.strip().lower() for code in value.split(",") if code.strip()))
    _check(codes and set(codes) <= SNOWBALL.keys())
    return codes


def _database(value: str) -> str:
    tenant, _, database = value.rpartition("/")
    _check(all(re.fullmatch(_NAME, name) for name in (tenant or DEFAULT_TENANT, database)))
    return f"{tenant or DEFAULT_TENANT}/{database}"


def _pages(value: str) -> tuple[str, ...]:
    names = set(value.lower().replace(",", " ").split()) - {"none"}
    _check(names <= set(PAGES))
    return tuple(name for name in PAGES if name in names)


def _patterns(value: str) -> tuple[str, ...]:
    """Return git globs for paths; globs that git accepts but that never match a page are not allowed."""
    patterns = tuple(shlex.split(value))
    for pattern in patterns:
        folders = pattern.removesuffix("/").split("/")
        _check(pattern.isprintable() and not pattern.startswith((":", "!")) and not pattern.endswith((",", "\\")))
        _check({"", ".", ".."}.isdisjoint(folders))
    return patterns


def _attachments(value: str) -> bool | tuple[str, ...]:
    flag = _FLAGS.get(value.strip().lower())
    return _patterns(value) if flag is None else flag


def _chunks(value: str) -> str:
    _check(value.partition(":")[0] in {AUTO, *PROFILES})
    try:
        profile_named(value, window=1)
    except ConfigError as error:
        raise _RefusedError(f"is {value!r}: {error}") from None
    return value


def _readable_file(value: str) -> Path:
    path = Path(value).absolute()
    _check(path.is_file() and os.access(path, os.R_OK))
    return path


MAX_PAGE_BYTES = 2_000_000
DEFAULT_TENANT, DEFAULT_DATABASE = "default_tenant", "default_database"
_TEXT = SettingType("text", str)
_FLAG = SettingType("true or false", read_flag)
_SECRET = _matching("[!-~]+", "ASCII without spaces", "has a character that no key has, such as a space")
_SERVER_URL = SettingType("http://host:port or https://host:port, without a path", _server_url)
_NAME = "[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]"
_NAMED = "3 to 512 letters, digits, dots, hyphens and underscores, the first and the last a letter or a digit"
_CHROMA_NAME = _matching(_NAME, _NAMED)
_CHROMA_DATABASE = SettingType(f"a database or tenant/database, each of {_NAMED}", _database)
_VECTOR_SEARCH = _matching("auto|exact|chroma", "one of: auto, exact, chroma")
_VECTORS = _matching("auto|float32|int8|disk", "one of: auto, float32, int8, disk")
_DEVICE = _matching("auto|cpu|cuda", "auto, cpu or cuda")
_CHUNKS = SettingType(f"{AUTO}, or {', '.join(PROFILES)}, with or without sizes, such as {EXAMPLE}", _chunks)
_MODEL = _model(
    PROVIDERS,
    f"{BUNDLED}, {', '.join(PRESETS)}, or provider:model, such as ollama:mxbai-embed-large;"
    f" the providers are {', '.join(PROVIDERS)}",
    BUNDLED,
    presets=PRESETS,
)
_RERANKER = _model(("cohere", "cross-encoder"), "cohere:model or cross-encoder:model")
_ANSWERS = _model(
    CHAT_PROVIDERS,
    f"{EXTRACTIVE}, or provider:model, such as ollama:llama3.2; the providers are {', '.join(CHAT_PROVIDERS)}",
    EXTRACTIVE,
)
_JSON_OBJECT = SettingType('a JSON object, such as {"region": "eu-central-1"}', _json_object, "is not a JSON object")
_LANGUAGES = SettingType(f"languages such as en,de; known are {', '.join(SNOWBALL)}", _languages)
_PAGES = SettingType(f"none, or some of {', '.join(PAGES)}", _pages)
_PAGE = SettingType("the path of a page, with or without .md", lambda value: value.strip().strip("/").removesuffix(".md"))
_PATTERNS = SettingType(
    "git globs of paths from the top of the repository, separated by spaces, such as drafts/** 'old notes/*.md';"
    " none begins with / : or !, ends with a comma or \\, or has . or .. as a folder",
    _patterns,
)
_ATTACHMENTS = SettingType("true, false, or git globs of the files, such as '**/*.pdf manuals/**'", _attachments)
_OCR = _matching(r"[A-Za-z_]{3,20}(\+[A-Za-z_]{3,20}){0,9}", "languages as Tesseract names them, such as eng+deu")
_READABLE_FILE = SettingType("the path of a file that can be read", _readable_file)


def setting(type_: SettingType, default: Any, help_: str) -> Any:
    """Return a dataclass field for a setting; the setting's name is the field's, after ``SEMANTIC_``."""
    return field(default=default, repr=type_ is not _SECRET, metadata={"setting": type_, "help": help_})


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of the plugin and the command line."""

    repository: Path
    data_dir: Path
    api_key: str | None = field(default=None, repr=False)
    """``OTTERWIKI_API_KEY``: what programs authenticate with."""
    model: str = setting(_MODEL, BUNDLED, "The embedding model.")
    model_key: str | None = setting(_SECRET, None, "The key for the model's server.")
    model_url: str | None = setting(
        _api_url("SEMANTIC_MODEL_KEY"), None, "The model's server, unless it is the provider's own."
    )
    model_options: str = setting(_JSON_OBJECT, "{}", "Further options for the provider.")
    model_window: int | None = setting(_whole_number(64, 1_000_000), None, "Tokens it accepts; by default what it reports.")
    device: str = setting(_DEVICE, "auto", "What computes the vectors of models that run here: processor or GPU.")
    query_prompt: str | None = setting(_TEXT, None, "Text before each query; by default as the model requires.")
    passage_prompt: str | None = setting(_TEXT, None, "Text before each passage; by default as the model requires.")
    chunks: str = setting(_CHUNKS, AUTO, "The chunk profile, optionally with sizes; `auto` follows the model.")
    threads: int = setting(_whole_number(0, 256), 0, "Texts embedded at a time; 0 is one for each processor.")
    reranker: str | None = setting(_RERANKER, None, "The reranking model; none by default.")
    reranker_key: str | None = setting(_SECRET, None, "The key for the reranker's server.")
    reranker_url: str | None = setting(_api_url("SEMANTIC_RERANKER_KEY"), None, "The address of the reranker's server.")
    answers: str | None = setting(_ANSWERS, None, "What writes answers to questions; nothing by default.")
    answers_key: str | None = setting(_SECRET, None, "The key for its server.")
    answers_url: str | None = setting(_api_url("SEMANTIC_ANSWERS_KEY"), None, "Its server, unless it is the provider's own.")
    answers_options: str = setting(_JSON_OBJECT, "{}", "Further options sent with each question.")
    answers_window: int = setting(_whole_number(1_024, 1_000_000), 8_192, "Tokens of sources and answer.")
    answers_seconds: float = setting(_number(5, 600, "seconds"), 60.0, "Longest time for an answer.")
    answers_rewrite: bool = setting(_FLAG, False, "Let the model reword a question for which nothing is found.")
    answers_per_hour: int = setting(_whole_number(0, 100_000), 60, "Questions per account or address; 0 is no limit.")
    chroma_url: str | None = setting(_SERVER_URL, None, "The ChromaDB server; by default ChromaDB runs in the index daemon.")
    chroma_token: str | None = setting(_SECRET, None, "The token for the ChromaDB server.")
    chroma_database: str = setting(
        _CHROMA_DATABASE, f"{DEFAULT_TENANT}/{DEFAULT_DATABASE}", "Tenant and database on the server."
    )
    chroma_ca: Path | None = setting(_READABLE_FILE, None, "Certificates for the ChromaDB server, in PEM format.")
    chroma_documents: bool = setting(_FLAG, True, "Also store texts and metadata in ChromaDB.")
    collection: str = setting(_CHROMA_NAME, "otterwiki", "The name of the collection in ChromaDB.")
    vector_search: str = setting(_VECTOR_SEARCH, "auto", "What compares vectors: exact search, ChromaDB, or what is faster.")
    vectors: str = setting(_VECTORS, "auto", "The format of vectors in memory, or `disk` to keep none there.")
    sync_interval: float = setting(_number(1, 86_400, "seconds"), 60.0, "Longest time between two checks of HEAD.")
    languages: tuple[str, ...] = setting(_LANGUAGES, (ENGLISH,), "The languages of the wiki's pages, the main one first.")
    synonyms: str | None = setting(_PAGE, None, "Wiki page with groups of synonyms.")
    exclude: tuple[str, ...] = setting(_PATTERNS, (), "Pages that are not indexed.")
    attachments: bool | tuple[str, ...] = setting(_ATTACHMENTS, True, "Which attached files are indexed.")
    ocr: str | None = setting(_OCR, None, "Languages in which Tesseract reads attached images and scans; none by default.")
    allow_write: bool = setting(_FLAG, False, "Let programs write pages.")
    write_as: str | None = setting(_TEXT, None, "Address of the account in whose name the API key writes; none by default.")
    pages: tuple[str, ...] = setting(_PAGES, PAGES, "Optional features of the wiki, besides search.")
    search_log: bool = setting(_FLAG, False, "Log searches.")
    eval_queries: Path | None = setting(
        _READABLE_FILE, None, "Test questions (judged queries), for daily checks and before a new index is used."
    )

    @property
    def has_chat_model(self) -> bool:
        """Whether a model for answering questions is configured."""
        return self.answers not in {None, EXTRACTIVE}

    @property
    def may_rewrite_questions(self) -> bool:
        """Whether a model may reword questions."""
        return self.answers_rewrite and self.has_chat_model


EXCLUDE = f"{PREFIX}EXCLUDE"
INDEX_SETTINGS = ("model", "model_url", "model_window", "query_prompt", "passage_prompt", "chunks", "languages")
"""The fields that determine the content of an index, except secrets."""


def index_settings(settings: Settings) -> dict[str, Any]:
    """Return the settings that determine the content of an index, as JSON values."""
    values = {name: getattr(settings, name) for name in INDEX_SETTINGS}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None}


def _field(name: str) -> str:
    return name.removeprefix(PREFIX).lower()


SETTINGS: dict[str, SettingType] = {
    f"{PREFIX}{each.name.upper()}": each.metadata["setting"] for each in fields(Settings) if "setting" in each.metadata
}
SETTING_NAMES = ("OTTERWIKI_API_KEY", "SEMANTIC_DATA_DIR", *SETTINGS)
"""The names of all settings, in addition to the wiki's own ``REPOSITORY``."""
SECRETS = {"api_key": "OTTERWIKI_API_KEY"} | {_field(name): name for name, type_ in SETTINGS.items() if type_ is _SECRET}
"""The fields that contain a secret, and their settings."""


def with_index_settings(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """Return settings with those of `index_settings` replaced; the model's key and options remain only for the same server."""
    given: dict[str, Any] = {name: values.get(name) for name in INDEX_SETTINGS}
    given["languages"] = tuple(given["languages"] or (ENGLISH,))
    if _server_of(given["model"], given["model_url"]) != _server_of(settings.model, settings.model_url):
        given |= {"model_key": None, "model_options": "{}"}
    return replace(settings, **given)


def _server_of(model: str, url: str | None) -> tuple[str, str | None]:
    return model.partition(":")[0], url


def read_setting(name: str, environment: Mapping[str, str]) -> Any:
    """Return one setting by the name of its field; None if it is not set. Errors: `ConfigError` if the value is not allowed."""
    variable = f"{PREFIX}{name.upper()}"
    value = environment.get(variable)
    return SETTINGS[variable].read(variable, value) if value else None


def read_settings(
    wiki_config: Mapping[str, Any],
    environment: Mapping[str, str] = os.environ,
    repository: Path | None = None,
    data_dir: Path | None = None,
) -> Settings:
    """Return the settings; `repository` and `data_dir` override the configured ones. Errors: `ConfigError`."""
    given = _given(wiki_config, environment)
    legacy, _ = from_legacy_variables(given, _accepts)
    given |= legacy
    unknown = sorted(name for name in given.keys() - REMOVED if name.startswith(PREFIX) and name not in SETTING_NAMES)
    if unknown:
        meant = get_close_matches(unknown[0], SETTING_NAMES, 1)
        hint = f" (did you mean {meant[0]}?)" if meant else ""
        message = f"unknown setting {', '.join(unknown)}{hint}"
        raise ConfigError(f"{message}; the settings are: {', '.join(SETTING_NAMES)}", message)
    values = {_field(name): type_.read(name, given[name]) for name, type_ in SETTINGS.items() if given.get(name)}
    values = _providers_own_keys(values, given) | _own_prompts(values) | values
    _check_token_is_safe(values)
    if values.get("vectors") == "disk" and values.get("vector_search") == "exact":
        raise ConfigError(
            "SEMANTIC_VECTORS=disk and SEMANTIC_VECTOR_SEARCH=exact exclude each other: without vectors in memory, "
            "ChromaDB compares them"
        )
    if repository is None and not given.get("REPOSITORY"):
        raise ConfigError("no repository: set REPOSITORY, in the environment or in the wiki's settings.cfg")
    place = (repository or Path(given["REPOSITORY"])).resolve()
    directory = data_dir or given.get("SEMANTIC_DATA_DIR")
    if not place.name and not directory:
        raise ConfigError(f"nothing can be put next to the repository {place}: set SEMANTIC_DATA_DIR")
    return Settings(
        repository=place,
        data_dir=Path(directory or place.with_name(f"{place.name}-semantic")).absolute(),
        api_key=given.get("OTTERWIKI_API_KEY") or None,
        **values,
    )


def _own_prompts(values: Mapping[str, Any]) -> dict[str, str]:
    _, found, variant = values.get("model", "").lower().rpartition(_E5)
    return _E5_PROMPTS if found and "instruct" not in variant else {}


def settings_with_model(
    settings: Settings, model: str, wiki_config: Mapping[str, Any], environment: Mapping[str, str] = os.environ
) -> Settings:
    """Return the settings for an index with this embedding model. Errors: `ConfigError` if the model is invalid.

    If the provider is the configured one, the model shares its address, key and options; its window and prompts are its own.
    """
    name = f"{PREFIX}MODEL"
    other = SETTINGS[name].read(name, model)
    if other == settings.model:
        return settings
    is_same_provider = other.partition(":")[0] == settings.model.partition(":")[0]
    own = ("WINDOW",) if is_same_provider else ("WINDOW", "KEY", "URL", "OPTIONS")
    dropped = {*(f"{name}_{each}" for each in own), f"{PREFIX}QUERY_PROMPT", f"{PREFIX}PASSAGE_PROMPT"}
    given = {key: value for key, value in _given(wiki_config, environment).items() if key not in dropped}
    return read_settings(given | {name: model}, {}, settings.repository, settings.data_dir)


def fallback_settings(wiki_config: Mapping[str, Any], repository: Path) -> Settings:
    """Return settings for a wiki with an invalid one: the defaults, with the API key, and no place for an index."""
    return Settings(repository, Path(os.devnull), _given(wiki_config, os.environ).get("OTTERWIKI_API_KEY") or None)


def legacy_notices(wiki_config: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return a notice about each variable of an earlier search and each removed setting."""
    return from_legacy_variables(_given(wiki_config, environment), _accepts)[1]


def unencrypted_keys(settings: Settings) -> list[str]:
    """Return the keys that are sent to another machine unencrypted, which may be on the same private network."""
    pairs = (
        ("model", settings.model_key, settings.model_url),
        ("reranker", settings.reranker_key, settings.reranker_url),
        ("answers", settings.answers_key, settings.answers_url),
    )
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


def _accepts(name: str, value: str) -> bool:
    try:
        SETTINGS[name].read(name, value)
    except ConfigError:
        return False
    return True


def _given(wiki_config: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what is set, by name, as text; the environment takes precedence."""
    return {
        name: _text(value) if name.endswith("_PROMPT") else _text(value).strip()
        for source in (wiki_config, environment)
        for name, value in source.items()
        if value or value == 0
    }


def _text(value: object) -> str:
    """Return a value as it would be in the environment; in ``settings.cfg`` it can also be a list."""
    return shlex.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _providers_own_keys(values: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """Return keys set under the names that providers' own programs use; they are only sent to the providers' own addresses."""
    found = {}
    for model, provider, names in _PROVIDERS_OWN_KEYS:
        is_used = str(values.get(model)).startswith(f"{provider}:") and f"{model}_url" not in values
        if is_used and (name := next(filter(given.get, names), None)):
            found[f"{model}_key"] = given[name]
    return found
