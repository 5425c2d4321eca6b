"""What a search finds, in a wiki made for the purpose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.errors import ModelError
from otterwiki_semantic.core.records import Answer, Filters, Fusion, Hit, Mode, SearchOptions, Sort
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.embedding.base import Matrix
from otterwiki_semantic.storage.vector_store import VectorStore
from tests.support.engines import opened, wait_until_equal
from tests.support.live_wiki import commit, make_repository

BOILERPLATE = """
This page is maintained by the operations team. Report mistakes in the shared mailbox, never by telephone, and name the page,
the paragraph and what you expected to read there instead, so that somebody else than its author is able to correct it soon.
"""
PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nStart here. [Backups](/ops/backup) are described elsewhere, and so are [[the pumps|/garden/Pump]].\n",
    "ops/backup.md": f"""---
category: Operations
tags: [disks, Safety]
---
# Backup plan

Nightly copies of every disk are kept on tape for a month, and a yearly one for ever.

## Restore

Ask for the tape of that night and read it back with the robot.
{BOILERPLATE}""",
    "ops/alerts.md": f"""---
category: operations
tags: safety, pager
---
# Alerts

The pager rings for `ERR-4012`, never for warnings. Settings: `max_chunks_per_page` and `TargetWords`.
{BOILERPLATE}""",
    "ops/hosts.md": f"""---
category: network
aliases: [Machine Room, Rack]
---
# Hosts

The name server is 10.0.0.5 and the gateway 10.0.0.1.
{BOILERPLATE}""",
    "garden/pump.md": """---
category: garden
---
# Pump

The pump lifts water from the well to the vegetable beds each evening at nine.
""",
    "garden/beds.md": """# Beds

Beans, peas and lettuce grow in raised beds; water them with the pump when it is dry for a week.
""",
    "cjk.md": """# 東京

東京タワーは高さ333メートルの電波塔です。数据库需要备份。

## 한국어

검색엔진은 문서를 찾습니다.

## ไทย

