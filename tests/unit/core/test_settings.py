"""Where settings come from, and how a bad one is refused."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.legacy_names import PAGES
from otterwiki_semantic.core.settings import read_settings, settings_with_model, unencrypted_keys
from otterwiki_semantic.daemon.protocol import decode_settings, encode_settings

REPOSITORY = {"REPOSITORY": "/wiki/repository"}


def test_no_setting_at_all_is_enough() -> None:
    settings = read_settings(REPOSITORY, {})
    assert settings.repository == Path("/wiki/repository")
    assert settings.data_dir == Path("/wiki/repository-semantic")
    assert settings.api_key is None
    assert settings.sync_interval == 60


def test_the_environment_wins_over_the_wikis_configuration() -> None:
    wiki = {**REPOSITORY, "SEMANTIC_SYNC_INTERVAL": 30, "OTTERWIKI_API_KEY": "from the file"}
    assert read_settings(wiki, {}).sync_interval == 30
    settings = read_settings(wiki, {"SEMANTIC_SYNC_INTERVAL": "5", "OTTERWIKI_API_KEY": "from the environment"})
    assert settings.sync_interval == 5
    assert settings.api_key == "from the environment"


def test_an_empty_value_is_no_value() -> None:
    settings = read_settings(REPOSITORY, {"SEMANTIC_MODEL": "", "OTTERWIKI_API_KEY": "", "SEMANTIC_DATA_DIR": ""})
    assert settings == read_settings(REPOSITORY, {})
    assert read_settings({**REPOSITORY, "OTTERWIKI_API_KEY": " key "}, {"OTTERWIKI_API_KEY": ""}).api_key == "key"
    assert read_settings({**REPOSITORY, "SEMANTIC_THREADS": 0}, {}).threads == 0


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("pages", "", PAGES),
        ("pages", "none", ()),
        ("pages", "map, Palette", ("palette", "map")),
        ("pages", ["health", "editor"], ("health", "editor")),
        ("exclude", "", ()),
        ("exclude", "drafts/** private/*.md", ("drafts/**", "private/*.md")),
        ("exclude", "'old notes/**'\n[x].md", ("old notes/**", "[x].md")),
        ("exclude", ["drafts/", "old notes/*.md"], ("drafts/", "old notes/*.md")),
        ("languages", "", ("en",)),
        ("languages", " DE, en,de ", ("de", "en")),
    ],
)
def test_lists_are_read_from_text_and_reach_the_daemon(name: str, value: object, expected: tuple[str, ...]) -> None:
    settings = read_settings({**REPOSITORY, f"SEMANTIC_{name.upper()}": value}, {})
    assert getattr(settings, name) == expected
    assert decode_settings(encode_settings(settings)) == settings


BAD_VALUES = {
    "SEMANTIC_PAGES": ("palette,search",),
    "SEMANTIC_MODEL": ("gpt",),
    "SEMANTIC_ANSWERS": ("gpt", "cohere:command", "ollama:", "multilingual"),
    "SEMANTIC_ANSWERS_WINDOW": ("100",),
    "SEMANTIC_ANSWERS_SECONDS": ("4", "601"),
    "SEMANTIC_ANSWERS_PER_HOUR": ("-1",),
    "SEMANTIC_SYNC_INTERVAL": ("soon", "0", "nan"),
    "SEMANTIC_CHUNKS": ("short",),
    "SEMANTIC_THREADS": ("1.5", "-1"),
    "SEMANTIC_DEVICE": ("gpu",),
    "SEMANTIC_SEARCH_LOG": ("maybe",),
    "SEMANTIC_CHROMA_URL": (
        "localhost:8000",
        "ftp://localhost",
        "http://",
        "http://:8000",
        "http://my host:8000",
        "http://localhost:0",
        "http://localhost:65536",
        "http://localhost:8000/chroma",
        "http://localhost:8000?tenant=me",
        "http://[1:2]:8000",
    ),
    "SEMANTIC_EXCLUDE": (
        "/drafts/**",
        "./drafts",
        "drafts//a.md",
        "home.md ../other.md",
        ":(icase)drafts",
        "drafts !drafts/a.md",
        "drafts/**, private/**",
        "drafts/**/\x07",
        "'drafts",
        "''",
        "'drafts\\'",
    ),
    "SEMANTIC_LANGUAGES": (",", "xx", "en;de", "german"),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values])
def test_a_bad_value_is_refused_with_its_name_and_what_is_allowed(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} is {re.escape(repr(value))}; allowed: "):
        read_settings(REPOSITORY, {name: value})


@pytest.mark.parametrize("value", [True, "true", "TRUE", "1", "yes", "On", False, "false", "0", "No", "off", ""])
def test_a_switch_can_be_put_on_and_off_in_several_words(value: object) -> None:
    is_on = str(value).lower() in {"true", "1", "yes", "on"}
    assert read_settings({**REPOSITORY, "SEMANTIC_SEARCH_LOG": value}, {}).search_log is is_on
    both = read_settings({**REPOSITORY, "SEMANTIC_SEARCH_LOG": True}, {"SEMANTIC_SEARCH_LOG": str(value)})
    assert both.search_log is (is_on or value == "")


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("http://localhost:8000", "http://localhost:8000"),
        ("HTTPS://Chroma.Example.org/", "https://chroma.example.org"),
        ("http://chroma_db:8000", "http://chroma_db:8000"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_the_chroma_server_is_named_by_its_url(value: str, url: str) -> None:
    assert read_settings(REPOSITORY, {}).chroma_url is None
    assert read_settings(REPOSITORY, {"SEMANTIC_CHROMA_URL": value}).chroma_url == url


SECRETS_IN = [
    *((f"SEMANTIC_{each}_URL", "http://me:hunter2@gpu:8000", "") for each in ("MODEL", "RERANKER", "ANSWERS")),
    *(
        ("SEMANTIC_CHROMA_URL", url, " must not contain a user name or a password")
        for url in ("http://me:hunter2@localhost:8000", "https://localhost/hunter2@/")
    ),
    *(
        ("SEMANTIC_CHROMA_TOKEN", token, " has a character")
        for token in ("hunter2 again", "hunter2\r\nX-Other: header", "hunter2 für alle")
    ),
    ("SEMANTIC_MODEL_OPTIONS", '{"api_key": "hunter2"', " is not a JSON object"),
]


@pytest.mark.parametrize(("name", "value", "reason"), SECRETS_IN)
def test_a_bad_value_that_may_hold_a_secret_is_not_repeated(name: str, value: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}{reason}") as refusal:
        read_settings(REPOSITORY, {name: value})
    assert "hunter2" not in str(refusal.value)


def test_the_token_of_a_chroma_server_goes_only_where_nobody_listens() -> None:
    token = {"SEMANTIC_CHROMA_TOKEN": "hunter2"}
    for url in ("https://chroma.example.org", "http://localhost:8000", "http://127.0.0.1:8000", "http://[::1]:8000"):
        assert read_settings(REPOSITORY, {"SEMANTIC_CHROMA_URL": url, **token}).chroma_token == "hunter2"
    with pytest.raises(ConfigError, match="SEMANTIC_CHROMA_TOKEN would go to http://chroma:8000 for everyone") as refusal:
        read_settings(REPOSITORY, {"SEMANTIC_CHROMA_URL": "http://chroma:8000", **token})
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("name", ["ab", "a/../b", "with space", "-begins", "ends."])
def test_names_that_chroma_does_not_take_are_refused(name: str) -> None:
    for setting, value in (("COLLECTION", name), ("CHROMA_DATABASE", name), ("CHROMA_DATABASE", f"{name}/wiki")):
        with pytest.raises(ConfigError, match=f"SEMANTIC_{setting} is .*; allowed: .*3 to 512 letters"):
            read_settings(REPOSITORY, {f"SEMANTIC_{setting}": value})


@pytest.mark.parametrize(("value", "database"), [("", "default_tenant/default_database"), ("wiki", "default_tenant/wiki")])
def test_a_database_without_a_tenant_is_that_of_the_default_one(value: str, database: str) -> None:
    assert read_settings(REPOSITORY, {"SEMANTIC_CHROMA_DATABASE": value}).chroma_database == database
    assert read_settings(REPOSITORY, {"SEMANTIC_CHROMA_DATABASE": database}).chroma_database == database


def test_an_unknown_setting_is_refused_with_its_name() -> None:
    with pytest.raises(
        ConfigError,
        match=r"unknown setting SEMANTIC_MODLE \(did you mean SEMANTIC_MODEL\?\); the settings are: .*SEMANTIC_MODEL",
    ):
        read_settings(REPOSITORY, {"SEMANTIC_MODLE": "minilm"})


def test_a_missing_repository_or_data_directory_is_named() -> None:
    with pytest.raises(ConfigError, match="REPOSITORY"):
        read_settings({}, {})
    with pytest.raises(ConfigError, match="SEMANTIC_DATA_DIR"):
        read_settings({"REPOSITORY": "/"}, {})
    assert read_settings({"REPOSITORY": "/", "SEMANTIC_DATA_DIR": "/index"}, {}).data_dir == Path("/index")


def test_a_providers_own_key_goes_to_no_other_address() -> None:
    own = {"SEMANTIC_MODEL": "openai:small", "OPENAI_API_KEY": "sk-own"}
    assert read_settings(REPOSITORY, own).model_key == "sk-own"
    elsewhere = {**own, "SEMANTIC_MODEL_URL": "http://gpu:8000/v1"}
    assert read_settings(REPOSITORY, elsewhere).model_key is None
    named = read_settings(REPOSITORY, {**elsewhere, "SEMANTIC_MODEL_KEY": "sk-gpu"})
    assert named.model_key == "sk-gpu"
    assert unencrypted_keys(named) == ["SEMANTIC_MODEL_KEY"]
    here = read_settings(REPOSITORY, {**own, "SEMANTIC_MODEL_KEY": "k", "SEMANTIC_MODEL_URL": "http://127.0.0.1:8000"})
    assert unencrypted_keys(here) == []
    reranker = {"SEMANTIC_RERANKER": "cohere:rerank", "CO_API_KEY": "co", "SEMANTIC_RERANKER_URL": "https://gpu"}
    assert read_settings(REPOSITORY, reranker).reranker_key is None


def test_another_model_has_its_own_prompts_and_the_address_and_key_only_of_its_own_provider() -> None:
    served = {"SEMANTIC_MODEL_URL": "http://gpu:11434", "SEMANTIC_MODEL_KEY": "k", "SEMANTIC_MODEL_OPTIONS": '{"a": 1}'}
    given = {"SEMANTIC_MODEL": "ollama:small", "SEMANTIC_MODEL_WINDOW": "100", "SEMANTIC_QUERY_PROMPT": "ask: ", **served}
    settings = read_settings({**REPOSITORY, **given}, {})
    assert settings_with_model(settings, "ollama:small", given, {}) == settings
    same = settings_with_model(settings, "ollama:big", given, {})
    assert (same.model, same.model_url, same.model_key, same.model_options) == (
        "ollama:big",
        "http://gpu:11434",
        "k",
        '{"a": 1}',
    )
    assert (same.model_window, same.query_prompt) == (None, None)
    other = settings_with_model(settings, "openai:big", given, {"OPENAI_API_KEY": "sk-own"})
    assert (other.model, other.model_url, other.model_key, other.model_options) == ("openai:big", None, "sk-own", "{}")
    assert settings_with_model(settings, "multilingual", given, {}).query_prompt == "query: "


def test_no_model_writes_answers_by_default() -> None:
    settings = read_settings(REPOSITORY, {})
    assert (settings.answers, settings.answers_key, settings.answers_url) == (None, None, None)
    assert (settings.answers_window, settings.answers_seconds, settings.answers_per_hour) == (8192, 60, 60)
    for given in ("extractive", "ollama:multilingual"):
        assert read_settings(REPOSITORY, {"SEMANTIC_ANSWERS": given}).answers == given


def test_each_provider_of_answers_gets_its_own_key_and_no_other_address_does() -> None:
    keys = {"OPENAI_API_KEY": "sk-openai", "ANTHROPIC_API_KEY": "sk-anthropic"}
    for model, key in (("openai:small", "sk-openai"), ("anthropic:small", "sk-anthropic"), ("ollama:small", None)):
        given = {**keys, "SEMANTIC_ANSWERS": model}
        assert read_settings(REPOSITORY, given).answers_key == key
        assert read_settings(REPOSITORY, {**given, "SEMANTIC_ANSWERS_KEY": "own"}).answers_key == "own"
        elsewhere = {**given, "SEMANTIC_ANSWERS_URL": "http://gpu:8000/v1"}
        assert read_settings(REPOSITORY, elsewhere).answers_key is None
        named = read_settings(REPOSITORY, {**elsewhere, "SEMANTIC_ANSWERS_KEY": "own"})
        assert unencrypted_keys(named) == ["SEMANTIC_ANSWERS_KEY"]


def test_keys_and_options_reach_the_daemon_except_the_key_of_the_wiki() -> None:
    values = {"SEMANTIC_ANSWERS_KEY": "sk-answers", "SEMANTIC_ANSWERS_OPTIONS": '{"api_key": "sk-hidden"}'}
    settings = read_settings(REPOSITORY, {"SEMANTIC_ANSWERS": "ollama:big", **values})
    with_key = replace(settings, api_key="otter-key")
    assert "sk-answers" not in repr(settings).replace(settings.answers_options, "")
    assert "otter-key" not in encode_settings(with_key)
    assert decode_settings(encode_settings(with_key)) == settings


def test_a_preset_stands_for_a_model_of_many_languages_with_its_prompts() -> None:
    for name, model, prompt in (
        ("multilingual", "sentence-transformers:intfloat/multilingual-e5-small", "query: "),
        ("onnx:/srv/multilingual-e5-base", "onnx:/srv/multilingual-e5-base", "query: "),
        ("ollama:multilingual", "ollama:bge-m3", None),
        ("onnx:/srv/multilingual-e5-large-instruct", "onnx:/srv/multilingual-e5-large-instruct", None),
    ):
        settings = read_settings(REPOSITORY, {"SEMANTIC_MODEL": name})
        assert (settings.model, settings.query_prompt) == (model, prompt)
        assert settings.passage_prompt == (prompt and "passage: ")
    own = read_settings(REPOSITORY, {"SEMANTIC_MODEL": "multilingual", "SEMANTIC_QUERY_PROMPT": "ask: "})
    assert (own.query_prompt, own.passage_prompt) == ("ask: ", "passage: ")
