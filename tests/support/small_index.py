"""An index of a few chunks whose similarity to the query is chosen: real files and vectors, but no model, process or wiki."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from otterwiki_semantic.core.records import Chunk, LastChange, Page
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.embedding.vectors import vector_id, words_only_id
from otterwiki_semantic.storage import Generation, StoredVector

DIMENSION = 64
QUERY: Matrix = np.eye(DIMENSION, dtype=np.float32)[0]
"""The vector of every query."""


class SmallIndex:
    """A generation that is filled chunk by chunk."""

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self.generation = Generation(place)
        self.catalog = self.generation.catalog
        self._vectors = 0

    def put(
        self,
        path: str,
        *parts: tuple[str, float | None],
        section: str = "",
        category: str | None = None,
        tags: tuple[str, ...] = (),
        updated: int | None = None,
        words_only: bool = False,
    ) -> None:
        """Add a page of chunks, each a text and its cosine similarity to the query; None for one without a vector."""
        prefix = f"[{path}] "
        headings = (section,) if section else ()
        chunks = tuple(
            Chunk(prefix + text, len(prefix), 0, section, headings, headings, section.lower(), 10 * place + 1, 10 * place + 9)
            for place, (text, _) in enumerate(parts)
        )
        ids = [words_only_id(chunk.text) if words_only else vector_id(chunk.text) for chunk in chunks]
        embedded = [(chunk, similarity) for chunk, (_, similarity) in zip(ids, parts, strict=True) if similarity is not None]
        self.catalog.vectors.add([StoredVector(chunk, self._vector(similarity)) for chunk, similarity in embedded])
        page = Page(
            path,
            f"blob of {path}",
            path,
            category,
            tags,
            word_count=10,
            chunks=chunks,
            last_change=None if updated is None else LastChange(updated, "a commit"),
        )
        self.catalog.put_pages([(page, ids)])

    def break_keywords(self) -> None:
        """Make the keyword index fail, though not what it stores of the texts."""
        with self.catalog.write() as connection:
            connection.execute("DELETE FROM keywords_data WHERE id > 10")

    def _vector(self, similarity: float) -> Matrix:
        """Return a vector that has this similarity to the query, and as little as possible in common with the others."""
        self._vectors += 1
        vector = np.zeros(DIMENSION, dtype=np.float32)
        vector[0], vector[self._vectors] = similarity, np.sqrt(1 - similarity**2)
        return vector
