"""The administrators' pages: how the index is, watching it being built, what was searched for, and how search sees a page."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from time import time

import pytest
from markupsafe import Markup
from playwright.sync_api import Browser, expect

from otterwiki_semantic.daemon.reports.search_log import NAME as SEARCH_LOG
from otterwiki_semantic.web.pages.admin import moment
from tests.support.browser import STRICT_POLICY, check_policy, opened, picture, serve
from tests.support.demo_index import copy_demo
from tests.support.live_wiki import LiveWiki, commit, eventually, long_page, make_repository
from tests.support.model_servers import ModelServer

ADMIN = "/-/admin/semantic-search"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    """The demo's wiki with a new page and searches of two earlier hours; its own browser has the administrator's session."""
    place = tmp_path_factory.mktemp("admin")
    commit(copy_demo(tmp_path_factory, place), {"attic.md": "# The attic\n\nIt is read by the first sync.\n"})
    judged = place / "queries.json"
    judged.write_text('[{"query": "zigbee", "relevant": ["services/automation"]}, {"query": "a <b>", "relevant": ["nowhere"]}]')
    with serve(place, SEMANTIC_SEARCH_LOG="true", SEMANTIC_EVAL_QUERIES=str(judged)) as live:
        live.wait_until_indexed()
        live.log_in()
        with closing(sqlite3.connect(live.data_dir / SEARCH_LOG, timeout=10)) as database, database:
            rows = [(time() - 3600 * ago, 20.0 * ago, "hybrid", True) for ago in (1, 2)]
            database.executemany("INSERT INTO searches (at, milliseconds, mode, is_answered) VALUES (?, ?, ?, ?)", rows)
        yield live


def test_the_index_page_tells_how_the_index_is(chromium: Browser, site: LiveWiki) -> None:
    site.search("constitutional law of rome <b>")
    site.search("zigbee")
    eventually(lambda: site.api("GET", "/semantic-search/insight").json["unanswered"], why="the question is noted")
    eventually(lambda: site.api("GET", "/semantic-search/insight").json["syncs"], why="the sync is listed")
    eventually(lambda: site.api("GET", "/semantic-search/insight").json["quality"], why="the judged queries are asked")
    with opened(chromium, site, is_member=True) as page:
        page.goto(site.url + ADMIN)
        status = site.status()
        expect(page.locator(".semantic-headline")).to_have_text("Up to date")
        figures = page.locator("dl.semantic-key")
        for value in (str(status["pages"]), str(status["chunks"])):
            expect(figures).to_contain_text(value)
        page.get_by_text("Technical details").click()
        details = page.get_by_role("table", name="Details of the index")
        for value in (status["model"], status["indexed_commit"][:10]):
            expect(details).to_contain_text(value)
        page.get_by_text("Technical details").click()
        changes = page.locator("[aria-label='Index updates'] tbody tr").last.locator("td")
        expect(changes).to_contain_text([":", "", "1", "1", status["indexed_commit"][:10]])
        expect(figures).to_contain_text("searches in 7 days")
        for name in ("Search time", "Searches, and those without results"):
            expect(page.get_by_role("img", name=name)).to_be_visible()
        expect(page.get_by_role("heading", level=2)).to_have_text(["Activity", "Quality", "Index updates", "Maintenance"])
        expect(page.get_by_text("2 test questions cannot show how good search is")).to_be_visible()
        expect(page.locator("tr", has_text="Recall@10")).to_have_count(0)
        expect(page.locator("#index-state .alert")).to_contain_text(
            "1 of 2 test questions names a page that does not exist: “nowhere”."
        )
        expect(page.locator(".semantic-unanswered")).to_contain_text("constitutional law of rome <b>")
        page.locator("#index-state .alert").evaluate("each => each.remove()")  # it names a path of this machine
        picture(page, "index")


@pytest.mark.parametrize("look", ["light", "plain"])
def test_building_it_again_is_confirmed_and_watched(chromium: Browser, site: LiveWiki, look: str) -> None:
    before = site.status()["rebuild"]["finished"]
    with opened(chromium, site, look, is_member=True, policy=STRICT_POLICY) as page:
        page.goto(site.url + ADMIN)
        button = page.get_by_role("button", name="Rebuild now")
        expect(button).to_be_hidden()
        page.get_by_text("Rebuild the index…").click()
        page.get_by_label(re.compile("Read all pages again")).check()
        button.click()
        expect(page).to_have_url(site.url + ADMIN)
        eventually(lambda: site.status()["rebuild"]["finished"] not in {None, before}, why="it is built")
        if look == "plain":
            page.reload()
        else:
            expect(page.locator("#index-state")).to_contain_text("done")
            page.reload()  # policies are not added to what a form redirects to
            expect(page.get_by_text("Searches by hour")).to_be_visible()
            check_policy(page)
        page.get_by_text("Technical details").click()
        finished = site.status()["rebuild"]["finished"]
        shown = page.get_by_role("row", name="Last rebuild").locator(f'time[datetime="{finished}"]')
        expect(shown).to_be_visible()
        assert (shown.inner_text() == Markup(moment(finished)).striptags()) == (look == "plain")  # else in local time
        expect(page.get_by_role("progressbar")).to_have_count(0)


def test_progress_is_shown_while_pages_are_indexed(
    chromium: Browser, held_model: ModelServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("building")
    pages = {f"page{number}.md": long_page(number) for number in range(11)}
    repository = make_repository(place / "repository", {**pages, "home.md": "# Home\n"})
    with LiveWiki(repository, place / "index", **held_model.environment | {"SEMANTIC_MODEL_WINDOW": "64"}) as live:
        live.log_in()
        with opened(chromium, live, is_member=True) as page:
            search = page.context.new_page()
            search.goto(f"{live.url}/-/semantic-search?q=otter&mode=keyword")
            expect(search.get_by_text(re.compile("The index is being built"))).to_be_visible()
            page.goto(live.url + ADMIN)
            expect(page.get_by_role("progressbar")).to_be_visible()
            expect(page.locator(".semantic-headline")).to_have_text(re.compile("Indexing"))
            expect(page.get_by_text(re.compile(r"12 pages by words, \d+% by meaning, about \d+"))).to_be_visible()
            held_model.released.set()
            live.wait_until_indexed()
            expect(page.get_by_role("progressbar")).to_have_count(0)
            expect(page.locator("#index-work")).to_contain_text("12")
            expect(search.get_by_text(re.compile("The index is being built"))).to_have_count(0)
            expect(search.get_by_role("status")).to_have_text(re.compile("passages"))
        live.search("constitutional law of rome")
        text = live.get(ADMIN).text
        assert "SEMANTIC_SEARCH_LOG=true" in text
        assert "constitutional" not in text, "nothing is kept of searches unless it is switched on"
        assert "To check search once a day" in text


def test_how_search_sees_a_page(chromium: Browser, site: LiveWiki) -> None:
    assert f'href="{ADMIN}/page?path=services/automation"' in site.get("/services/automation").text.replace("%2F", "/")
    with opened(chromium, site, is_member=True, policy=STRICT_POLICY) as page:
        page.goto(site.url + ADMIN)
        page.get_by_text("Inspect a page…").click()
        page.get_by_label("Path of a page").fill("services/automation")
        page.get_by_role("button", name="Show").click()
        seen = site.api("GET", "/semantic-search/insight/services/automation").json
        chunks = page.locator(".semantic-chunks > li")
        expect(chunks).to_have_count(seen["total_chunks"])
        for chunk, shown in zip(seen["chunks"], chunks.all(), strict=True):
            expect(shown).to_contain_text(f"{chunk['tokens']} of {seen['window']} tokens")
            prefix = chunk["text"][: chunk["prefix_length"]].replace(" > ", " › ")
            whole = prefix + chunk["text"][chunk["prefix_length"] :]
            assert " ".join(shown.locator(".semantic-text").inner_text().split()) == " ".join(whole.split())
            expect(shown.locator(".semantic-prefix")).to_have_text(prefix.strip())
            expect(shown.locator(".semantic-also a").first).to_contain_text(chunk["neighbours"][0]["title"])
        check_policy(page)


def test_a_page_to_inspect_can_be_chosen(site: LiveWiki) -> None:
    assert f'href="{ADMIN}/page?path=attic"' in site.get(f"{ADMIN}/page").text  # both commits may have the same second


def test_a_page_that_is_not_there_is_told(site: LiveWiki) -> None:
    reply = site.get(f"{ADMIN}/page?path=services/automaton")
    assert reply.status == 404
    assert f'href="{ADMIN}/page?path=services/automation"' in reply.text.replace("%2F", "/")


def test_building_again_needs_the_sessions_token(site: LiveWiki) -> None:
    before = site.status()["rebuild"]
    reply = site.request("POST", f"{ADMIN}/reindex", b"full=true")
    assert reply.status == 400
    assert "CSRF" in reply.text
    assert site.status()["rebuild"] == before
