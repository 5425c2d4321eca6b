"""Pages, sections and lines read over the API of a served wiki, and through `PageReader` without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.content.markdown.front_matter import json_safe
from otterwiki_semantic.core.errors import PageNotFoundError
from otterwiki_semantic.core.records import PageListRequest, PageRequest
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.client import IndexClient
from otterwiki_semantic.daemon.page_reader import PageReader
from tests.support.fork_server import started
from tests.support.live_wiki import LiveWiki, commit, eventually, git, head_of, make_repository
from tests.support.packages import fake_package

pytestmark = pytest.mark.real_parts

PAGES = "/semantic-search/pages"
ODD_NAMES = (
    *("two words", "Größe & Maß", "otter 🦦", "a#b", "100%", "100%25", "why?", 'it\'s "quoted"', "a+b", "semi;colon", "[x]"),
    *("folder/under it", "C++", "a:b", ":(top)x", "-dash", "~tilde", "back\\slash", "*", "{braces}", "dot.", "ends.md"),
    "two\nlines",
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """A wiki of pages with odd names that link to each other, with two commits."""
    place = tmp_path_factory.mktemp("odd")
    pages: dict[str, str | bytes | None] = {f"{name}.md": f"# Page of {name}\n\nText.\n" for name in ODD_NAMES}
    repository = make_repository(place / "repository", {"first.md": "# First\n"})
    commit(repository, {**pages, "first.md": None})
    commit(
        repository, {"100%.md": "# Hundred\n\nNow [[two words]] and [up](/folder/under%20it).\n\n## More\n\nOf it.\n"}, "change"
    )
    with LiveWiki(repository, place / "index", RETAIN_PAGE_NAME_CASE="True") as live:
        live.wait_until_indexed()
        yield live


def page(wiki: LiveWiki, path: str, **parameters: Any) -> dict[str, Any]:
    reply = wiki.api("GET", f"{PAGES}/{quote(path, safe='')}", **parameters)
    assert reply.status == 200, reply.text
    found: dict[str, Any] = reply.json
    return found


# Lists


def listed(wiki: LiveWiki, **parameters: Any) -> list[str]:
    reply = wiki.api("GET", PAGES, **parameters)
    assert reply.status == 200, reply.text
    return [each["path"] for each in reply.json["pages"]]


def test_all_pages_are_listed_by_path_with_what_is_known_of_them(wiki: LiveWiki) -> None:
    answer = wiki.api("GET", "/pages").json
    assert [each["path"] for each in answer["pages"]] == ["garden", "home", "house/alarm", "house/heating", "machines/nas"]
    assert answer["total"] == 5
    heating = answer["pages"][3]
    names = {"name": "heating", "path": "house/heating", "title": "Heating", "url": "/house/heating"}
    assert heating.items() >= names.items()
    assert (heating["category"], heating["tags"]) == ("house", ["winter", "pipes"])
    assert heating["updated"].startswith(heating["last_updated"])
    assert heating["word_count"] == heating["content_length"] > 100
    assert answer["index"] == {"commit": head_of(wiki.repository), "head": head_of(wiki.repository), "pending_pages": 0}


def test_lists_are_filtered_and_come_in_parts(wiki: LiveWiki) -> None:
    assert listed(wiki, prefix="House/") == ["house/alarm", "house/heating"]
    assert listed(wiki, category="HOUSE") == ["house/heating"]
    assert listed(wiki, tag="winter") == ["house/heating"]
    assert listed(wiki, tag="winter", prefix="g") == []
    assert listed(wiki, updated_since="2099-01-01") == []
    assert listed(wiki, limit=2, offset=1) == ["home", "house/alarm"]
    assert wiki.api("GET", PAGES, limit=2).json["total"] == 5
    for bad in ({"limit": 0}, {"offset": -1}, {"updated_since": "yesterday"}, {"prefix": ""}):
        assert wiki.api("GET", PAGES, **bad).status == 422


# Pages


def test_a_page_is_given_with_all_that_is_known_of_it(wiki: LiveWiki) -> None:
    found = page(wiki, "house/heating")
    source = (wiki.repository / "house/heating.md").read_text()
    assert found["content"] == source
    assert found["frontmatter"] == {"title": "Heating", "category": "house", "tags": ["winter", "pipes"]}
    assert found["revision"] == head_of(wiki.repository) == found["last_commit"]["revision"]
    assert found["last_commit"]["author"] == git(wiki.repository, "log", "-1", "--format=%an")
    assert found["total_lines"] == len(source.splitlines())
    assert [entry["path"] for entry in found["sections"]] == [
        ["Heating"],
        ["Heating", "Before the frost"],
        ["Heating", "Bleeding a radiator"],
    ]
    assert found["word_count"] == found["sections"][0]["word_count"]
    assert "parts" not in found


def test_a_section_a_few_of_them_and_lines_are_given_alone(wiki: LiveWiki) -> None:
    source = (wiki.repository / "house/heating.md").read_text().splitlines(keepends=True)
    found = page(wiki, "house/heating", section="bleeding A radiator")
    (part,) = found["parts"]
    assert part["content"] == found["content"] == "".join(source[part["start_line"] - 1 :])
    assert part["section_path"] == ["Heating", "Bleeding a radiator"]
    answer = wiki.api("GET", f"{PAGES}/house/heating?section=Bleeding+a+radiator&section=Before+the+frost").json
    assert [each["section"] for each in answer["parts"]] == ["Bleeding a radiator", "Before the frost"]
    assert answer["content"] == "\n".join(each["content"] for each in answer["parts"])
    start, end = part["start_line"] + 2, part["start_line"] + 3
    lines = page(wiki, "house/heating", lines=f"{start}-{end}")
    assert lines["content"] == "".join(source[start - 1 : end])
    assert lines["parts"][0]["section"] == "Bleeding a radiator"
    wider = page(wiki, "house/heating", lines=str(start), around=1)["parts"][0]
    assert (wider["start_line"], wider["end_line"]) == (start - 1, start + 1)
    first = part["start_line"]
    reaching_up = page(wiki, "house/heating", lines=str(first), around=3)["parts"][0]
    assert reaching_up["start_line"] == first - 3
    assert reaching_up["section"] == "Bleeding a radiator", "what was asked for names it"
    assert page(wiki, "house/heating", lines="999999-1")["content"] == "".join(source)


def test_lines_of_a_search_result_are_its_passage(wiki: LiveWiki) -> None:
    hit = wiki.search("gurgling radiator")[0]
    found = page(wiki, hit["path"], lines=f"{hit['start_line']}-{hit['end_line']}")
    assert "gurgles" in found["content"]
    assert found["parts"][0]["section_path"] == hit["section_path"]


def test_what_is_not_there_is_answered_with_what_is(wiki: LiveWiki) -> None:
    reply = wiki.api("GET", f"{PAGES}/house/heatng")
    assert (reply.status, reply.json["error"]["code"], reply.json["pages"][0]) == (404, "page_unknown", "house/heating")
    reply = wiki.api("GET", f"{PAGES}/house/heating", section="Before frost")
    assert (reply.status, reply.json["error"]["code"]) == (404, "section_unknown")
    assert reply.json["sections"][0] == "Heating > Before the frost"
    reply = wiki.api("GET", f"{PAGES}/house/heating", lines="99999")
    beyond = {"code": "invalid_parameter", "message": "lines begins at 99999; the page has 21 lines"}
    assert (reply.status, reply.json["error"]) == (422, beyond)
    reply = wiki.api("GET", f"{PAGES}/house/heating", revision="abcdef012345")
    assert (reply.status, reply.json["error"]["code"]) == (404, "revision_unknown")
    for bad in (
        {"revision": "HEAD"},
        {"revision": "--output=x"},
        {"lines": "0"},
        {"lines": "five"},
        {"around": "-1"},
        {"section": ""},
    ):
        reply = wiki.api("GET", f"{PAGES}/house/heating", **bad)
        assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_parameter"), (bad, reply.text)


@pytest.mark.parametrize(
    "path", ["../home", "/etc/passwd", "./home", "house", "house/../home", ".git/config", "*", "\n", "x" * 900]
)
def test_nothing_but_a_page_is_read(wiki: LiveWiki, path: str) -> None:
    reply = wiki.api("GET", f"{PAGES}/{quote(path, safe='')}")
    assert reply.json["error"]["code"] in {"page_unknown", "not_found", "invalid_parameter"}
    assert reply.json.keys() <= {"error", "pages", "request_id"}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_page_with_an_odd_name_is_read(odd: LiveWiki, name: str) -> None:
    found = page(odd, name)
    assert found["path"] == name
    assert found["last_commit"]["revision"] == git(odd.repository, "log", "-1", "--format=%H", "--", f":(literal){name}.md")
    assert found["content"].startswith("# ")
    assert name in listed(odd)


def test_a_page_is_found_in_any_case_and_with_its_ending(odd: LiveWiki) -> None:
    assert page(odd, "FOLDER/Under It")["path"] == "folder/under it"
    assert page(odd, "c++.md")["path"] == "C++"


def test_an_old_revision_says_what_the_page_said_then(odd: LiveWiki) -> None:
    first = git(odd.repository, "rev-parse", "HEAD~1")
    old, new = page(odd, "100%", revision=first[:10]), page(odd, "100%")
    assert old["content"] == "# Page of 100%\n\nText.\n"
    assert old["revision"] == first != new["revision"]
    empty = git(odd.repository, "rev-parse", "HEAD~2")
    assert odd.api("GET", f"{PAGES}/100%25", revision=empty).json["error"]["code"] == "page_unknown"


def test_a_branch_with_the_name_of_a_commit_is_none(odd: LiveWiki) -> None:
    git(odd.repository, "branch", "beef")
    assert odd.api("GET", f"{PAGES}/C++", revision="beef").json["error"]["code"] == "revision_unknown"


def test_links_lead_both_ways(odd: LiveWiki) -> None:
    assert page(odd, "100%")["links_to"] == ["folder/under it", "two words"]
    assert page(odd, "two words")["linked_from"] == ["100%"]


def test_some_pages_are_read_again_without_another_index(wiki: LiveWiki) -> None:
    before = wiki.status()
    reply = wiki.api("POST", "/reindex", json_body={"pages": ["GARDEN", "house/alarm.md"]})
    job = reply.json["job"]
    assert (reply.status, reply.json) == (202, {"status": "started", "pages": ["garden", "house/alarm"], "job": job})
    eventually(lambda: wiki.api("GET", "/reindex/status", job=job).json["state"] == "done")
    after = wiki.wait_until_indexed()
    assert after["generation"] == before["generation"]
    assert after["embedded_texts"] == before["embedded_texts"], "texts that are the same are not embedded again"
    assert after["chunks"] == before["chunks"]
    reply = wiki.api("POST", "/reindex", json_body={"pages": ["gardne"]})
    assert (reply.status, reply.json["error"]["code"], reply.json["pages"][0]) == (404, "page_unknown", "garden")
    bodies: tuple[dict[str, Any], ...] = ({"pages": []}, {"pages": "home"})
    for bad in bodies:
        assert wiki.api("POST", "/reindex", json_body=bad).status == 422


# Beside another plugin


_OTHER = """
from flask import Blueprint, jsonify
from otterwiki.plugins import hookimpl

