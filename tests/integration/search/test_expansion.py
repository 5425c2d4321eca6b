"""What is asked besides the query as it was typed: corrected words, synonyms, pinned answers; and what else ranks pages."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.records import Answer, Correction, Mode, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.engines import opened
from tests.support.live_wiki import commit, eventually, git, make_repository

PAGES: dict[str, str | bytes] = {
    "staff/leave.md": "# Annual leave\n\nEverybody has thirty days a year. Ask the office at least a week before.\n",
    "staff/kitchen.md": "# Kitchen\n\nThe dishwasher runs at noon; its instructions hang beside it. See TargetWords.\n",
    "ops/password.md": """---
answers:
  - How do I get back into my account?
  - Who unlocks the safe, and when?
---
# Passwords

The configuration of the login server is in the repository. Every password has at least twelve letters.
""",
    "ops/accounts.md": "# Accounts\n\nHow do I get an account? Ask for it by mail; you are let into the account in a day.\n",
    "glossary.md": "# Words\n\n- pto, annual leave\n- scullery => kitchen\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexEngine]:
    place = tmp_path_factory.mktemp("expansion")
    made = opened(Settings(make_repository(place / "repository", PAGES), place / "index", pages=(), synonyms="glossary"))
    yield made
    made.close()


def ask(index: IndexEngine, query: str, **options: Any) -> Answer:
    return index.search([query], SearchOptions(**options))[0]


def find(index: IndexEngine, query: str, **options: Any) -> list[str]:
    return [hit.path for hit in ask(index, query, **options).results]


@pytest.mark.parametrize(
    ("query", "corrections"),
    [
        ("pasword", {"pasword": "password"}),
        ("Pasword of the configuratoin", {"pasword": "password", "configuratoin": "configuration"}),
        ("instrcutions", {"instrcutions": "instructions"}),
        ("confguraton", {"confguraton": "configuration"}),
        ("onfiguration", {"onfiguration": "configuration"}),
        ("passwords", {}),
        ("bassword", {}),
        ("paswd", {}),
        ('"pasword"', {}),
        ("login -pasword", {}),
        ("PASWORD", {}),
        ("pasword2", {}),
        ("TargetWrods", {}),
        ("target_wrods", {}),
        ("kitten", {}),
    ],
)
def test_words_that_stand_nowhere_are_corrected(index: IndexEngine, query: str, corrections: dict[str, str]) -> None:
    assert ask(index, query).corrections == tuple(Correction(typed, right) for typed, right in corrections.items())
    assert ask(index, query, corrections=False).corrections == ()


@pytest.mark.parametrize("mode", [Mode.HYBRID, Mode.KEYWORD])
def test_the_corrected_words_are_searched_for_and_highlighted(index: IndexEngine, mode: Mode) -> None:
    best, *_ = ask(index, "pasword lenght", mode=mode).results
    assert best.path == "ops/password"
    assert best.relevant
    assert "password" in [best.snippet[start:end].lower() for start, end in best.highlights]
    assert find(index, "pasword", mode=Mode.KEYWORD, corrections=False) == []


def test_the_word_that_is_being_typed_is_not_corrected(index: IndexEngine) -> None:
    assert ask(index, "the pasword", draft=True).corrections == ()
    assert ask(index, "the pasword is", draft=True).corrections == (Correction("pasword", "password"),)


def test_words_of_pages_that_are_gone_correct_nothing(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", PAGES)
    index = opened(Settings(repository, tmp_path / "index", pages=()))
    assert ask(index, "dishwahser").corrections == (Correction("dishwahser", "dishwasher"),)
    commit(repository, {"staff/kitchen.md": None})
    assert ask(index, "dishwahser", wait=True).corrections == ()
    index.close()


def test_synonyms_find_what_has_the_other_word(index: IndexEngine) -> None:
    best, *_ = ask(index, "pto", explain=True).results
    assert best.path == "staff/leave"
    assert best.explain is not None
    assert best.explain.rule == "exact title"
    assert best.relevant
    assert find(index, "scullery", mode=Mode.KEYWORD)[0] == "staff/kitchen"
    assert find(index, "kitchen", mode=Mode.KEYWORD) == ["staff/kitchen", "glossary"]


def test_synonyms_follow_their_page_even_if_it_is_excluded(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", PAGES)
    index = opened(Settings(repository, tmp_path / "index", pages=(), synonyms="glossary", exclude=("glossary.md",)))
    commit(repository, {"glossary.md": "noshery => kitchen\n"})
    assert find(index, "noshery", mode=Mode.KEYWORD, wait=True)[0] == "staff/kitchen"
    commit(repository, {"glossary.md": None})
    assert find(index, "noshery", mode=Mode.KEYWORD, wait=True) == []
    index.close()


def test_a_page_comes_first_for_the_questions_that_it_answers(index: IndexEngine) -> None:
    question = "how do I get back into my account"
    first, *others = ask(index, question, explain=True).results
    assert (first.path, first.explain and first.explain.rule, first.relevant) == ("ops/password", "pinned answer", True)
    assert "ops/accounts" in [hit.path for hit in others]
    assert find(index, "who unlocks the safe and when")[0] == "ops/password"
    eventually(lambda: find(index, "how can I get into my account again?")[0] == "ops/password")
    assert find(index, "How do I get an account?")[0] == "ops/accounts"


def test_links_from_other_pages_are_evidence(tmp_path: Path) -> None:
    same = "# Harbour {}\n\nThe ferries leave from the eastern quay in the morning.\n"
    pages: dict[str, str | bytes] = {f"{name}.md": same.format(name) for name in ("ash", "birch")}
    repository = make_repository(tmp_path / "repository", pages)
    index = opened(Settings(repository, tmp_path / "index", pages=()))
    assert find(index, "harbour ferries")[0] == "ash"
    commit(repository, {f"note {number}.md": f"# Note {number}\n\n[Read on](/birch)\n" for number in range(5)})
    best, *_ = ask(index, "harbour ferries", wait=True, explain=True).results
    assert best.path == "birch"
    assert best.explain is not None
    assert best.explain.links == pytest.approx(1.2 * 1.791759, abs=1e-5)
    index.close()


def test_recent_changes_count_only_if_that_is_asked_for(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", {"new.md": "# Menu\n\nSoup and bread on Monday.\n"})
    (repository / "old.md").write_text("# Menu\n\nSoup and bread on Monday, bread and soup.\n")
    git(repository, "add", "-A")
    then = f"{int(time.time()) - 3 * 365 * 86_400} +0000"
    os.environ["GIT_COMMITTER_DATE"] = os.environ["GIT_AUTHOR_DATE"] = then
    try:
        git(repository, "commit", "-qm", "old")
    finally:
        del os.environ["GIT_COMMITTER_DATE"], os.environ["GIT_AUTHOR_DATE"]
    index = opened(Settings(repository, tmp_path / "index", pages=()))
    query = "soup and bread, bread and soup"
    plain = ask(index, query, explain=True)
    assert [hit.path for hit in plain.results] == ["old", "new"]
    assert {hit.explain.recency for hit in plain.results if hit.explain} == {0.0}
    recent = ask(index, query, recency=1.0, explain=True)
    assert [hit.path for hit in recent.results] == ["new", "old"]
    new, old = (hit.explain.recency for hit in recent.results if hit.explain)
    assert new == pytest.approx(7, abs=0.1)
    assert old == pytest.approx(7 * 0.5 ** (3 * 365 / 180), abs=0.01)
    index.close()
