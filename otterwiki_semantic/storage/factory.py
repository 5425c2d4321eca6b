"""Opens generations as configured: how to search their vectors, and where ChromaDB is."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from otterwiki_semantic.core.settings import Settings, index_settings
from otterwiki_semantic.core.telemetry import Telemetry
from otterwiki_semantic.embedding import model_config
from otterwiki_semantic.storage.chroma.connection import ChromaServer
from otterwiki_semantic.storage.chroma.embedded import EmbeddedChromaStore
from otterwiki_semantic.storage.chroma.mirror import OpenStore
from otterwiki_semantic.storage.chroma.ownership import CollectionOwnership
from otterwiki_semantic.storage.chroma.server import ChromaServerStore
from otterwiki_semantic.storage.generation import EXACT, EXACT_FLOAT32, PUBLIC_LINK, Generation, GenerationStore
from otterwiki_semantic.storage.vector_store import CollectionSpec


def open_generations(settings: Settings, telemetry: Telemetry) -> GenerationStore:
    """Return the generations in the data directory, without opening any."""
    facts = index_settings(settings)
    vectors = settings.vectors
    if vectors == "auto" and settings.vector_search == "chroma" and settings.chroma_url is not None:
        vectors = "disk"
    largest = EXACT_FLOAT32 if vectors == "float32" else EXACT
    open_generation = partial(
        Generation,
        open_store=_store_opener(settings),
        telemetry=telemetry,
        spec=CollectionSpec(settings.collection, settings.chroma_documents, model_config(facts)),
        exact_up_to={"auto": largest, "exact": math.inf, "chroma": 0.0}[settings.vector_search],
        vectors=vectors,
    )
    return GenerationStore(settings.data_dir, open_generation, facts)


def _store_opener(settings: Settings) -> OpenStore:
    """Return the function that opens a collection's store, in a directory or under a new name per refill on a server."""
    if settings.chroma_url is None:
        return partial(EmbeddedChromaStore, link=settings.data_dir / PUBLIC_LINK)
    tenant, database = settings.chroma_database.split("/")
    server = ChromaServer(settings.chroma_url, settings.chroma_token, tenant, database, settings.chroma_ca)
    ownership = CollectionOwnership(settings.data_dir / "chroma-server.json", server.place)

    def open_on_server(directory: Path, spec: CollectionSpec) -> ChromaServerStore:
        return ChromaServerStore(server, f"{spec.name}-{directory.parent.name}-{directory.name}", ownership, spec)

    return open_on_server
