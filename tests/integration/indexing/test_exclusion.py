"""Pages that are left out of the index, and what becomes of an index when others are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.errors import PageExcludedError, PageNotFoundError
from otterwiki_semantic.core.records import Filters, Mode, PageListRequest, PageRequest, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.page_reader import PageReader
from tests.support.engines import opened, wait_until_equal
from tests.support.live_wiki import commit, eventually, git, make_repository
from tests.support.model_servers import ModelServer, serving

PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nThe garden, the [plan](/drafts/plan) and the [diary](/diary).\n",
    "garden.md": "# Garden\n\nVegetables grow behind the hedge, and are watered every evening.\n",
    "drafts/plan.md": "# Plan\n\nThe hedgehog hibernates under the woodpile, see [garden](/garden).\n",
    "drafts/deep/idea.md": "# Idea\n\nA hedgehog needs a saucer of water in the summer.\n",
    "diary.md": "# Diary\n\nThe locksmith keeps a spare key in the shed.\n",
}
SECRETS = ("hibernates", "saucer", "Idea")
Start = Callable[..., IndexEngine]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer(told={"/v1/models/words": {"max_model_len": 8192}})) as served:
        yield served


@pytest.fixture
def settings(tmp_path: Path, server: ModelServer) -> Settings:
    """Those of a wiki whose model is on a server, which reports all that it was sent."""
    place = make_repository(tmp_path / "repository", PAGES)
    url = f"{server.url}/v1"
    return Settings(place, tmp_path / "index", model="openai:words", model_url=url, sync_interval=3600, map=False)


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Restarts the index with some settings, and waits until it equals HEAD."""
    made: list[IndexEngine] = []

    def restart(**changes: Any) -> IndexEngine:
        close()
        made.append(opened(replace(settings, **changes)))
        return made[0]

    def close() -> None:
        while made:
            made.pop().close()

    yield restart
    close()


def sent(server: ModelServer) -> str:
    """Everything that the model was given."""
    return "\n".join(text for texts in server.texts for text in texts)


