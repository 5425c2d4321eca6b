"""A real browser in front of a real wiki: Chromium driven by Playwright, in the looks that people have."""

from __future__ import annotations

import http.cookiejar
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright._impl._api_structures import SetCookieParam, ViewportSize
from playwright.sync_api import Browser, CDPSession, Error, Page, Request, expect, sync_playwright

from tests.support.fork_server import python
from tests.support.live_wiki import LiveWiki, eventually
from tests.support.paths import ROOT

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one is the same browser without windows: it takes a third of the others' time."""
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
AXE = ROOT / "tests" / "node_modules" / "axe-core" / "axe.min.js"
NEEDS_CHROMIUM = "no Chromium is installed: apt-get install chromium-headless-shell, or set CHROMIUM to where it is"
NEEDS_AXE = "axe-core is not installed: npm install --prefix tests"
_SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
)
_PICTURES = os.environ.get("SCREENSHOTS")
"""The directory for pictures, if they are taken."""
_PATIENCE_MS = 30_000
"""A busy machine takes its time; what comes is checked at once."""
_WIDE, _PHONE = (1400, 900), (390, 844)
BEHAVIOURS = ("light", "plain")
"""The looks between which behaviour differs: with and without scripts."""
STRICT_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'; object-src 'none'"
"""A Content-Security-Policy that forbids inline scripts and styles, also in attributes."""
WIKI_POLICY = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:"
"""What the wiki needs, as docs/security.md has it."""
_AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_TRANSITIONS_END = """new Promise(requestAnimationFrame).then(async () => {
  for (const each of document.getAnimations()) if (each instanceof CSSTransition) await each.finished.catch(() => {});
})"""
_SET_DARK = 'dark => document.body.classList.contains("dark-mode") !== dark && halfmoon.toggleDarkMode()'
_NOTE_BLOCKED = """
window.blocked = {ours: [], others: []};
addEventListener("securitypolicyviolation", event => {
    const element = event.target instanceof Element ? event.target : null;
    const isOurs = event.sourceFile.includes("/semantic-search/static/")
        || element?.closest("[class*=semantic], [id*=semantic]");
    window.blocked[isOurs ? "ours" : "others"].push(`${event.effectiveDirective} ${event.blockedURI} ${element?.outerHTML}`);
});
"""


@contextmanager
def started_chromium() -> Iterator[Browser]:
    """Start the browser; the test is left out where there is none."""
    if CHROMIUM is None:
        pytest.skip(NEEDS_CHROMIUM)
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_SWITCHES)
        yield browser
        browser.close()


def serve(place: Path, **settings: Any) -> LiveWiki:
    """Return a wiki of `place/repository` and `place/index` that can be served with a Content-Security-Policy."""
    command = [python(), "-m", "flask", "--app", "tests.support.served_app", "run", "--port", "{port}"]
    return LiveWiki(place / "repository", place / "index", command=command, **settings)


@contextmanager
def opened(
    browser: Browser, wiki: LiveWiki, look: str = "light", *, is_member: bool = False, policy: str = ""
) -> Iterator[Page]:
    """Lend an empty page of a browser with a look; as a member it has the session of `wiki`'s own browser.

    A wiki of `serve` sends it a Content-Security-Policy, except for pictures: parts of the wiki's frame do not work under it.

    Whatever the page asks of another host than the wiki fails the test, and so does an error of a script. Tests with the same
    look have the same page, which then starts its scripts faster, but nothing of what an earlier test left in it.
    """
    page, storage, size = _page(browser, look)
    context = page.context
    context.clear_cookies()
    mode = "dark-mode" if look == "dark" else "light-mode"
    context.add_cookies([{"name": "halfmoon_preferredMode", "value": mode, "url": wiki.url}])
    if policy and not _PICTURES:
        context.add_cookies([{"name": "policy", "value": quote(policy), "url": wiki.url}])
    if is_member:
        context.add_cookies([_cookie(cookie, wiki) for cookie in wiki.cookies])
    storage.send("Storage.clearDataForOrigin", {"origin": wiki.url, "storageTypes": "local_storage"})
    page.set_viewport_size(size)
    page.mouse.move(0, 0)
    faults: list[str] = []

    def note_error(error: Error) -> None:
        faults.append(str(error))

    def note_foreign(failed: Request) -> None:  # as every request of another host; to be told of all takes a tenth of the time
        if not failed.url.startswith(wiki.url):
            faults.append(failed.url)

    page.on("pageerror", note_error)
    page.on("requestfailed", note_foreign)
    try:
        yield page
    finally:
        for each in context.pages:
            if each is not page:
                each.close()
        page.unroute_all()
        page.remove_listener("pageerror", note_error)
        page.remove_listener("requestfailed", note_foreign)
        page.goto("about:blank")
    assert not faults, faults


