from __future__ import annotations

from collections.abc import Sequence

import pytest

from otterwiki_semantic.embedding.local.bundled import BundledModel
from otterwiki_semantic.search.answering.grounding import Similarity


@pytest.fixture(scope="module")
def similarity() -> Similarity:
    """What compares texts with the bundled model."""
    model = BundledModel()

    def compare(text: str, others: Sequence[str]) -> Sequence[float]:
        first, *rest = model.embed([text, *others])
        return [float(first @ each) for each in rest]

    return compare
