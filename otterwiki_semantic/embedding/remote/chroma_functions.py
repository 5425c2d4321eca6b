"""Providers that are asked through ChromaDB's own embedding functions, each with its provider's client library."""

from __future__ import annotations

import os
import re
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.http import ProviderError, retry_after
from otterwiki_semantic.core.redact import quote
from otterwiki_semantic.core.settings import CHROMA_PROVIDERS, Settings
from otterwiki_semantic.core.timeout import call_with_timeout
from otterwiki_semantic.embedding.options import check_names, options_of
from otterwiki_semantic.embedding.remote.model import ModelDescription

if TYPE_CHECKING:
    import httpx

_KEY = "SEMANTIC_MODEL_KEY"
_KEY_ATTRIBUTES = ("api_key", "_api_key")
_NAMES_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST_SECRET = 8
_OURS = frozenset({"self", "api_key", "api_key_env_var", "model", "model_name", "session", "kwargs"})
_PACKAGE = re.compile(r"`pip install ([\w.-]+)`")


class ChromaFunctionProvider:
    """A `Service` of one of these functions, which are made on first use: one for passages and one for queries."""

    most_texts = 64
    most_tokens = 50_000

    def __init__(self, settings: Settings) -> None:
        self._provider, _, self._model = settings.model.partition(":")
        self._settings = settings
        self._quirks = QUIRKS.get(self._provider, Quirks())
        self._lock = threading.Lock()
        self._functions: dict[bool, Any] = {}
        self.place = settings.model_url or f"the provider {self._provider}"

    def describe(self, seconds: float) -> ModelDescription:  # noqa: ARG002 - nothing is asked
        """Give nothing: these functions tell nothing of a model."""
        return ModelDescription()

    def embed(self, texts: Sequence[str], seconds: float, *, is_query: bool) -> Any:
        """See `Service`."""
        function = self._function(is_query=is_query)
        session: Any = getattr(function, "_session", None)
        if hasattr(session, "timeout"):
            session.timeout = seconds
        ask = self._quirks.ask_query if is_query else type(function).__call__
        try:
            return call_with_timeout(seconds, lambda: ask(function, list(texts)))
        except TimeoutError:
            raise ProviderError(None, f"no answer within {seconds:.0f} s") from None
        except Exception as error:  # noqa: BLE001 - each client library has errors of its own, which may hold the key
            raise self._refusal(error, None if is_query else texts) from None

    @property
    def secrets(self) -> tuple[str, ...]:
        """See `Service`: the key that is set here, and whatever the functions and their client libraries may have found."""
        functions = tuple(self._functions.values())
        attributes = (getattr(function, name, None) for function in functions for name in _KEY_ATTRIBUTES)
        variables = (value for name, value in os.environ.items() if _NAMES_SECRET.search(name))
        named = (os.environ.get(str(getattr(function, "api_key_env_var", ""))) for function in functions)
        found = {self._settings.model_key, *(each for each in attributes if isinstance(each, str)), *named}
        return tuple({*filter(None, found), *(value for value in variables if len(value) >= _SHORTEST_SECRET)})

    def cure(self, status: int | None) -> str:
        """See `Service`."""
        if status in {401, 403}:
            return self._quirks.credentials
        if status is not None and 400 <= status < 500 and status != 429:
            return f"correct SEMANTIC_MODEL ({self._model}) or SEMANTIC_MODEL_OPTIONS"
        return "searches answer by words until it does"

    def _function(self, *, is_query: bool) -> Any:
        with self._lock:
            if is_query not in self._functions:
                self._functions[is_query] = self._made(is_query=is_query)
            return self._functions[is_query]

    def _made(self, *, is_query: bool) -> Any:
        from chromadb.utils.embedding_functions import known_embedding_functions

        made_by = known_embedding_functions[CHROMA_PROVIDERS[self._provider]]
        taken = signature(made_by.__init__).parameters
        options = options_of(self._settings)
        check_names(options, {*taken} - _OURS | self._quirks.more_options, self._provider)
        defaults = self._quirks.defaults(self._model, is_query)
        given = {**defaults, **options, **self._identity(taken)}
        try:
            with warnings.catch_warnings(), self._key_in_environment():
                warnings.simplefilter("ignore", DeprecationWarning)  # of keys that would be stored: nothing is stored here
                function = made_by(**self._quirks.arguments(given))
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001 - each client library has errors of its own, which may hold the key
            raise self._not_made(error) from None
        self._quirks.mend(function)
        self._place(function)
        return function

    def _identity(self, taken: Mapping[str, Parameter]) -> dict[str, Any]:
        """Give the model's name and the key, as the function takes them; a key that is set here comes before all others."""
        given: dict[str, Any] = {"model" if "model" in taken else "model_name": self._model}
        key = self._settings.model_key
        if key and "api_key" in taken:
            given["api_key"] = key
        elif key and "api_key_env_var" in taken:
            given["api_key_env_var"] = _KEY
        return given

    @contextmanager
    def _key_in_environment(self) -> Iterator[None]:
        """Have the key where some functions read it while they are made; a process that is started meanwhile inherits it."""
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

    def _place(self, function: Any) -> None:
        """Have the function's own client tell of refusals, and send it where SEMANTIC_MODEL_URL says."""
        import httpx

        session = getattr(function, "_session", None)
        if isinstance(session, httpx.Client):
            session.event_hooks = {"response": [_refuse]}
            weakref.finalize(self, session.close)
        if self._settings.model_url is None:
            return
        if not hasattr(function, "_api_url"):
            raise ModelError(
                f"{self._provider} is always asked at its own address: unset SEMANTIC_MODEL_URL, "
                f"or set SEMANTIC_MODEL=openai:{self._model} for a server of OpenAI's protocol"
            )
        function._api_url = self._settings.model_url

    def _not_made(self, error: Exception) -> ModelError:
        text = quote(str(error), self.secrets)
        package = _PACKAGE.search(text)
        if package:
            wanted = self._quirks.package or package[1]
            return ModelError(
                f'{self._provider} needs a package that is not installed; install it with: pip install "{wanted}"'
            )
        if "environment variable" in text:
            return ModelError(f"{self._provider} needs a key: set {_KEY}")
        return ModelError(f"{self._provider} cannot be used with these SEMANTIC_MODEL_OPTIONS: {text}")

    def _refusal(self, error: Exception, texts: Sequence[str] | None) -> ProviderError | ModelError:
        """Give what a client library's error means: with the HTTP status, if it or one of its causes has one.

        `texts` are what no word may repeat; None: no word of the error's own is to be told.
        """
        causes = _causes(error)
        status = next((found for cause in causes if (found := _status(cause)) is not None), None)
        response = next((answer for cause in causes if (answer := _answer(cause)) is not None), None)
        said = response.text if response is not None else getattr(error, "body", None)
        kind, text = type(error).__name__, str(said or error)
        if status is None and not any(_is_of_connection(cause) for cause in causes):
            told = f"{kind}: {self._quoted(text, texts)}".removesuffix(": ")
            return ModelError(f"{self.place} answered {self._model} nothing that makes sense ({told})")
        wait = response.headers.get("retry-after") if response is not None else None
        return ProviderError(status, "" if status else kind, retry_after(wait), said=text)

    def _quoted(self, text: str, texts: Sequence[str] | None) -> str:
        if texts is None:
            return ""
        prompt = self._settings.passage_prompt or ""
        return quote(text, self.secrets, [*texts, *(text.removeprefix(prompt) for text in texts if prompt)])


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


