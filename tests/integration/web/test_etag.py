"""Answers of the index carry a tag, and are not computed again for a client that has them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.handbook import HANDBOOK
from tests.support.live_wiki import KEY, LiveWiki, commit, eventually, make_repository
from tests.support.live_wiki import Reply as Answer
from tests.support.model_servers import ModelServer, Reply, serving

CACHEABLE = [
    "/semantic-search?q=radiator",
    "/semantic-search/suggest?q=heat",
    "/semantic-search/pages",
    "/semantic-search/pages/house/heating",
    "/semantic-search/history?path=house/heating",
    "/related?path=house/heating",
]


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("etag")
    pages = HANDBOOK | {"diary.md": "---\nsearch: false\n---\n# Diary\n\nIt rained.\n"}
    with LiveWiki(make_repository(place / "repository", pages), place / "index") as live:
        live.wait_until_indexed()
        yield live


def asked(wiki: LiveWiki, path: str, tag: str = "", key: str = KEY) -> Answer:
    headers = {"Authorization": f"Bearer {key}", **({"If-None-Match": tag} if tag else {})}
    return wiki.request("GET", f"/api/v1{path}", headers=headers)


@pytest.mark.parametrize("path", CACHEABLE)
def test_an_answer_that_a_client_has_is_not_sent_again(wiki: LiveWiki, path: str) -> None:
    first = eventually(lambda: reply if (reply := asked(wiki, path)).headers.get("ETag") else None)
    assert first.status == 200
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = asked(wiki, path, first.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert asked(wiki, path, '"another"').status == 200


@pytest.mark.parametrize("path", [*CACHEABLE, "/semantic-search/pages/diary", "/semantic-search/pages/nowhere"])
def test_any_tag_is_as_none(wiki: LiveWiki, path: str) -> None:
    """A page that is excluded, or missing, must not look like one that a client has."""
    plain, starred = asked(wiki, path), asked(wiki, path, "*")
    assert (starred.status, starred.headers["Content-Type"]) == (plain.status, plain.headers["Content-Type"])


def test_questions_have_tags_of_their_own(wiki: LiveWiki) -> None:
    tags = {asked(wiki, f"/semantic-search?q={query}").headers["ETag"] for query in ("radiator", "heating", "radiator&n=2")}
    assert len(tags) == 3


def test_a_commit_changes_the_tag(wiki: LiveWiki) -> None:
    path = "/semantic-search?q=penguins"
    before = asked(wiki, path).headers["ETag"]
    commit(wiki.repository, {"penguins.md": "# Penguins\n\nPenguins swim under the ice.\n"})
    assert "ETag" not in asked(wiki, "/semantic-search/pages/penguins").headers, "the index is behind"
    wiki.api("GET", "/semantic-search", q="penguins", wait="true", wait_seconds=10)
    after = asked(wiki, path, before)
    assert after.status == 200
    assert after.json["results"][0]["path"] == "penguins"
    assert eventually(lambda: asked(wiki, path).headers.get("ETag")) != before


def test_a_wrong_key_is_refused_whatever_the_tag(wiki: LiveWiki) -> None:
    path = CACHEABLE[0]
    assert asked(wiki, path, asked(wiki, path).headers["ETag"], key="wrong").status in {401, 403}


def test_errors_and_posts_are_not_kept(wiki: LiveWiki) -> None:
    for reply in (
        asked(wiki, "/semantic-search"),
        asked(wiki, "/semantic-search/pages/nowhere"),
        asked(wiki, "/semantic-search/status"),
    ):
        assert "ETag" not in reply.headers
        assert reply.headers["Cache-Control"] == "no-store"


def test_an_answer_that_lacks_something_is_not_kept(tmp_path: Path) -> None:
    with serving(ModelServer()) as model:
        settings: dict[str, Any] = {"SEMANTIC_MODEL": "openai:words", "SEMANTIC_MODEL_URL": model.url}
        with LiveWiki(make_repository(tmp_path / "repository", HANDBOOK), tmp_path / "index", **settings) as live:
            live.wait_until_indexed()
            assert eventually(lambda: asked(live, "/semantic-search?q=radiator").headers.get("ETag"))
            model.replies.extend([Reply(400, '{"error": "no"}')] * 4)
            reply = asked(live, "/semantic-search?q=siren")
            assert "the embedding model failed" in reply.json["degraded"]
            assert "ETag" not in reply.headers
            assert reply.headers["Cache-Control"] == "no-store"
