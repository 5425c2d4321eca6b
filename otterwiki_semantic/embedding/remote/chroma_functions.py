"""Providers behind ChromaDB's own embedding functions, each with its provider's client library."""

from __future__ import annotations

import os
import re
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.core.errors import ModelError, causes
from otterwiki_semantic.core.http import ProviderError, ProviderTimeoutError, retry_after
from otterwiki_semantic.core.redact import redact
from otterwiki_semantic.core.settings import CHROMA_PROVIDERS, Settings
from otterwiki_semantic.core.timeout import call_with_timeout
from otterwiki_semantic.embedding.model_info import check_known, model_options
from otterwiki_semantic.embedding.remote.provider import KEY_REMEDY, ModelDescription

if TYPE_CHECKING:
    import httpx

_KEY = "SEMANTIC_MODEL_KEY"
_KEY_LOCK = threading.Lock()
"""Held while a key is in the environment, so that no other model gets it."""
_KEY_ATTRIBUTES = ("api_key", "_api_key")
_NAMES_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST_SECRET = 8
_NO_OPTIONS = frozenset({"self", "api_key", "api_key_env_var", "model", "model_name", "session", "kwargs"})
"""Constructor parameters that SEMANTIC_MODEL_OPTIONS must not set."""
_PACKAGE = re.compile(r"`pip install ([\w.-]+)`")


class ChromaFunctionProvider:
    """An `EmbeddingProvider` for a ChromaDB function: one instance embeds passages, another one queries."""

    max_texts = 64
    max_tokens = 50_000

    def __init__(self, settings: Settings) -> None:
        self._provider, _, self._model = settings.model.partition(":")
        self._settings = settings
        self._workarounds = WORKAROUNDS.get(self._provider, Workarounds())
        self._lock = threading.Lock()
        self._functions: dict[bool, Any] = {}
        self.place = settings.model_url or f"the provider {self._provider}"

    def describe(self, seconds: float) -> ModelDescription:  # noqa: ARG002 - these functions report nothing about a model
        return ModelDescription()

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:
        function = self._function(is_query=is_query)
        session: Any = getattr(function, "_session", None)
        if hasattr(session, "timeout"):
            session.timeout = seconds
        embed = self._workarounds.embed_query if is_query else type(function).__call__
        try:
            return call_with_timeout(seconds, lambda: embed(function, list(texts)))
        except TimeoutError:
            raise ProviderTimeoutError(seconds) from None
        except Exception as error:  # noqa: BLE001 - each client library has its own errors, which may contain the key
            raise self._refusal(error, None if is_query else texts) from None

    @property
    def secrets(self) -> tuple[str | None, ...]:
        """The configured key, and the keys that the functions and their client libraries may have found themselves."""
        variables = [value for name, value in os.environ.items() if _NAMES_SECRET.search(name)]
        found = {self._settings.model_key, *(value for value in variables if len(value) >= _SHORTEST_SECRET)}
        for function in tuple(self._functions.values()):
            attributes = (getattr(function, name, None) for name in _KEY_ATTRIBUTES)
            found.update(each for each in attributes if isinstance(each, str))
            found.add(os.environ.get(str(getattr(function, "api_key_env_var", ""))))
        return tuple(found)

    def remedy(self, status: int | None) -> str:
        if status in {401, 403}:
            return self._workarounds.key_remedy
        if status is not None and 400 <= status < 500 and status != 429:
            return f"correct SEMANTIC_MODEL ({self._model}) or SEMANTIC_MODEL_OPTIONS"
        return "searches answer by words until it does"

    def _function(self, *, is_query: bool) -> Any:
        with self._lock:
            if is_query not in self._functions:
                self._functions[is_query] = self._new_function(is_query=is_query)
            return self._functions[is_query]

    def _new_function(self, *, is_query: bool) -> Any:
        from chromadb.utils.embedding_functions import known_embedding_functions

        constructor = known_embedding_functions[CHROMA_PROVIDERS[self._provider]]
        parameters = signature(constructor.__init__).parameters
        options = model_options(self._settings)
        check_known(options, {*parameters} - _NO_OPTIONS | self._workarounds.more_options, self._provider)
        arguments = self._workarounds.defaults(self._model, is_query) | options
        arguments["model" if "model" in parameters else "model_name"] = self._model
        if self._settings.model_key and "api_key" in parameters:
            arguments["api_key"] = self._settings.model_key
        elif self._settings.model_key and "api_key_env_var" in parameters:
            arguments["api_key_env_var"] = _KEY
        try:
            with warnings.catch_warnings(), self._key_in_environment():
                warnings.simplefilter("ignore", DeprecationWarning)  # about keys that would be stored: nothing is stored here
                function = constructor(**self._workarounds.arguments(arguments))
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - each client library has its own errors, which may contain the key
            raise self._constructor_error(error) from None
        self._workarounds.patch(function)
        self._patch_client(function)
        return function

    @contextmanager
    def _key_in_environment(self) -> Iterator[None]:
        """Set the environment variable from which some constructors read the key; processes started meanwhile inherit it."""
        with _KEY_LOCK:
            before = os.environ.get(_KEY)
            if self._settings.model_key:
                os.environ[_KEY] = self._settings.model_key
            try:
                yield
            finally:
                if before is None:
                    os.environ.pop(_KEY, None)
                else:
                    os.environ[_KEY] = before

    def _patch_client(self, function: Any) -> None:
        """Patch the function's HTTP client to raise refusals, and to send its requests to SEMANTIC_MODEL_URL."""
        import httpx

        session = getattr(function, "_session", None)
        if isinstance(session, httpx.Client):
            session.event_hooks = {"response": [_raise_for_status]}
            weakref.finalize(self, session.close)
        if self._settings.model_url is None:
            return
        if not hasattr(function, "_api_url"):
            raise ModelError(
                f"{self._provider} is always asked at its own address: unset SEMANTIC_MODEL_URL, "
                f"or set SEMANTIC_MODEL=openai:{self._model} for a server of OpenAI's protocol"
            )
        function._api_url = self._settings.model_url

    def _constructor_error(self, error: Exception) -> ModelError:
        text = redact(str(error), self.secrets)
        package = _PACKAGE.search(text)
        if package:
            wanted = self._workarounds.package or package[1]
            return ModelError(
                f'{self._provider} needs a package that is not installed; install it with: pip install "{wanted}"'
            )
        if "environment variable" in text:
            return ModelError(f"{self._provider} needs a key: set {_KEY}")
        return ModelError(f"{self._provider} cannot be used with these SEMANTIC_MODEL_OPTIONS: {text}")

    def _refusal(self, error: Exception, texts: Sequence[str] | None) -> ProviderError | ModelError:
        """Convert a client library's error, with the HTTP status if the error or one of its causes has one.

        The message repeats none of `texts`. If `texts` is None, it contains nothing from the error's own message.
        """
        import httpx

        found = list(causes(error))
        status = next((number for cause in found if (number := _status(cause)) is not None), None)
        response = next((cause.response for cause in found if isinstance(cause, httpx.HTTPStatusError)), None)
        body = response.text if response is not None else getattr(error, "body", None)
        kind, message = type(error).__name__, str(body or error)
        if status is None and not any(map(_is_connection_error, found)):
            prompt = self._settings.passage_prompt or ""
            sent = [*(texts or ()), *(text.removeprefix(prompt) for text in texts or () if prompt)]
            shown = "" if texts is None else redact(message, self.secrets, sent)
            reason = f"{kind}: {shown}".removesuffix(": ")
            return ModelError(f"{self.place} gave no sensible answer for {self._model} ({reason})")
        wait = response.headers.get("retry-after") if response is not None else None
        return ProviderError(status, "" if status else kind, retry_after(wait), server_message=message)


