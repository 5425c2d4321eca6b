"""A page that keeps the renderer busy: only one thread waits for it, and it is rendered only once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import cast

import pytest
from flask import Flask

from otterwiki_semantic.core.errors import LimitExceededError
from otterwiki_semantic.core.worker_process import WorkerProcess
from otterwiki_semantic.web import rendering
from otterwiki_semantic.web.rendering import PageRenderer

_SOURCE_SHOWN = "Its source is shown instead."


class SlowRenderer:
    """What renders in a process of its own: takes until it is released, or up to its limit."""

    def __init__(self) -> None:
        self.asked, self.released = Event(), Event()
        self.rendered: list[str] = []

    def call(self, _seconds: float, _function: object, _config: object, markdown: str) -> str:
        self.rendered.append(markdown)
        self.asked.set()
        assert self.released.wait(60)
        if markdown == "endless":
            raise LimitExceededError("took too long")
        return f"<p>{markdown}</p>"


@pytest.fixture
def slow() -> SlowRenderer:
    return SlowRenderer()


@pytest.fixture
def renderer(slow: SlowRenderer) -> PageRenderer:
    made = PageRenderer()
    made._worker = cast("WorkerProcess", slow)
    return made


def html(renderer: PageRenderer, markdown: str) -> str:
    with Flask(__name__).app_context():
        return renderer.html(markdown)


def test_one_thread_waits_for_the_renderer_and_the_others_return_to_the_wiki(
    renderer: PageRenderer, slow: SlowRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_WAIT_SECONDS", 0)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(html, renderer, "first")
        assert slow.asked.wait(60)
        assert _SOURCE_SHOWN in html(renderer, "second")
        slow.released.set()
        assert first.result() == "<p>first</p>"
    assert html(renderer, "second") == "<p>second</p>"


def test_what_took_too_long_is_not_rendered_again(renderer: PageRenderer, slow: SlowRenderer) -> None:
    slow.released.set()
    for _ in range(2):
        assert _SOURCE_SHOWN in html(renderer, "endless")
    assert slow.rendered == ["endless"]