@cache
def _page(browser: Browser, look: str) -> tuple[Page, CDPSession, ViewportSize]:
    width, height = _PHONE if look == "phone" else _WIDE
    context = browser.new_context(
        java_script_enabled=look != "plain",
        color_scheme="dark" if look == "dark" else "light",
        reduced_motion="reduce",
        has_touch=look == "phone",
        permissions=["clipboard-read", "clipboard-write"],
    )
    context.add_init_script(_NOTE_BLOCKED)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    return page, context.new_cdp_session(page), {"width": width, "height": height}


def _cookie(cookie: http.cookiejar.Cookie, wiki: LiveWiki) -> SetCookieParam:
    return {"name": cookie.name, "value": cookie.value or "", "url": wiki.url}


def settle(page: Page, text: str) -> None:
    """Enter a text into the palette, and wait until what is found when nobody types on has replaced what was found before."""
    with page.expect_response(re.compile("part=passages$")) as reply:
        page.keyboard.insert_text(text)
    reply.value.finished()
    page.evaluate("new Promise(requestAnimationFrame)")


def violations(page: Page, within: str, *, only_colors: bool = False) -> list[str]:
    """Return what axe-core finds against WCAG 2.2 AA in a part of the page; the test is left out where it is not installed."""
    if not AXE.exists():
        pytest.skip(NEEDS_AXE)
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{AXE.read_text()}; 0")  # which a policy does not block
    found = page.evaluate(
        """([within, runOnly]) => axe.run(within, {runOnly, resultTypes: ["violations"], preload: false})
        .then(result => result.violations.map(each => `${each.id}: ${each.nodes.map(node => node.html).join(" ")}`))""",
        [within, ["color-contrast"] if only_colors else _AXE_TAGS],
    )
    return [str(each) for each in found]


def check_policy(page: Page) -> None:
    """Check that `STRICT_POLICY` has blocked nothing of the plugin in the document shown, but something inline of the wiki."""
    if not _PICTURES:
        blocked = page.evaluate("window.blocked")
        assert blocked["ours"] == []
        assert blocked["others"]


def is_scrolling_sideways(page: Page) -> bool:
    """Return whether the page, or what scrolls in the wiki's frame, is wider than the window."""
    return bool(
        page.evaluate(
            """() => [document.documentElement, document.getElementById("content-wrapper")]
            .some(each => each.scrollWidth > each.clientWidth)"""
        )
    )


def check_looks(page: Page, within: str, name: str = "") -> None:
    """Check a part of a page by day, by night and on a phone: axe-core finds nothing, and nothing is wider than the window.

    Between day and night only colors differ. With a name, a picture is taken by day.
    """
    for look, (width, height) in {"light": _WIDE, "dark": _WIDE, "phone": _PHONE}.items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(_SET_DARK, look == "dark")
        eventually(lambda: not is_scrolling_sideways(page), why="the wiki's sidebar moves aside")
        assert violations(page, within, only_colors=look == "dark") == [], look
        if name and look == "light":
            picture(page, name)
    page.set_viewport_size({"width": _WIDE[0], "height": _WIDE[1]})
    page.evaluate(_TRANSITIONS_END)  # the wiki's sidebar moves back, and all beside it


def picture(page: Page, name: str) -> None:
    """Take a picture for the documentation, if the environment's SCREENSHOTS names a directory for it."""
    if _PICTURES:
        page.screenshot(path=Path(_PICTURES) / f"{name}.png")
