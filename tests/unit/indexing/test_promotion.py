"""What keeps a new index from serving, and what shows that it is worse than the previous one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from otterwiki_semantic.indexing.promotion import QualityGate, _cache_key
from otterwiki_semantic.search.evaluation import RECALL, JudgedQuery
from tests.support.small_index import SmallIndex


def run(figure: float) -> dict[str, Any]:
    return {"queries": [{RECALL: figure, "mrr": figure}]}


def test_an_index_is_compared_only_with_figures_of_the_same_queries(tmp_path: Path) -> None:
    previous, serving = SmallIndex(tmp_path / "previous").generation, SmallIndex(tmp_path / "serving")
    serving.put("garden", ("vegetables", 0.5))
    queries, others = [JudgedQuery("vegetables", ("garden",))], [JudgedQuery("beans", ("garden",))]
    previous.catalog.set_meta(_cache_key(queries), json.dumps([(1.0, 1.0, 1.0)]))
    unused: Any = None
    gate = QualityGate(unused, lambda: queries, unused)
    bad, good = (run(0.0), run(0.0)), (run(1.0), run(1.0))
    assert "recall@10" in (gate.fall(previous, queries, bad, serving.generation) or "")
    assert gate.fall(previous, queries, good, serving.generation) is None
    assert gate.fall(previous, others, bad, serving.generation) is None
