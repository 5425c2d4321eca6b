"""A repository and its index without a daemon: each sync says what it embedded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from otterwiki_semantic.content.chunking.chunker import Profile
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.indexing.progress import ProgressTracker
from otterwiki_semantic.indexing.sync import Indexer
from otterwiki_semantic.storage.generation import Generation
from otterwiki_semantic.storage.generations import GenerationStore
from tests.support.catalog_reading import hits_of
from tests.support.live_wiki import make_repository


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
        self.indexer = Indexer(Repository(self.repository), self.model, self.profile, lambda: self.stop)
        self.generation = self.generations.create(self.model, self.profile)

    def sync(self, generation: Generation | None = None, donor: Generation | None = None) -> list[str]:
        """Sync, and give the passages that were embedded for it."""
        self.model.texts.clear()
        self.indexer.sync(generation or self.generation, self.tracker, donor.catalog if donor else None)
        return [text for text in self.model.texts if text.startswith("[")]

    def snippets(self, generation: Generation | None = None) -> dict[str, list[str]]:
        """Every chunk that can be found, by page: what ChromaDB holds, looked up in the catalog."""
        generation = generation or self.generation
        distances = generation.vectors.query(np.full(384, 384**-0.5, dtype=np.float32), 10_000)
        found: dict[str, list[str]] = {}
        for hit in hits_of(generation.catalog, distances):
            found.setdefault(hit.path, []).append(hit.snippet)
        return found

    def afresh(self) -> dict[str, list[str]]:
        """What an index built now from nothing holds."""
        fresh = self.generations.create(self.model, self.profile)
        self.indexer.sync(fresh, ProgressTracker())
        snippets = self.snippets(fresh)
        fresh.destroy()
        return snippets


def section(name: str) -> str:
    return f"## {name}\n\n" + " ".join(f"Sentence {i} of the part about {name} has its own number." for i in range(8)) + "\n\n"