ฐานข้อมูลต้องสำรองไว้
""",
    "accents.md": "# Łódź\n\nThe café in Łódź serves a crème brûlée.\n",
    "long.md": "# Long\n\n"
    + "\n\n".join(
        f"Paragraph {number} tells of the {word}, how it was found, who carried it down to the harbour, and why it was then "
        f"forgotten for more than twenty years in a shed behind the old customs house of the town. " * 2
        for number, word in enumerate(("anchor", "barometer", "compass", "dinghy", "ensign", "flag", "gaff", "halyard"))
    ),
}


def served(place: Path, pages: dict[str, str | bytes]) -> IndexEngine:
    return opened(Settings(make_repository(place / "repository", pages), place / "index", pages=()))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    with closing(served(tmp_path_factory.mktemp("search"), PAGES)) as made:
        yield made


def ask(index: IndexEngine, query: str, **options: Any) -> Answer:
    return index.search([query], SearchOptions(**options))[0]


def find(index: IndexEngine, query: str, **options: Any) -> list[str]:
    return [hit.path for hit in ask(index, query, **options).results]


def top(index: IndexEngine, query: str, **options: Any) -> Hit:
    return ask(index, query, **options).results[0]


# Words


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("max_chunks_per_page", "ops/alerts"),
        ("MAX-CHUNKS-PER-PAGE", "ops/alerts"),
        ("maxChunksPerPage", "ops/alerts"),
        ("chunks per page", "ops/alerts"),
        ("targetwords", "ops/alerts"),
        ("err4012", "ops/alerts"),
        ("4012", "ops/alerts"),
        ("10.0.0.5", "ops/hosts"),
        ("lodz", "accents"),
        ("creme brulee", "accents"),
        ("東京タワー", "cjk"),
        ("备份", "cjk"),
        ("数据库", "cjk"),
        ("塔", "cjk"),
        ("검색엔진", "cjk"),
        ("ข้อมูล", "cjk"),
        ("tapes", "ops/backup"),
    ],
)
def test_what_is_written_is_found_however_it_is_spelled(index: IndexEngine, query: str, path: str) -> None:
    assert find(index, query, mode=Mode.KEYWORD)[0] == path
    assert find(index, query)[0] == path


# Modes


@pytest.mark.parametrize("fusion", Fusion)
def test_an_explanation_adds_up(index: IndexEngine, fusion: Fusion) -> None:
    for hit in ask(index, "water from the well", explain=True, n=20, fusion=fusion).results:
        why = hit.explain
        assert why is not None
        assert hit.score == pytest.approx(why.fused + why.page_credit + why.names + why.links)
        assert why.semantic.score == pytest.approx(1 - (hit.distance or 0.0), abs=1e-6)
        assert hit.relevant == (why.relevance >= 0)
        assert 0 <= why.coverage <= 1
    first = top(index, "water from the well", explain=True).explain
    assert first is not None
    assert (first.rule, first.semantic.rank, first.keyword.rank) == ("score", 1, 1)
    why = top(index, "backup-plan", explain=True).explain
    assert why is not None
    assert why.rule == "exact title"
    for query in ("restore", "TARGET_WORDS"):
        why = top(index, query, explain=True).explain
        assert why is not None
        assert (why.rule, why.names >= 4) == ("score", True)


def test_the_last_word_of_a_draft_stands_for_those_that_it_begins(index: IndexEngine) -> None:
    assert find(index, "lettu", mode=Mode.KEYWORD) == []
    assert find(index, "lettu", mode=Mode.KEYWORD, draft=True) == ["garden/beds"]
    assert top(index, "lettu", draft=True).path == "garden/beds"
    assert find(index, "lettu ", mode=Mode.KEYWORD, draft=True) == [], "it is finished"
    assert find(index, "let", mode=Mode.KEYWORD, draft=True) == [], "it may be anything yet"
    assert ask(index, "water the raised beds when it is dr", draft=True).confident
    assert not ask(index, "constitutional law of the roman republic", draft=True).confident


def test_an_alias_in_the_front_matter_is_a_name(index: IndexEngine) -> None:
    for query in ("machine room", "RACK"):
        hit = top(index, query, explain=True)
        assert hit.explain is not None
        assert (hit.path, hit.explain.rule) == ("ops/hosts", "exact title")
    assert find(index, "in which room is the machine", mode=Mode.KEYWORD)[0] == "ops/hosts"


# Filters


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(category="OPERATIONS"), {"ops/backup", "ops/alerts"}),
        (Filters(tags=("safety",)), {"ops/backup", "ops/alerts"}),
        (Filters(tags=("Safety", "pager")), {"ops/alerts"}),
        (Filters(path="Ops/"), {"ops/backup", "ops/alerts", "ops/hosts"}),
        (Filters(path="/garden/p"), {"garden/pump"}),
        (Filters(category="operations", path="garden"), set()),
        (Filters(category="nothing"), set()),
        (Filters(path="%"), set()),
        (Filters(updated_since=4_000_000_000), set()),
    ],
)
@pytest.mark.parametrize("mode", Mode)
def test_only_pages_that_pass_the_filter_answer(index: IndexEngine, filters: Filters, expected: set[str], mode: Mode) -> None:
    query = "pump water tape pager server mistakes"  # a word of every page that any of the filters lets pass
    assert set(find(index, query, filters=filters, n=50, mode=mode, max_chunks_per_page=1)) == expected


def test_a_page_counts_as_updated_when_a_commit_changed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dated(date: str) -> None:
        monkeypatch.setenv("GIT_COMMITTER_DATE", date)

    dated("2020-01-01T00:00:00Z")
    with closing(served(tmp_path, {"old.md": "# Old\n\nwater\n", "new.md": "# New\n\nwater\n"})) as index:
        assert top(index, "old", n=1).updated == "2020-01-01T00:00:00+00:00"
        dated("2024-06-01T12:00:00Z")
        commit(tmp_path / "repository", {"new.md": "# New\n\nmore water\n"})
        index.notify()
        wait_until_equal(index)
        since = Filters(updated_since=1_700_000_000)
        assert find(index, "water", filters=since) == ["new"]
        assert top(index, "water", filters=since).updated == "2024-06-01T12:00:00+00:00"


@pytest.fixture(scope="module")
def diary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    """Three pages on water of different years, of which the best is neither the first nor the last, and one on a cat."""
    place = tmp_path_factory.mktemp("diary")
    pages: dict[str, dict[str, str | bytes]] = {
        "2020-01-01T00:00:00Z": {"oldest.md": "# Well\n\nWhere our water comes from: rain, and the old well.\n"},
        "2022-01-01T00:00:00Z": {"middle.md": "# Water\n\nWater comes from the pump in the well.\n"},
        "2023-01-01T00:00:00Z": {"cat.md": "# Cat\n\nIt sleeps on the sofa all day.\n"},
        "2024-01-01T00:00:00Z": {"newest.md": "# Bill\n\nThe town's water is dear: take it from the well.\n"},
    }
    repository = place / "repository"
    with pytest.MonkeyPatch.context() as patch:
        for number, (date, files) in enumerate(pages.items()):
            patch.setenv("GIT_COMMITTER_DATE", date)
            commit(repository, files) if number else make_repository(repository, files)
    with closing(opened(Settings(repository, place / "index", pages=()))) as index:
        yield index


def test_relevant_passages_are_sorted_by_the_last_change_of_their_page(diary: IndexEngine) -> None:
    query = "where does the water come from"
    answer = ask(diary, query, n=10, sort=Sort.UPDATED, explain=True)
    assert [hit.path for hit in answer.results] == ["newest", "middle", "oldest"]
    assert all(hit.relevant for hit in answer.results)
    assert {hit.explain.rule for hit in answer.results if hit.explain} == {"updated"}
    assert [hit.path for hit in ask(diary, query, n=1, sort=Sort.UPDATED).results] == ["newest"]
    assert "cat" in find(diary, query, n=10), "by relevance, what is not relevant comes last"


def test_if_nothing_is_relevant_the_best_few_are_sorted(diary: IndexEngine) -> None:
    query = "compound interest of a mortgage"
    answer = ask(diary, query, n=2, sort=Sort.UPDATED)
    assert not answer.confident
    best = ask(diary, query, n=2).results
    assert [hit.path for hit in answer.results] == [
        hit.path for hit in sorted(best, key=lambda hit: hit.updated or "", reverse=True)
    ]


def test_a_sort_by_date_keeps_the_filters(diary: IndexEngine) -> None:
    before = Filters(updated_before=1_672_531_200)  # the cat's date, which is not before itself
    assert find(diary, "water", sort=Sort.UPDATED, filters=before, n=10, max_chunks_per_page=1) == ["middle", "oldest"]
    assert find(diary, "cat", filters=before, mode=Mode.KEYWORD) == []


@pytest.mark.parametrize("option", [{"diversity": 0.5}, {"rerank": True}])
def test_nothing_else_orders_what_is_sorted_by_date(diary: IndexEngine, option: dict[str, Any]) -> None:
    query = "where does the water come from"
    answer = ask(diary, query, n=10, sort=Sort.UPDATED)
    assert ask(diary, query, n=10, sort=Sort.UPDATED, **option).results == answer.results


# Repeats, diversity, context


# Honesty


def test_a_question_about_nothing_here_is_flagged(index: IndexEngine) -> None:
    answer = ask(index, "pension contributions of part-time employees")
    assert answer.results
    assert not answer.confident
    assert not any(hit.relevant for hit in answer.results)
    answer = ask(index, "how do the vegetables get their water")
    assert answer.confident
    assert answer.results[0].relevant


def test_without_the_model_words_answer(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_queries: Sequence[str]) -> None:
        raise ModelError("the model's file is gone")

    monkeypatch.setattr(index._searcher.queries._embedder, "embed_queries", fail)
    for mode in Mode:
        answer = ask(index, "pump water", mode=mode)
        assert answer.results[0].path.startswith("garden/")
        assert answer.results[0].distance is None
        assert answer.confident
        assert answer.degraded is not None
        assert "the model's file is gone" in answer.degraded


# Related pages


def test_related_pages_are_near_and_say_whether_they_are_linked(index: IndexEngine) -> None:
    related = index.related("garden/pump", 3)
    assert related.path == "garden/pump"
    assert related.results[0].path == "garden/beds"
    assert "garden/pump" not in {page.path for page in related.results}
    assert [page.similarity for page in related.results] == sorted((page.similarity for page in related.results), reverse=True)
    assert (related.results[0].sections[0].section, related.results[0].sections[0].related_section) == ("Pump", "Beds")
    linked = {page.path: page.linked for page in index.related("home", 50).results}
    assert [path for path, is_linked in linked.items() if is_linked] == [
        path for path in linked if path in {"ops/backup", "garden/pump"}
    ]
    assert {"ops/backup", "garden/pump"} <= linked.keys()
    assert index.related("Garden/PUMP", 1).path == "garden/pump"


def test_related_pages_are_found_without_the_model(index: IndexEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    before = index.status().embedded_texts
    monkeypatch.setattr(index, "embedder", None)
    assert index.related("ops/backup", 2).results
    monkeypatch.undo()
    assert index.status().embedded_texts == before


# What an attacker or an unlucky page might do


def test_near_copies_are_named_even_behind_the_last_result(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(80)]
    pages: dict[str, str | bytes] = {
        f"{number}.md": f"# Page {number}\n\n{' '.join([*words, f'end{number}'])}\n" for number in range(4)
    }
    with closing(served(tmp_path, pages)) as index:
        (hit,) = ask(index, "word1 word2 word3", n=1).results
        assert len(hit.also_on) == 3


def test_one_long_page_does_not_starve_a_diverse_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otterwiki_semantic.search.pipeline._CANDIDATES", 20)
    texts = (f"## Pump {number}\n\n" + f"Pump {number} lifts water to bed {number}. " * 7 for number in range(30))
    sections = "\n\n".join(texts)
    pages: dict[str, str | bytes] = {"pumps.md": f"# Pumps\n\n{sections}\n"}
    pages |= {f"bed{number}.md": f"# Bed {number}\n\nIt has water from a pump.\n" for number in range(6)}
    with closing(served(tmp_path, pages)) as index:
        for diversity in (0.0, 0.3, 1.0):
            assert len(find(index, "which pump lifts water", diversity=diversity)) == 5


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.SEMANTIC])
@pytest.mark.parametrize("filters", [Filters(), Filters(path="garden/")])
def test_chromadb_finds_what_comparing_every_passage_finds(
    index: IndexEngine, filters: Filters, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = find(index, "water", n=20, filters=filters, mode=mode)
    asked: list[int] = []
    query = VectorStore.query

    def counted(store: VectorStore, vector: Matrix, count: int) -> dict[str, float]:
        asked.append(count)
        return query(store, vector, count)

    monkeypatch.setattr(VectorStore, "query", counted)
    monkeypatch.setattr(index._manager.serving, "_exact_up_to", 0)
    assert find(index, "water", n=20, filters=filters, mode=mode) == exact
    assert asked


def test_signs_in_quotes_have_to_stand_there(index: IndexEngine) -> None:
    assert {hit.path for hit in ask(index, 'settings "`"', n=20).results} == set()
    assert set(find(index, 'water "; "', n=20)) == {"garden/beds"}


def test_the_sign_of_inches_is_no_quote(index: IndexEngine) -> None:
    assert len(ask(index, 'a 5" disk and a 3" disk').results) == 5


def test_a_page_full_of_marks_is_indexed_and_found_quickly(tmp_path: Path) -> None:
    marks = "# T\n\na" + "\u0301" * 50_000 + "\n\nA pump.\n"
    with closing(served(tmp_path, {"marks.md": marks, "odd.md": "# 🚀🚀\n\nNothing.\n"})) as index:
        assert find(index, "pump")[0] == "marks"
        assert find(index, "🚀🚀", mode=Mode.KEYWORD) == ["odd"]


def test_a_time_beyond_all_calendars_is_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@253402300800 +0000")
    with closing(served(tmp_path, {"a.md": "water\n"})) as index:
        assert top(index, "water").updated is None


def test_many_quoted_common_words_are_answered(index: IndexEngine) -> None:
    assert ask(index, '"the" ' * 300, n=20).results
    pairs = " ".join(f'"{word} {other}"' for word in ("the", "of", "to") for other in ("a", "of", "it"))
    assert ask(index, pairs, n=20).results == ()


def test_a_query_of_control_characters_is_a_query(index: IndexEngine) -> None:
    for query in ('%  -"  \x00  ^', "\x00", "a\x00b", "\x00*"):
        assert ask(index, query).degraded is None