def _status(error: BaseException) -> int | None:
    places = (error, getattr(error, "response", None))
    found = [getattr(place, name, None) for place in places for name in ("status_code", "http_status", "code")]
    if isinstance(places[1], dict):  # as boto3 has it
        found.append(places[1].get("ResponseMetadata", {}).get("HTTPStatusCode"))
    return next((number for number in found if type(number) is int and 400 <= number < 600), None)


def _answer(error: BaseException) -> httpx.Response | None:
    import httpx

    return error.response if isinstance(error, httpx.HTTPStatusError) else None


def _refuse(response: httpx.Response) -> None:
    """Have a client tell of a status that is no answer; the functions do not look at it."""
    if not response.is_success:
        response.read()
        response.raise_for_status()


def _is_of_connection(error: BaseException) -> bool:
    import httpx

    name = type(error).__name__.lower()
    return isinstance(error, httpx.RequestError | OSError) or "timeout" in name or "connect" in name


def _no_defaults(model: str, is_query: bool) -> dict[str, Any]:  # noqa: ARG001 - the same for all
    return {}


def _ask_query(function: Any, texts: list[str]) -> Any:
    return function.embed_query(texts)


def _untouched(function: Any) -> None:
    """Leave a function as it is."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """What one function needs.

    `defaults` are options by model, and by whether queries are embedded; `ask_query` embeds queries, `arguments` makes the
    constructor's arguments of all that is given, `mend` changes a function that was made, `package` is the version of its
    client library that it works with, `credentials` what to do where they are refused, `more_options` are options beside
    those of the constructor.
    """

    defaults: Callable[[str, bool], dict[str, Any]] = _no_defaults
    ask_query: Callable[[Any, list[str]], Any] = _ask_query
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    mend: Callable[[Any], None] = _untouched
    package: str | None = None
    credentials: str = "set SEMANTIC_MODEL_KEY to a key that it takes"
    more_options: frozenset[str] = field(default_factory=frozenset)


def _with_session(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a session of AWS, whose credentials are those of its own environment."""
    try:
        boto3 = import_module("boto3")
    except ImportError:
        raise ModelError('bedrock needs a package that is not installed; install it with: pip install "boto3"') from None
    rest = {name: value for name, value in given.items() if name not in {"region", "profile"}}
    return {**rest, "session": boto3.Session(region_name=given.get("region"), profile_name=given.get("profile"))}


