"""The size of scripts and styles, and what minifying them leaves alone."""

from __future__ import annotations

from otterwiki_semantic.web.pages.layout import scripts, stylesheet

READERS = ("palette", "parts", "asking", "copying", "preview", "search", "answer", "offer", "related", "index")


def test_scripts_and_styles_are_small() -> None:
    assert sum(len(scripts()[f"{name}.js"].encode()) for name in READERS) <= 30 * 1024
    assert len(stylesheet().encode()) <= 20 * 1024


def test_texts_in_scripts_stay_as_they_are() -> None:
    assert '"Recently viewed"' in scripts()["palette.js"]
    assert "`${each.dataset.verb} “${text}”`" in scripts()["palette.js"]
