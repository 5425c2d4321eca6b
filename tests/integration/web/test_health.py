"""The report on the wiki's health, served: who sees what, who may dismiss, and the page without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.support.accounts import register, token
from tests.support.live_wiki import KEY, LiveWiki, commit, eventually, make_repository

API, PAGE = "/api/v1/semantic-search/health", "/-/semantic-search/health"
BEARER = {"Authorization": f"Bearer {KEY}"}
PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nWelcome. See [[Gone]] and [[<b>bold]].\n",
    "alone.md": "# Alone & odd\n\nNobody links here.\n",
    "menu.md": "# Menu\n\nThe wiki's menu leads here.\n",
}
OLDER: dict[str, str | bytes] = {
    "disks.md": "# About disks\n\nHow the [[tapes]] or disks of the backup server are exchanged, and the backup is restored.\n"
}
NEWER: dict[str, str | bytes] = {
    "tapes.md": "# About tapes\n\nHow the [[disks]] or tapes of the backup server are exchanged, and the backup is restored.\n"
}
_FORM = re.compile(r'<form(?: id="([\w-]+)")? action="(/-/\w+-\w+/health/dismiss)" method="post">(.*?)</form>', re.DOTALL)
_DISMISS = re.compile(r'form="dismiss-orphan" name="only" value="(\w+)"')
_FIELD = re.compile(r'name="(\w+)" value="([^"]*)"')


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWiki]:
    place = tmp_path_factory.mktemp("health")
    settings: dict[str, Any] = {"READ_ACCESS": "ANONYMOUS", "WRITE_ACCESS": "APPROVED", "AUTO_APPROVAL": "True"}
    menu = '[{"title": "The menu", "link": "menu"}, {"title": "x", "link": "https://example.org/alone"}]'
    repository = make_repository(place / "repository", {})
    for date, pages in (("2019-05-01T12:00:00Z", OLDER), ("2019-06-01T12:00:00Z", NEWER)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GIT_AUTHOR_DATE", date)
            patch.setenv("GIT_COMMITTER_DATE", date)
            commit(repository, pages)
    commit(repository, PAGES)
    more: dict[str, Any] = {"SIDEBAR_CUSTOM_MENU": menu, "SEMANTIC_SEARCH_LOG": "true", "EMAIL_NEEDS_CONFIRMATION": "False"}
    with LiveWiki(repository, place / "index", **settings, **more) as live:
        live.wait_until_indexed()
        yield live


@pytest.fixture(scope="module")
def people(wiki: LiveWiki) -> dict[str, requests.Session]:
    return {"nobody": requests.Session(), "admin": register(wiki, "admin"), "writer": register(wiki, "writer")}


def report(wiki: LiveWiki, session: requests.Session, **parameters: str) -> dict[str, Any]:
    def current() -> dict[str, Any] | None:
        found: dict[str, Any] = session.get(wiki.url + API, params=parameters).json()
        return found if found["is_current"] else None

    return eventually(current)


def test_pages_of_the_menu_and_the_home_page_are_no_orphans(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    (finding,) = report(wiki, people["nobody"], kind="orphan")["findings"]
    assert (finding["pages"][0]["path"], finding["pages"][0]["url"]) == ("alone", "/alone")


def test_only_administrators_and_the_key_see_what_was_searched_for(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    kinds = {name: {each["kind"] for each in report(wiki, people[name])["counts"]} for name in people}
    assert kinds["admin"] - kinds["nobody"] == {"unanswered"}
    assert kinds["writer"] == kinds["nobody"] != set()
    with_key = requests.get(wiki.url + API, headers=BEARER, timeout=30).json()
    assert {each["kind"] for each in with_key["counts"]} == kinds["admin"]
    assert report(wiki, people["writer"], kind="unanswered")["findings"] == []


def test_whoever_may_write_may_dismiss(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    (finding,) = report(wiki, people["nobody"], kind="orphan")["findings"]
    body = {"findings": [finding["id"]]}
    url = f"{wiki.url}{API}/dismissals"
    marked = {name: {"X-CSRFToken": token(session, wiki)} for name, session in people.items()}
    assert people["nobody"].post(url, json=body, headers=marked["nobody"]).status_code == 401
    assert people["writer"].post(url, json=body).json()["error"]["code"] == "csrf_failed"
    assert report(wiki, people["nobody"], kind="orphan")["open"] == 1
    assert people["writer"].post(url, json=body, headers=marked["writer"]).json() == {**body, "is_dismissed": True}
    assert report(wiki, people["nobody"], kind="orphan")["open"] == 0
    answer = requests.post(url, json={**body, "restore": True}, headers=BEARER, timeout=30)
    assert answer.json() == {**body, "is_dismissed": False}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"findings": []},
        {"findings": "0123456789abcdef"},
        {"findings": [1]},
        {"findings": ["../x"]},
        {"findings": ["a" * 16] * 101},
    ],
)
def test_odd_dismissals_are_refused(wiki: LiveWiki, body: dict[str, Any]) -> None:
    answer = requests.post(f"{wiki.url}{API}/dismissals", json=body, headers=BEARER, timeout=30)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_parameter")


def test_the_page_lists_findings_and_dismisses_them_by_forms(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    report(wiki, people["admin"])
    shown = people["admin"].get(wiki.url + PAGE).text
    assert "Alone &amp; odd" in shown
    assert "&lt;b&gt;bold" in shown
    assert "<b>bold" not in shown
    forms = {name: (action, dict(_FIELD.findall(inner))) for name, action, inner in _FORM.findall(shown)}
    action, fields = forms["dismiss-orphan"]
    (orphan,) = _DISMISS.findall(shown)
    after = people["admin"].post(wiki.url + action, data={**fields, "only": orphan})
    assert after.url == f"{wiki.url}{PAGE}#orphan"
    assert _DISMISS.findall(after.text) == []
    all_shown = people["admin"].get(wiki.url + PAGE, params={"dismissed": "true"}).text
    restoring = [dict(_FIELD.findall(inner)) for _, _, inner in _FORM.findall(all_shown)]
    (again,) = [fields for fields in restoring if fields.get("restore")]
    people["admin"].post(wiki.url + action, data=again)
    assert report(wiki, people["admin"], kind="orphan")["open"] == 1


def test_a_kind_without_findings_has_no_list(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    assert report(wiki, people["admin"], kind="duplicate")["counts"] == [{"kind": "duplicate", "open": 0, "dismissed": 0}]
    shown = people["admin"].get(wiki.url + PAGE, params={"kind": "duplicate", "dismissed": "true"}).text
    assert "No open findings</p>" in shown
    assert re.search(r'href="[^"]*kind=orphan[^"]*">Orphaned pages <[^>]*>1</span>', shown)
    assert re.search(r'aria-current="page">Duplicate passages <[^>]*>0</span>', shown)
    assert "Duplicate passages</a>" in people["admin"].get(wiki.url + PAGE).text.partition("No open findings: ")[2]
    assert "semantic-findings" not in shown
    assert 'id="dismissed"' not in shown


def test_a_page_that_may_be_outdated_tells_what_is_newer(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    report(wiki, people["nobody"])
    shown = people["nobody"].get(wiki.url + PAGE, params={"kind": "stale"}).text
    found = re.findall(r'(Older|Newer): <a +href="/(\w+).*?changed <time datetime="([\d-]+)T', shown)
    assert found == [("Older", "disks", "2019-05-01"), ("Newer", "tapes", "2019-06-01")]


def test_readers_get_no_buttons(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    report(wiki, people["nobody"])
    shown = people["nobody"].get(wiki.url + PAGE)
    assert re.search(r"<strong>Gone</strong></p>\s*<ul><li>Linked from <a", shown.text)
    assert not _FORM.search(shown.text)
    assert "Create page" not in shown.text
    assert people["nobody"].post(f"{wiki.url}{PAGE}/dismiss", data={"finding": "a" * 16}).status_code in {400, 401, 403}
    assert people["nobody"].get(wiki.url + PAGE, params={"kind": "nothing"}).status_code == 422


def test_the_sidebar_leads_to_the_page(wiki: LiveWiki, people: dict[str, requests.Session]) -> None:
    assert f'href="{PAGE}"' in people["nobody"].get(f"{wiki.url}/").text
