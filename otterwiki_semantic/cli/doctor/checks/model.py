"""Check that the embedding model answers, and the model that writes answers."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from otterwiki_semantic.cli.doctor.context import DoctorContext, Finding, note, ok, problem
from otterwiki_semantic.core.errors import ChatModelError, ModelError, SemanticError
from otterwiki_semantic.core.settings import BUNDLED, Settings
from otterwiki_semantic.core.timeout import call_with_timeout

_QUESTION = "Does the model answer?"
_KNOWN = "model.json"
_SECONDS = 20.0
_WITH_DEVICE = ("onnx:", "sentence-transformers:")


def check_model(context: DoctorContext) -> Iterator[Finding]:
    """Let the model embed a sentence, name the reranker, and ask about the model that writes."""
    settings = context.services
    if any(name.startswith("SEMANTIC_MODEL") for name in context.wrong):  # with a wrong URL the key might go to another server
        yield note("model", "not checked: its settings are wrong")
    else:
        yield _model(settings)
        if settings.device == "cuda" and not settings.model.startswith(_WITH_DEVICE):
            detail = f"SEMANTIC_DEVICE is 'cuda', but {settings.model} does not run on a GPU of this machine"
            yield note("device", detail, f"set SEMANTIC_MODEL to a model of {' or '.join(_WITH_DEVICE)}, or leave this out")
    if settings.reranker is not None:
        yield note("reranker", f"{settings.reranker} reranks the best candidates; not checked")
    if settings.answers is not None and any(name.startswith("SEMANTIC_ANSWERS") for name in context.wrong):
        yield note("answers", "not checked: its settings are wrong")
    elif settings.answers is not None:
        yield _answers(settings)


def _model(settings: Settings) -> Finding:
    from otterwiki_semantic.embedding import open_embedder

    try:
        asks_server = open_embedder(settings).asks_server
        return ok("model", call_with_timeout(_SECONDS, lambda: _embed(settings)))
    except SemanticError as error:
        return problem("model", f"{settings.model}: {error}", _hint(settings, error))
    except TimeoutError:
        if not asks_server:
            detail = f"{settings.model} was not loaded after {_SECONDS:.0f} s"
            return note("model", detail, "if it is being downloaded or the machine is busy, wait and run this again")
        hint = "make sure that its server runs and is not overloaded; until it answers, searches use keywords only"
        return problem("model", f"{settings.model}: its server returned no vector within {_SECONDS:.0f} s", hint)


def _answers(settings: Settings) -> Finding:
    """Ask the server about the model that writes answers; no text is sent."""
    from otterwiki_semantic.search.answering import open_chat_model

    model = open_chat_model(settings)
    if model is None:
        return ok("answers", "made of the pages' own sentences")
    try:
        return ok("answers", call_with_timeout(_SECONDS, lambda: model.check(_SECONDS)))
    except ChatModelError as error:
        return problem("answers", str(error), "correct this; until then questions are answered with their sources alone")
    except TimeoutError:
        detail = f"{settings.answers}: {model.place} did not answer within {_SECONDS:.0f} s"
        return problem("answers", detail, "make sure that its server runs and is not overloaded")
    finally:
        model.close()


def _embed(settings: Settings) -> str:
    """Let the model embed a sentence, and describe it; files are written to a scratch directory.

    A server is asked about its model only if the index does not know it yet.
    """
    from otterwiki_semantic.embedding import open_embedder

    with tempfile.TemporaryDirectory() as scratch:
        with suppress(OSError):
            shutil.copyfile(settings.data_dir / _KNOWN, Path(scratch) / _KNOWN)
        embedder = open_embedder(replace(settings, data_dir=Path(scratch)))
        is_known = embedder.dimension > 0
        if not is_known:
            embedder.prepare()
        start = time.perf_counter()
        length = embedder.embed_queries([_QUESTION]).shape[1]
        seconds = time.perf_counter() - start
    detail = f"{embedder.name}: vectors of {length} numbers, a window of {embedder.window} tokens"
    first = (
        "" if is_known or not embedder.asks_server else "; its server was also asked about the model, as before a first build"
    )
    device = f" on {embedder.device}" if embedder.device else ""
    return f"{detail}; embedded a sentence in {seconds * 1000:.0f} ms{device}{first}"


def _hint(settings: Settings, error: SemanticError) -> str:
    if settings.model == BUNDLED and isinstance(error, ModelError):
        return "install the package again: pip install --force-reinstall otterwiki-semantic"
    return "correct this, or the SEMANTIC_MODEL settings; until then searches use keywords only"