def _status(error: BaseException) -> int | None:
    places = (error, getattr(error, "response", None))
    found = [getattr(place, name, None) for place in places for name in ("status_code", "http_status", "code")]
    if isinstance(places[1], dict):  # the form in boto3
        found.append(places[1].get("ResponseMetadata", {}).get("HTTPStatusCode"))
    return next((number for number in found if type(number) is int and 400 <= number < 600), None)


def _raise_for_status(response: httpx.Response) -> None:
    """Raise an error for an HTTP status other than success, which the functions do not check."""
    if not response.is_success:
        response.read()
        response.raise_for_status()


def _is_connection_error(error: BaseException) -> bool:
    import httpx

    name = type(error).__name__.lower()
    return isinstance(error, httpx.RequestError | OSError) or "timeout" in name or "connect" in name


@dataclass(frozen=True, slots=True)
class Workarounds:
    """Workarounds for one function of ChromaDB 1.5."""

    defaults: Callable[[str, bool], dict[str, Any]] = lambda _model, _is_query: {}
    """Default options for a model, for queries or for passages."""
    embed_query: Callable[[Any, list[str]], Any] = lambda function, texts: function.embed_query(texts)
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    """Converts all options, the model and the key to the constructor's arguments."""
    patch: Callable[[Any], None] = lambda _function: None
    package: str | None = None
    key_remedy: str = KEY_REMEDY
    more_options: frozenset[str] = frozenset()


def _with_session(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add an AWS session, which takes its credentials from AWS's environment variables."""
    try:
        boto3 = import_module("boto3")
    except ImportError:
        raise ModelError('bedrock needs a package that is not installed; install it with: pip install "boto3"') from None
    rest = {name: value for name, value in arguments.items() if name not in {"region", "profile"}}
    return {**rest, "session": boto3.Session(region_name=arguments.get("region"), profile_name=arguments.get("profile"))}


def _embed_query_with_cohere(function: Any, texts: list[str]) -> Any:
    """Embed queries as queries: the function itself embeds everything as passages."""
    return function.client.embed(texts=texts, model=function.model_name, input_type="search_query").embeddings


def _patch_nomic(function: Any) -> None:
    """Convert answers: the client returns a dictionary, but the function expects an object like OpenAI's."""
    text = function.embed.text

    def answer(**arguments: Any) -> Any:
        vectors = text(**arguments, long_text_mode="mean")["embeddings"]
        return SimpleNamespace(data=[SimpleNamespace(embedding=vector) for vector in vectors])

    function.embed = SimpleNamespace(text=answer)


_JINA_TASKS = {"task": "retrieval.passage", "query_config": {"task": "retrieval.query"}}
"""For all models but the second generation, which has no tasks."""
_NOMIC_TASKS = {"task_type": "search_document", "query_config": {"task_type": "search_query"}}

WORKAROUNDS = {
    "bedrock": Workarounds(
        arguments=_with_session,
        key_remedy="see that AWS's credentials on this machine may invoke the model in that region",
        more_options=frozenset({"region", "profile", "endpoint_url"}),
    ),
    "cohere": Workarounds(embed_query=_embed_query_with_cohere),
    "google": Workarounds(defaults=lambda _, is_query: {"task_type": "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"}),
    "jina": Workarounds(defaults=lambda model, _: {} if "-v2" in model else _JINA_TASKS),
    "mistral": Workarounds(package="mistralai<2"),
    "nomic": Workarounds(defaults=lambda *_: _NOMIC_TASKS, patch=_patch_nomic),
    "voyage": Workarounds(
        defaults=lambda _, is_query: {"input_type": "query" if is_query else "document", "truncation": False}
    ),
}
