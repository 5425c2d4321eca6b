"""Answers on the search page and in the palette: asked for, read as they are written, and left; and without scripts."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.support.browser import STRICT_POLICY, check_looks, check_policy, opened, settle
from tests.support.chat_server import ChatServer, Script, dripping, end_event, refusing, saying, text_event
from tests.support.live_wiki import LiveWiki, eventually, make_repository

SEARCH = "/-/semantic-search"
FROST = "How do I protect the pipes from freezing?"
BACKUPS = "How long are nightly backups kept?"
_HARM = '<img src=x onerror="window.harmed=1">'
_TAPES = "The tapes are in the cellar of the mill. " * 200
PAGES: dict[str, str | bytes] = {
    "backups.md": f"---\ntitle: 'Backups [x](javascript:1) {_HARM}'\n---\n# Copies\n\n{_TAPES}\n\n## Retention\n\n"
    "Nightly backups are kept 14 days on the tape. The weekly ones are kept for a year in the vault.\n",
    "retention.md": "# Retention\n\nNightly backups are kept 90 days on the tape.\n",
    "garden.md": "# Garden\n\nPlant tomatoes after the middle of May, tie them up, and never wet their leaves.\n",
}
_IS_AT_THE_END = """(() => {
    const [start, end, whole] = ["#semantic-status", ".semantic-answer-form", ".semantic-column"]
        .map(each => document.querySelector(each).getBoundingClientRect());
    return Math.abs(start.top + start.bottom - end.top - end.bottom) <= 8 && Math.abs(whole.right - end.right) <= 1;
})()"""
FIRST, SECOND = "Nightly backups are kept 14 days on the tape", "The weekly ones are kept for a year in the vault"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, chat: ChatServer) -> Iterator[LiveWiki]:
    """A wiki with two pages that differ, answered by a model that follows a script."""
    place = tmp_path_factory.mktemp("scripted")
    repository = make_repository(place / "repository", PAGES)
    with LiveWiki(repository, place / "index", **chat.settings, SEMANTIC_ANSWERS_PER_HOUR="0") as live:
        live.wait_until_indexed()
        yield live


@pytest.fixture
def page(chromium: Browser, site: LiveWiki) -> Iterator[Page]:
    with opened(chromium, site) as lent:
        yield lent
        assert lent.evaluate("window.harmed") is None


def answer(page: Page) -> Locator:
    return page.locator("#semantic-answer")


def ask(page: Page, wiki: LiveWiki, question: str = BACKUPS, more: str = "") -> None:
    page.goto(f"{wiki.url}{SEARCH}?q={question.replace(' ', '+')}{more}")
    page.get_by_role("button", name="Show an answer").click()


def citing(*texts: str) -> Script:
    """Return a script that writes sentences with the number of the page about backups."""

    def script(body: dict[str, Any], provider: str) -> Iterator[bytes]:
        found = re.search(r"=== source (\d+) \w+: Backups", body["messages"][-1]["content"])
        assert found
        yield from (text_event(provider, f"{text} [{found[1]}]. ") for text in texts)
        yield end_event(provider)

    return script


@pytest.mark.parametrize("look", ["light", "plain"])
def test_the_button_shows_sentences_whose_notes_lead_to_their_page(chromium: Browser, demo: LiveWiki, look: str) -> None:
    with opened(chromium, demo, look, policy=STRICT_POLICY) as page:
        page.goto(f"{demo.url}{SEARCH}?q={FROST.replace(' ', '+')}")
        button = page.get_by_role("button", name="Show an answer")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            expect(button).to_be_in_viewport(ratio=1)
            eventually(lambda: page.evaluate(_IS_AT_THE_END), why=f"the sidebar moves aside at {width}")
        button.click()
        note = answer(page).locator(".semantic-extract a").first
        expect(note).to_be_visible()
        expect(answer(page)).to_contain_text("frost guard")
        expect(answer(page)).to_contain_text("Answer from Home automation")
        expect(page.locator("a.semantic-passage").first).to_be_visible()
        expect(answer(page).locator("[aria-busy]")).to_have_count(0)
        expect(page.get_by_role("button", name="Show an answer")).to_be_hidden()
        if look != "plain":
            check_policy(page)
            check_looks(page, "#semantic-search", "answer")
        target = (note.get_attribute("href") or "").partition("#")[0]
        note.click()
        expect(page).to_have_url(re.compile(re.escape(target)))
        expect(page.locator("#semantic-search")).to_have_count(0)
        ask(page, demo, "how long are nightly backups kept")
        expect(answer(page).locator(".semantic-extract:visible")).to_have_count(1)
        answer(page).get_by_text("1 more passage").click()
        expect(answer(page).locator(".semantic-extract:visible").last).to_contain_text("From Backups › Testing")


def is_question(url: str) -> bool:
    """Whether a request asks, and does not only fetch more of an answer."""
    return "/answer?" in url and "writing=" not in url


def open_palette(page: Page, wiki: LiveWiki, question: str) -> Locator:
    """Enter a question into the palette; return the palette."""
    page.goto(wiki.url)
    page.keyboard.press("Control+k")
    settle(page, question)
    return page.locator("#semantic-palette")


def passages(palette: Locator) -> Locator:
    return palette.get_by_role("group", name="Passages").get_by_role("option")


@pytest.mark.parametrize("is_by_key", [True, False])
def test_the_palette_asks(chromium: Browser, demo: LiveWiki, is_by_key: bool) -> None:
    text = f"{'how are ' if is_by_key else ''}backups checked each month"  # an answer in the palette takes the option's place
    with opened(chromium, demo) as page:
        open_palette(page, demo, text)
        if is_by_key:
            page.keyboard.press("Alt+Enter")
        else:
            page.get_by_role("option", name="Show an answer").click()
        expect(answer(page)).to_contain_text("monthly24yearlyfor ever")
        expect(answer(page)).to_contain_text(re.compile(r"compares their sums\.\s*… A backup"))  # one is left out
        expect(page.get_by_label("Question or words")).to_have_value(text)


def test_the_palette_shows_what_answers_a_question(chromium: Browser, demo: LiveWiki) -> None:
    with opened(chromium, demo) as page:
        palette = open_palette(page, demo, "nightly backups")
        expect(passages(palette).first).to_be_visible()
        expect(palette.get_by_role("group", name="Answer")).to_have_count(0)  # which only questions have
        lead = palette.get_by_role("group", name="Answer").get_by_role("option")
        page.keyboard.press("Control+a")
        settle(page, "how do I restore a backup?")
        expect(lead.locator("[data-marker]")).to_contain_text(["On otter: ", "restic -r /backup/local restore", "Compare"])
        page.keyboard.press("Control+a")
        settle(page, "how long are nightly backups kept")
        expect(lead).to_contain_text("Nightly – kept: 14")
        expect(passages(palette).filter(has_text="Retention")).to_have_count(0)  # the answer's own
        expect(lead).to_have_attribute("aria-selected", "true")
        expect(passages(palette).first).to_be_visible()
        check_looks(page, "#semantic-palette")
        page.keyboard.press("ArrowRight")
        expect(palette.locator(".semantic-preview .semantic-best")).to_be_visible()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/procedures/backup#"))


def test_a_model_answers_in_the_palette(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    chat.script = citing(FIRST, SECOND)
    palette = open_palette(page, site, BACKUPS)
    lead = palette.locator(".semantic-palette-lead")
    expect(lead).to_be_visible()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if is_question(request.url) else None)
    for _ in range(2):
        page.keyboard.press("Alt+Enter")
    written = palette.locator(".semantic-answer")
    expect(written).to_contain_text(SECOND)
    expect(written).not_to_contain_text("Writing…")
    assert len(asked) == 1
    assert page.url == f"{site.url}/"
    expect(lead).to_be_hidden()
    expect(passages(palette).first).to_have_attribute("aria-selected", "true")
    for _ in range(3):  # after the buttons that close and copy
        page.keyboard.press("Tab")
    expect(written.locator("a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"^{site.url}/backups#"))
    expect(palette).to_be_hidden()


def test_closing_the_palette_or_typing_on_ends_the_answer(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    chat.script = dripping("Nightly backups are kept 14 days on the tape [1]. ", 0.01)
    palette = open_palette(page, site, BACKUPS)
    for leaving in ("Escape", "s"):
        chat.hung_up.clear()
        page.keyboard.press("Alt+Enter")
        expect(palette.locator(".semantic-answer")).to_contain_text(FIRST)
        page.keyboard.press(leaving)
        assert chat.hung_up.wait(30)
        expect(palette.locator(".semantic-answer")).to_have_count(0)
        page.keyboard.press("Control+k")


def test_who_has_moved_to_an_option_opens_it_in_a_new_tab(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    before = len(chat.requests)
    palette = open_palette(page, site, BACKUPS)
    expect(passages(palette).first).to_be_visible()
    page.keyboard.press("ArrowDown")
    with page.context.expect_page() as tab:
        page.keyboard.press("Control+Enter")
    assert tab.value.url.startswith(site.url)
    assert len(chat.requests) == before


def test_another_site_cannot_ask(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    before = len(chat.requests)
    page.goto(f"{site.url}{SEARCH}?q={BACKUPS}#answer")
    expect(page.get_by_role("button", name="Show an answer")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert len(chat.requests) == before


def test_sentences_appear_one_by_one_and_are_copied_with_links(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    shown = threading.Event()

    def script(body: dict[str, Any], provider: str) -> Iterator[bytes]:
        first, second, end = citing(FIRST, SECOND)(body, provider)
        yield first
        yield text_event(provider, SECOND)
        assert shown.wait(60)
        yield second
        yield end

    chat.script = script
    ask(page, site)
    expect(answer(page)).to_contain_text(FIRST)
    expect(answer(page)).to_contain_text("Writing…")
    expect(answer(page)).not_to_contain_text(SECOND)
    shown.set()
    expect(answer(page)).to_contain_text(SECOND)
    expect(answer(page)).not_to_contain_text("Writing…")
    expect(answer(page)).to_contain_text("Written by openai:small from these pages")
    page.get_by_role("button", name="Copy").click()
    expect(answer(page)).to_contain_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"{FIRST}. [")
    assert r"\[x\](javascript:1)" in copied
    assert re.search(rf"^\[\d\] \[Backups .*\]\({re.escape(site.url)}/backups#\S+\)$", copied, re.MULTILINE)


def test_doubts_and_conflicts_are_shown(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    chat.script = citing(FIRST, "Nightly backups are kept 30 days on the tape", f"{_HARM} Bertha keeps them in Paris")
    ask(page, site)
    expect(answer(page)).to_contain_text("Bertha")
    expect(answer(page)).to_contain_text(re.compile('not confirmed: "30'))
    expect(answer(page).get_by_text("The sources differ")).to_contain_text(re.compile("14 days.*90 days|90 days.*14 days"))
    expect(answer(page).locator(".semantic-doubtful")).to_have_count(2)
    assert answer(page).locator("img").count() == 0
    check_looks(page, "#semantic-answer")
    whole = whole_page(site)
    assert "Bertha" in whole
    assert "The sources differ" in whole
    assert whole.count("semantic-doubtful") == 2
    assert _HARM not in whole


def whole_page(site: LiveWiki) -> str:
    """Return the page that is sent to a browser without scripts."""
    question = f"?q={BACKUPS.replace(' ', '+')}"
    return site.post_form(f"{SEARCH}/answer{question}", SEARCH + question).text


def test_a_new_query_and_leaving_the_page_end_the_answer(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    chat.hung_up.clear()
    chat.script = dripping("Nightly backups are kept 14 days on the tape [1]. ", 0.01)
    ask(page, site)
    expect(answer(page)).to_contain_text(FIRST)
    page.get_by_label("Question or words").fill("tomatoes in May")
    expect(answer(page)).to_be_empty()
    expect(page.get_by_role("button", name="Show an answer")).to_be_visible()
    assert chat.hung_up.wait(30)
    expect(page.locator("#semantic-results")).to_contain_text("middle of May")
    expect(answer(page)).to_be_empty()
    chat.hung_up.clear()
    ask(page, site)
    expect(answer(page)).to_contain_text(FIRST)
    page.goto(f"{site.url}/garden")
    assert chat.hung_up.wait(30)


def test_alt_enter_answers_and_going_back_but_not_sorting_takes_it_away(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    chat.script = citing(FIRST)
    page.goto(f"{site.url}{SEARCH}?q=tomatoes")
    page.get_by_label("Question or words").fill(BACKUPS)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if is_question(request.url) else None)
    for _ in range(2):
        page.get_by_label("Question or words").press("Alt+Enter")
    expect(answer(page)).to_contain_text(FIRST)
    assert len(asked) == 1
    menu = page.get_by_label("Sort", exact=True)
    menu.focus()
    menu.select_option("updated")
    expect(page).to_have_url(re.compile("sort=updated"))
    expect(page.get_by_role("link", name="Remove Sort: date")).to_be_visible()  # the menus have been replaced
    expect(menu).to_be_focused()
    expect(answer(page)).to_contain_text(FIRST)
    page.go_back()
    page.go_back()
    expect(page.get_by_label("Question or words")).to_have_value("tomatoes")
    expect(answer(page)).to_be_empty()


def test_what_came_stays_when_the_connection_is_lost(page: Page, site: LiveWiki) -> None:
    part = '<section class="semantic-answer" aria-busy="true"><p>Half.</p><p role="status">Writing</p></section>'

    def half(route: Route) -> None:
        if is_question(route.request.url):
            route.fulfill(json={"id": "x", "part": part})
        else:
            route.abort()

    page.route("**/answer?*", half)
    ask(page, site)
    expect(answer(page)).to_contain_text("Half.")
    expect(answer(page)).to_contain_text("The answer is incomplete")
    expect(answer(page)).not_to_contain_text("Writing")


def test_why_there_is_no_answer_is_said(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    for script, said in ((saying("NOT IN THE SOURCES"), "Nothing here answers"), (refusing(401, "no"), "SEMANTIC_ANSWERS_KEY")):
        chat.script = script
        ask(page, site)
        expect(answer(page)).to_contain_text(said)
        assert said in whole_page(site)


def test_only_the_chosen_pages_are_sources(page: Page, site: LiveWiki, chat: ChatServer) -> None:
    chat.script = saying("Nightly backups are kept 90 days on the tape [1].")
    ask(page, site, more="&path=retention")
    expect(answer(page)).to_contain_text("90 days")
    assert "14 days" not in chat.told()
