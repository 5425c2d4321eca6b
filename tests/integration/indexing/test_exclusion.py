"""Pages that are left out of the index, and what becomes of an index when others are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.content.pages import prepare_page
from otterwiki_semantic.core.errors import LimitExceededError, PageExcludedError, PageNotFoundError
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import DraftRequest, Mode, Page, PageListRequest, PageRequest, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.page_reader import PageReader
from tests.support.engines import follow, generation_of, restarting, wait_until_equal
from tests.support.live_wiki import commit, eventually, git, make_repository
from tests.support.model_servers import ModelServer, serving
from tests.support.rerank_server import RerankServer

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
    return Settings(place, tmp_path / "index", model="openai:words", model_url=url, sync_interval=3600, pages=())


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    with restarting(settings) as restart:
        yield restart


def sent(server: ModelServer) -> str:
    """Everything that the model was given."""
    return "\n".join(text for texts in server.texts for text in texts)


def found(index: IndexEngine, query: str, mode: Mode = Mode.HYBRID) -> set[str]:
    return {hit.path for hit in index.search([query], SearchOptions(20, 1, mode))[0].results}


def listed(index: IndexEngine) -> list[str]:
    return [page.path for page in index.pages(PageListRequest()).pages]


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
    message = "the page 'drafts/plan' is excluded from search by SEMANTIC_EXCLUDE"
    for ask in (
        lambda: index.related("Drafts/Plan", 3),
        lambda: index.inspect_page("drafts/plan"),
        refreshing(index, "drafts/plan"),
    ):
        with pytest.raises(PageExcludedError, match=message) as refusal:
            ask()
        assert (refusal.value.code, refusal.value.nearest) == ("page_unknown", ())


def refreshing(index: IndexEngine, path: str) -> Callable[[], object]:
    return lambda: index.refresh([path])


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
    (diary,) = (page for page in index.pages(parse_parameters(PageListRequest, {"prefix": "diary"})).pages)
    assert diary.updated == git(settings.repository, "log", "-1", "--format=%cI").replace("Z", "+00:00")
    index = start(exclude=("**/*.md",))
    status = index.status()
    assert (status.pages, status.excluded_pages, status.status) == (0, 5, "ready")
    assert found(index, "garden") == set()


def test_excluded_pages_are_gone_before_the_first_answer_after_a_restart(settings: Settings, start: Start) -> None:
    start().close()
    index = IndexEngine(replace(settings, exclude=("drafts",)))
    with index._manager.index.changing:  # no sync can begin
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


def wait_for_another(index: IndexEngine, generation: str | None) -> None:
    eventually(lambda: index.status().generation != generation)
    wait_until_equal(index)


# Front matter


def hidden(value: str, text: str = "The locksmith keeps a spare key in the shed.") -> str:
    return f"---\nsearch: {value}\n---\n\n# Diary\n\n{text}\n"


def test_a_page_can_exclude_itself(server: ModelServer, settings: Settings, start: Start) -> None:
    others = {f"other{number}.md": hidden(value) for number, value in enumerate(("False", "no", '"false"'))}
    commit(settings.repository, {"diary.md": hidden("false"), **others})
    index = start()
    assert "diary" not in listed(index)
    assert found(index, "locksmith", Mode.KEYWORD) == set()
    assert index.links("home").links_to == ("drafts/plan",)
    assert "diary" not in {page.path for page in index.related("garden", 10).results}
    assert "locksmith" not in sent(server)
    status = index.status()
    assert (status.pages, status.excluded_pages, status.status, status.index.pending_pages) == (4, 4, "ready", 0)
    message = r"the page 'diary' is excluded from search by its front matter \(search: false\)"
    for ask in (lambda: index.related("Diary", 3), lambda: index.inspect_page("diary"), refreshing(index, "diary")):
        with pytest.raises(PageExcludedError, match=message):
            ask()


def test_any_other_value_leaves_a_page_in_the_index(settings: Settings, start: Start) -> None:
    values = ("true", "maybe", "[false]", "{a: 1}", "0", "", "2024-01-01")
    commit(settings.repository, {f"key{number}.md": hidden(value, f"Key {number}.") for number, value in enumerate(values)})
    status = start().status()
    assert (status.pages, status.vectors, status.excluded_pages) == (12, 12, 0)


def test_the_index_follows_the_front_matter(server: ModelServer, settings: Settings, start: Start) -> None:
    index = start()
    vectors = index.status().vectors
    follow(index, settings, {"diary.md": hidden("false", "The burglar alarm is off on Mondays.")})
    assert "diary" not in listed(index)
    assert (index.status().excluded_pages, index.status().vectors) == (1, vectors - 1)
    assert "burglar" not in sent(server)
    follow(index, settings, {"diary.md": hidden("true", "The burglar alarm is off on Mondays.")})
    assert found(index, "burglar", Mode.KEYWORD) == {"diary"}
    assert (index.status().excluded_pages, index.status().vectors) == (0, vectors)
    assert "burglar" in sent(server)
    follow(index, settings, {"diary.md": hidden("false")})
    git(settings.repository, "mv", "diary.md", "journal.md")
    follow(index, settings, {})
    assert index.status().excluded_pages == 1
    follow(index, settings, {"journal.md": None})
    assert index.status().excluded_pages == 0


def test_excluded_pages_stay_out_of_a_rebuild_and_are_not_read_again_for_nothing(settings: Settings, start: Start) -> None:
    commit(settings.repository, {"diary.md": hidden("false")})
    index = start()
    for full in (False, True):
        generation = index.status().generation
        index.reindex(full=full)
        wait_for_another(index, generation)
        assert (index.status().pages, index.status().excluded_pages) == (4, 1)
    index = start(exclude=("drafts",))  # all of HEAD is compared
    assert index.insight().syncs == (), "no page was read"
    assert (index.status().pages, index.status().excluded_pages) == (2, 3)


@pytest.mark.parametrize("value", ["false", "words"])
def test_a_page_that_cannot_be_parsed_is_kept_from_models_all_the_same(
    server: ModelServer, settings: Settings, start: Start, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    refused: list[str] = []

    def prepare(path: str, *arguments: Any) -> Page:
        if path == "diary":
            refused.append(path)
            raise LimitExceededError("took longer than 1 s of processor time")
        return prepare_page(path, *arguments)

    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader.prepare_page", prepare)
    commit(settings.repository, {"diary.md": hidden(value, "The locksmith keeps a spare key.")})
    index = start()
    assert refused
    assert found(index, "locksmith", Mode.KEYWORD) == ({"diary"} if value == "words" else set())
    assert "locksmith" not in sent(server)


# Words alone


def test_a_page_of_words_alone_is_found_by_them_and_no_model_gets_its_text(
    server: ModelServer, settings: Settings, start: Start
) -> None:
    commit(settings.repository, {"diary.md": hidden("words")})
    index = start()
    assert found(index, "locksmith", Mode.KEYWORD) == {"diary"}
    assert "diary" in found(index, "locksmith")
    assert "diary" not in found(index, "locksmith", Mode.SEMANTIC)
    answer = index.search(["locksmith key"], SearchOptions(1, 1))[0]
    (hit,) = answer.results
    assert (hit.path, hit.similarity, hit.relevant, answer.confident, answer.degraded) == ("diary", None, True, True, None)
    assert index.search(["diary"], SearchOptions(1, 1))[0].results[0].path == "diary", "its title"
    assert "diary" in listed(index)
    assert index.links("home").links_to == ("diary", "drafts/plan")
    assert index.related("diary", 5).results == ()
    assert "diary" not in {page.path for page in index.related("garden", 10).results}
    inspection = index.inspect_page("diary")
    assert (inspection.words_only, inspection.chunks[0].has_vector) == (True, False)
    assert PageReader(index, Repository(settings.repository)).page("diary", PageRequest()).title == "Diary"
    assert "spare" not in sent(server)
    assert "Diary" not in sent(server)


def test_words_alone_are_nothing_unfinished(
    server: ModelServer, settings: Settings, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otterwiki_semantic.indexing.sync_job._RETRY_UNFINISHED_SECONDS", 0.0)
    commit(settings.repository, {"diary.md": hidden("words")})
    index = start()
    status = index.status()
    assert (status.status, status.index.pending_pages, status.problems) == ("ready", 0, ())
    assert (status.pages, status.chunks, status.vectors, status.excluded_pages) == (5, 5, 4, 0)
    asked = len(server.texts)
    follow(index, settings, {"notes.txt": "no page"})
    assert len(server.texts) == asked
    for full in (False, True):
        generation = index.status().generation
        index.reindex(full=full)
        wait_for_another(index, generation)
        status = index.status()
        assert (status.rebuild.error, status.chunks, status.vectors, status.problems) == (None, 5, 4, ())
        assert status.chroma is not None
        assert status.chroma.pending == 0
    assert chroma_of(index) == 4
    assert found(index, "locksmith", Mode.KEYWORD) == {"diary"}
    assert "spare" not in sent(server)


def test_vectors_go_and_come_with_the_front_matter(server: ModelServer, settings: Settings, start: Start) -> None:
    index = start()
    follow(index, settings, {"diary.md": hidden("words")})
    assert (index.status().chunks, index.status().vectors, chroma_of(index)) == (5, 4, 4)
    assert found(index, "locksmith", Mode.KEYWORD) == {"diary"}
    assert "diary" not in found(index, "locksmith", Mode.SEMANTIC)
    server.asked.clear()
    follow(index, settings, {"diary.md": hidden("true")})
    assert (index.status().vectors, chroma_of(index)) == (5, 5)
    assert "diary" in found(index, "locksmith", Mode.SEMANTIC)
    assert "spare" in sent(server)


def test_no_heading_of_words_alone_is_sent_to_scale_similarities(server: ModelServer, settings: Settings, start: Start) -> None:
    pages: dict[str, str | bytes | None] = {}
    for number in range(40):
        pages[f"open{number}.md"] = f"# Open\n\n## Shown {number}\n\nNumber {number} is about item {number * 7}.\n"
        pages[f"closed{number}.md"] = f"---\nsearch: words\n---\n\n# Closed\n\n## Kept {number}\n\nNumber {number}.\n"
    commit(settings.repository, pages)
    start()
    assert "Shown 7" in sent(server)
    assert "Kept" not in sent(server)
    assert "Closed" not in sent(server)


def test_no_text_of_words_alone_is_sent_to_estimate_a_rebuild(server: ModelServer, settings: Settings, start: Start) -> None:
    for path in PAGES:
        commit(settings.repository, {path: hidden("words") if path != "home.md" else "# Home\n\nThe garden.\n"})
    generation = start().status().generation
    wait_for_another(start(chunks="heading2"), generation)
    assert "garden" in sent(server)
    assert "spare" not in sent(server)


def test_no_text_that_is_not_saved_is_sent(server: ModelServer, start: Start) -> None:
    index = start()
    found = index.draft_links(DraftRequest("An unsaved note on the Garden and on what a spare key is for.", "new"))
    assert [each.path for each in found.mentions] == ["garden"]
    assert (found.pages, found.degraded) == ((), "texts that are not saved are not sent to the model's server")
    assert "unsaved" not in sent(server)


def test_no_reranker_gets_text_of_words_alone(settings: Settings, start: Start) -> None:
    commit(settings.repository, {"diary.md": hidden("words", "The garden shed has a spare key.")})
    with RerankServer() as reranker:
        index = start(reranker="cohere:words", reranker_key="key", reranker_url=reranker.url)
        eventually(lambda: not index.status().reranker_is_loading)
        answer = index.search(["garden shed key"], SearchOptions(rerank=True))[0]
        assert answer.reranker == "cohere:words"
        assert "diary" in {hit.path for hit in answer.results}
        read = [text for body in reranker.requests for text in body["documents"]]
        assert any("Vegetables" in text for text in read)
        assert not any("spare" in text for text in read)


def chroma_of(index: IndexEngine) -> int:
    """How many vectors ChromaDB holds."""
    return generation_of(index).mirror.store.count()


# Reading


def test_an_excluded_page_is_not_read(settings: Settings, start: Start) -> None:
    index = start(exclude=("drafts",))
    head = git(settings.repository, "rev-parse", "HEAD")
    reader = PageReader(index, Repository(settings.repository, ("drafts",)))
    requests = (PageRequest(), PageRequest(revision=head), PageRequest(section=("Plan",)), PageRequest(lines=(1, 2)))
    for path, request in product(("drafts/plan", "drafts/plan.md", "DRAFTS/Plan"), requests):
        with pytest.raises(PageExcludedError, match="excluded from search by SEMANTIC_EXCLUDE"):
            reader.page(path, request)
    with pytest.raises(PageNotFoundError) as refusal:
        reader.page("drafts/plans", PageRequest())
    assert "drafts/plan" not in refusal.value.nearest
    reader = PageReader(index, Repository(settings.repository))  # of a process without the setting
    assert reader.page("garden", PageRequest()).title == "Garden"
    with pytest.raises(PageExcludedError):
        reader.page("drafts/plan", PageRequest())


def test_a_page_that_excludes_itself_is_not_read_in_any_revision(settings: Settings, start: Start) -> None:
    before = git(settings.repository, "rev-parse", "HEAD")
    index = start()
    reader = PageReader(index, Repository(settings.repository))
    hidden_at = commit(settings.repository, {"diary.md": hidden("false")})
    of_before = (PageRequest(revision=before), PageRequest(revision=before, section=("none",)))
    for request in (PageRequest(), *of_before, PageRequest(revision=hidden_at), PageRequest(section=("none",))):
        with pytest.raises(PageExcludedError, match="excluded from search by its front matter"):
            reader.page("diary", request)
    assert reader.page("garden", PageRequest(revision=before)).title == "Garden"
    commit(settings.repository, {"diary.md": hidden("true")})
    assert reader.page("diary", PageRequest()).title == "Diary", "though the index does not know yet"
    assert "locksmith" in reader.page("diary", PageRequest(revision=before)).content
    with pytest.raises(PageExcludedError):
        reader.page("diary", PageRequest(revision=hidden_at))


def test_no_question_of_words_alone_is_sent_and_it_is_answered_word_for_word(
    server: ModelServer, settings: Settings, start: Start
) -> None:
    answers = {"diary": "Who has the spare key?", "garden": "When are the beds watered?"}
    pages = {f"{path}.md": f"---\nanswers: {question}\n---\n# {path}\n\nText.\n" for path, question in answers.items()}
    pages["diary.md"] = pages["diary.md"].replace("---\n", "---\nsearch: words\n", 1)
    commit(settings.repository, pages)
    index = start()
    eventually(lambda: answers["garden"] in sent(server))
    assert answers["diary"] not in sent(server)
    for path, question in answers.items():
        assert index.search([question], SearchOptions())[0].results[0].path == path
