"""The embedding model: whether it answers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from otterwiki_semantic.config import BUNDLED, Settings
from otterwiki_semantic.doctor.case import Case
from otterwiki_semantic.doctor.finding import Finding, note, ok, problem
from otterwiki_semantic.errors import ModelError, SemanticError

_QUESTION = "Does the model answer?"


def check_model(case: Case) -> Iterator[Finding]:
    """Let the model embed a sentence, and tell what else takes part in a search."""
    if case.settings is None:
        return
    if "SEMANTIC_MODEL" not in case.wrong:
        yield _model(case.settings)
    if case.settings.reranker is not None:
        yield note("reranker", f"{case.settings.reranker} reads the best candidates again; it was not asked")


def _model(settings: Settings) -> Finding:
    from otterwiki_semantic.embedding.opening import open_embedder

    try:
        with tempfile.TemporaryDirectory() as scratch:  # what is found out about the model is remembered beside the index
            embedder = open_embedder(replace(settings, data_dir=Path(scratch)))
            embedder.prepare()
            start = time.perf_counter()
            length = embedder.embed_queries([_QUESTION]).shape[1]
            seconds = time.perf_counter() - start
    except SemanticError as error:
        return problem("model", f"{settings.model}: {error}", _cure(settings, error))
    detail = f"{embedder.name}: vectors of {length} numbers, a window of {embedder.window} word pieces"
    return ok("model", f"{detail}; it embedded a sentence in {seconds * 1000:.0f} ms")


def _cure(settings: Settings, error: SemanticError) -> str:
    if settings.model == BUNDLED and isinstance(error, ModelError):
        return "install the package again: pip install --force-reinstall otterwiki-semantic"
    return "do what it says, or correct the SEMANTIC_MODEL settings; until then searches go by words alone"