def found(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> set[str]:
    return {hit.path for hit in index.search([query], SearchOptions(20, 1, mode))[0].results}


def listed(index: IndexEngine) -> list[str]:
    return [page.path for page in index.pages(PageListRequest()).pages]


def follow(index: IndexEngine, settings: Settings, files: dict[str, str | bytes | None]) -> None:
    commit(settings.repository, files)
    index.notify()
    wait_until_equal(index)


# Patterns


def test_excluded_pages_are_nowhere_and_their_text_is_sent_to_no_model(server: ModelServer, start: Start) -> None:
    index = start(exclude=("drafts/**",))
    assert listed(index) == ["diary", "garden", "home"]
    for mode in Mode:
        assert found(index, "hedgehog woodpile", mode) <= {"diary", "garden", "home"}
    answer = index.search(["hedgehog"], SearchOptions(facets=True))[0]
    assert answer.facets is not None
    assert answer.facets.path == {}
    assert {page.path for page in index.related("garden", 10).results} == {"diary", "home"}
    assert index.links("home").links_to == ("diary",)
    assert index.links("garden").linked_from == ()
    assert "Vegetables" in sent(server)
    assert not any(secret in sent(server) for secret in SECRETS)
    status = index.status()
    assert (status.pages, status.excluded_pages, status.status, status.problems) == (3, 2, "ready", ())


@pytest.mark.parametrize("path", ["drafts/plan", "Drafts/Plan"])
def test_questions_about_an_excluded_page_say_that_it_is_excluded(start: Start, path: str) -> None:
    index = start(exclude=("drafts",))
    message = "the page 'drafts/plan' is excluded from search by SEMANTIC_EXCLUDE"
    for ask in (lambda: index.related(path, 3), lambda: index.inspect_page(path), lambda: index.refresh([path])):
        with pytest.raises(PageExcludedError, match=message) as refusal:
            ask()
        assert (refusal.value.code, refusal.value.nearest) == ("page_unknown", ())


def test_other_patterns_change_the_index_at_the_next_start_and_embed_only_what_is_new(
    server: ModelServer, settings: Settings, start: Start
) -> None:
    index = start()
    assert len(listed(index)) == 5
    assert index.status().excluded_pages == 0
    server.asked.clear()
    index = start(exclude=("drafts/*.md", "diary.md"))
    assert listed(index) == ["drafts/deep/idea", "garden", "home"]
    assert found(index, "locksmith", Mode.KEYWORD) == set()
    assert index.status().excluded_pages == 2
    assert sent(server).count("saucer") == 0
    assert start(exclude=("drafts/*.md", "diary.md")).status().excluded_pages == 2
    index = start(exclude=("**/deep/**",))
    assert listed(index) == ["diary", "drafts/plan", "garden", "home"]
    assert found(index, "locksmith", Mode.KEYWORD) == {"diary"}
    assert "locksmith" in sent(server)
    assert "saucer" not in sent(server)
    assert "Vegetables" not in sent(server)
    (diary,) = (page for page in index.pages(PageListRequest(Filters(path="diary"))).pages)
    assert diary.updated == git(settings.repository, "log", "-1", "--format=%cI").replace("Z", "+00:00")


def test_excluded_pages_are_gone_before_the_first_answer_after_a_restart(settings: Settings, start: Start) -> None:
    start().close()
    index = IndexEngine(replace(settings, exclude=("drafts",)))
    with index._manager._changing:  # no sync can begin
        index.start()
        assert found(index, "hedgehog", Mode.KEYWORD) == set()
        assert index.status().status == "indexing"
    assert wait_until_equal(index).pages == 3
    index.close()


def test_pages_enter_and_leave_what_is_excluded(server: ModelServer, settings: Settings, start: Start) -> None:
    index = start(exclude=("drafts",))
    git(settings.repository, "mv", "drafts/plan.md", "plan.md")
    follow(index, settings, {"drafts/other.md": "# Other\n\nThe badger digs.\n", "drafts/deep/idea.md": None})
    assert listed(index) == ["diary", "garden", "home", "plan"]
    assert "woodpile" in sent(server)
    assert "badger" not in sent(server)
    assert index.status().excluded_pages == 1
    git(settings.repository, "mv", "garden.md", "drafts/garden.md")
    follow(index, settings, {})
    assert listed(index) == ["diary", "home", "plan"]
    assert index.status().excluded_pages == 2


def test_a_rebuild_and_another_recipe_exclude_the_same_pages(server: ModelServer, start: Start) -> None:
    index = start(exclude=("drafts",))
    generation = index.status().generation
    index.reindex(full=True)
    wait_for_another(index, generation)
    assert (listed(index), index.status().excluded_pages) == (["diary", "garden", "home"], 2)
    generation = index.status().generation
    index = start(exclude=("drafts", "diary.md"), chunks="heading2")
    wait_for_another(index, generation)
    assert (listed(index), index.status().excluded_pages) == (["garden", "home"], 3)
    assert not any(secret in sent(server) for secret in SECRETS)


def test_everything_can_be_excluded(start: Start) -> None:
    index = start(exclude=("**/*.md",))
    status = index.status()
    assert (status.pages, status.excluded_pages, status.status) == (0, 5, "ready")
    assert found(index, "garden") == set()


def wait_for_another(index: IndexEngine, generation: str | None) -> None:
    eventually(lambda: index.status().generation != generation)
    wait_until_equal(index)


# Reading


@pytest.mark.parametrize("path", ["drafts/plan", "drafts/plan.md", "DRAFTS/Plan"])
def test_an_excluded_page_is_not_read(settings: Settings, start: Start, path: str) -> None:
    index = start(exclude=("drafts",))
    head = git(settings.repository, "rev-parse", "HEAD")
    reader = PageReader(index, Repository(settings.repository, ("drafts",)))
    for request in (PageRequest(), PageRequest(revision=head), PageRequest(section=("Plan",)), PageRequest(lines=(1, 2))):
        with pytest.raises(PageExcludedError, match="excluded from search by SEMANTIC_EXCLUDE"):
            reader.page(path, request)
    with pytest.raises(PageNotFoundError) as refusal:
        reader.page("drafts/plans", PageRequest())
    assert "drafts/plan" not in refusal.value.nearest


def test_the_index_refuses_pages_to_processes_without_its_settings(settings: Settings, start: Start) -> None:
    index = start(exclude=("drafts",))
    reader = PageReader(index, Repository(settings.repository))
    assert reader.page("garden", PageRequest()).title == "Garden"
    with pytest.raises(PageExcludedError):
        reader.page("drafts/plan", PageRequest())