def _ask_cohere(function: Any, texts: list[str]) -> Any:
    """Ask as for queries: the function itself embeds everything as a passage."""
    return function.client.embed(texts=texts, model=function.model_name, input_type="search_query").embeddings


def _jina(model: str, is_query: bool) -> dict[str, Any]:  # noqa: ARG001 - it tells them apart itself
    """The second generation knows no tasks."""
    if "-v2" in model:
        return {}
    return {"task": "retrieval.passage", "query_config": {"task": "retrieval.query"}}


def _nomic(model: str, is_query: bool) -> dict[str, Any]:  # noqa: ARG001 - it tells them apart itself
    return {"task_type": "search_document", "query_config": {"task_type": "search_query"}}


def _mend_nomic(function: Any) -> None:
    """The client answers a dictionary; the function expects an object of the kind that OpenAI's has."""
    text = function.embed.text

    def answer(**asked: Any) -> Any:
        vectors = text(**asked, long_text_mode="mean")["embeddings"]
        return SimpleNamespace(data=[SimpleNamespace(embedding=vector) for vector in vectors])

    function.embed = SimpleNamespace(text=answer)


QUIRKS = {
    "bedrock": Quirks(
        arguments=_with_session,
        credentials="see that AWS's credentials on this machine may invoke the model in that region",
        more_options=frozenset({"region", "profile", "endpoint_url"}),
    ),
    "cohere": Quirks(ask_query=_ask_cohere),
    "google": Quirks(defaults=lambda _, is_query: {"task_type": "RETRIEVAL_QUERY" if is_query else "RETRIEVAL_DOCUMENT"}),
    "jina": Quirks(defaults=_jina),
    "mistral": Quirks(package="mistralai<2"),
    "nomic": Quirks(defaults=_nomic, mend=_mend_nomic),
    "voyage": Quirks(defaults=lambda _, is_query: {"input_type": "query" if is_query else "document", "truncation": False}),
}
"""By what a provider is called here."""
