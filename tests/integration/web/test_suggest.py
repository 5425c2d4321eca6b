"""Suggestions of a served wiki that changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.support.live_wiki import LiveWiki, commit, eventually, make_repository

PUMP = """---
tags: [water]
category: tools
aliases: [Cistern pump]
---
# Pump

## Oil

Change it in May.
"""
PAGES = {"garden/pump.md": PUMP, "house/pump.md": "# Pump\n\nOf the heating.\n"}


def test_suggestions_follow_the_wiki_and_its_filters(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository", PAGES)
    with LiveWiki(repository, tmp_path / "index") as wiki:
        wiki.wait_until_indexed()

        def found(query: str, **filters: Any) -> list[str]:
            answer = wiki.api("GET", f"/semantic-search/suggest?{urlencode({'q': query, **filters})}")
            assert answer.status == 200, answer.text
            return [f"{each['path']}#{each['anchor']}" for each in answer.json["suggestions"]]

        both = ["garden/pump#", "house/pump#"]
        assert found("pump") == both
        assert found("cistern") == ["garden/pump#"]
        assert found("oil") == ["garden/pump#oil"]
        for filters in ({"path": "garden/"}, {"tag": "Water"}, {"category": "TOOLS"}):
            assert found("pump", **filters) == found("", **filters) == ["garden/pump#"]
        assert found("pump", tag="fire") == found("", tag="fire") == []
        passages = wiki.get("/-/semantic-search/palette", part="passages", q="pump", draft="typing").text
        assert all(f'-trail">{place}<' in passages for place in ("garden/ › Pump", "house/")), "equal titles are told apart"
        wiki.save("cellar/pump", "# Pump of the cellar\n")
        eventually(lambda: found("pump of") == ["cellar/pump#"])
        assert found("pump") == [*both, "cellar/pump#"]
        commit(repository, {"cellar/pump.md": None, "garden/pump.md": "# Watering\n\nBy hand.\n"})
        wiki.save("home", "# Home\n")
        eventually(lambda: found("pump") == ["house/pump#", "garden/pump#"])
        assert found("oil") == found("cistern") == []
        assert found("water") == ["garden/pump#"]