class Plugin:
    @hookimpl
    def setup(self, app, storage):
        other = Blueprint("api_v1", __name__, url_prefix="/api/v1")
        other.get("/pages", endpoint="list")(lambda: jsonify({"by": "other", "pages": []}))
        other.get("/pages/<path:path>", endpoint="get")(lambda path: jsonify({"by": "other"}))
        other.put("/pages/<path:path>", endpoint="put")(lambda path: jsonify({"by": "other", "put": path}))
        other.get("/pages/<path:path>/history", endpoint="history")(lambda path: jsonify({"by": "other", "history": path}))
        app.register_blueprint(other)
        app.extensions["csrf"].exempt(other)

    @hookimpl(tryfirst=True)
    def page_saved(self, pagepath):
        raise RuntimeError("the other plugin fails")

plugin = Plugin()
"""


def test_a_plugin_that_writes_pages_at_the_same_place_works_beside_this_one(tmp_path: Path) -> None:
    fake_package(tmp_path / "site", "otherapi", "1.0", "otherapi = otherapi:plugin", _OTHER)
    repository = make_repository(tmp_path / "repository", {"a.md": "# A\n\nText.\n", "home.md": "# Home\n"})
    # A wiki forked from a process that has imported this plugin would know no other.
    command = (started("web"), "-m", "flask", "--app", "otterwiki.server", "run", "--port", "{port}")
    writing: dict[str, Any] = {"SEMANTIC_ALLOW_WRITE": "true", "SEMANTIC_WRITE_AS": "admin@example.org"}
    with LiveWiki(repository, tmp_path / "index", command=command, PYTHONPATH=str(tmp_path / "site"), **writing) as both:
        both.wait_until_indexed()
        assert both.api("PUT", "/pages/a/b").json == {"by": "other", "put": "a/b"}
        assert both.api("GET", "/pages/a/history").json == {"by": "other", "history": "a"}
        assert both.api("GET", "/pages/a").status == 200
        assert both.api("GET", f"{PAGES}/a").json["content"] == "# A\n\nText.\n"
        assert [each["path"] for each in both.api("GET", PAGES).json["pages"]] == ["a", "home"]
        both.log_in()
        written = both.api("PUT", f"{PAGES}/new", json_body={"text": "# New\n"})
        assert (written.status, written.json["indexed"]) == (200, True), "though the other plugin fails afterwards"
        assert "the other plugin fails" in both.log
        assert git(repository, "show", "HEAD:new.md") == "# New"


# Without a wiki


def test_a_repository_without_a_wiki_is_read_as_well(settings: Settings) -> None:
    with closing(IndexClient(settings)) as index:
        reading = PageReader(index, Repository(settings.repository))
        eventually(lambda: index.pages(PageListRequest()).total == 5)
        assert reading.page("garden", PageRequest(section=("tomatoes",))).content.startswith("## Tomatoes\n")
        with pytest.raises(PageNotFoundError) as raised:
            reading.page("gardn", PageRequest())
        assert raised.value.nearest[0] == "garden"


def test_front_matter_of_any_kind_is_shown_as_json_can_hold_it() -> None:
    values = {"when": date(2026, 1, 31), 1: [float("nan"), {"x": 1 << 60, "y": 2}], "half": "\ud83d", "no": None, "yes": True}
    assert json_safe(values) == {
        "when": "2026-01-31",
        "1": ["nan", {"x": str(1 << 60), "y": 2}],
        "half": "\ufffd",
        "no": None,
        "yes": True,
    }
