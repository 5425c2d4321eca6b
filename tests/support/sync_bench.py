"""A repository and its index without a daemon: each sync says what it embedded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.chunk_profiles import Profile
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.recipe import IndexRecipe
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage.generation import Generation, GenerationStore
from tests.support.catalog_reading import hits_of
from tests.support.live_wiki import make_repository
from tests.support.syncing import sync


class CountingModel(BundledModel):
    """The bundled model, keeping the texts it embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.texts += texts
        return super().embed(texts)


class Bench:
    """A repository, a generation and an indexer between them."""

    def __init__(self, place: Path, pages: dict[str, str | bytes]) -> None:
        self.repository = make_repository(place / "repository", pages)
        self.generations = GenerationStore(place / "index")
        self.model = CountingModel()
        self.profile = Profile()
        self.tracker = ProgressTracker()
        self.stop = False
        self.recipe = IndexRecipe(self.model, "auto")
        self.indexer = Indexer(Repository(self.repository), self.recipe, lambda: self.stop)
        self.generation = self.generations.create(self.model, self.profile)

    def sync(self, generation: Generation | None = None, previous: Generation | None = None) -> list[str]:
        """Sync, and give the passages that were embedded for it."""
        self.model.texts.clear()
        generation = generation or self.generation
        sync(self.indexer, generation, self.tracker, previous=previous.catalog if previous else None)
        generation.mirror.push()
        return [text for text in self.model.texts if text.startswith("[")]

    def snippets(self, generation: Generation | None = None) -> dict[str, list[str]]:
        """Every chunk that can be found, by page: what ChromaDB holds, looked up in the catalog."""
        generation = generation or self.generation
        distances = generation.mirror.store.query(np.full(384, 384**-0.5, dtype=np.float32), 10_000)
        found: dict[str, list[str]] = {}
        for hit in hits_of(generation.catalog, distances):
            found.setdefault(hit.path, []).append(hit.text)
        return found

    def afresh(self) -> dict[str, list[str]]:
        """What an index built now from nothing holds."""
        fresh = self.generations.create(self.model, self.profile)
        sync(self.indexer, fresh)
        fresh.mirror.push()
        snippets = self.snippets(fresh)
        fresh.destroy()
        return snippets


def section(name: str) -> str:
    return f"## {name}\n\n" + " ".join(f"Sentence {i} of the part about {name} has its own number." for i in range(8)) + "\n\n"
