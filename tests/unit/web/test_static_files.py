"""The size of scripts and styles, and what minifying them leaves alone."""

from __future__ import annotations

from otterwiki_semantic.web.static_files import script, stylesheet

READERS = ("palette", "parts", "asking", "copying", "preview", "search", "answer", "offer", "related", "index")


def test_scripts_and_styles_are_small() -> None:
    assert sum(len((script(f"{name}.js") or "").encode()) for name in READERS) <= 30_000
    assert len(stylesheet().encode()) <= 20_000


def test_texts_in_scripts_stay_as_they_are() -> None:
    assert '" › "' in (script("palette.js") or "")
    assert "`Show the ${count} nearest passages`" in (script("palette.js") or "")
    assert script("../pages/layout.py") is None
