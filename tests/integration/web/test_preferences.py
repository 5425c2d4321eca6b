"""The wiki's preferences that change what the index reads."""

from __future__ import annotations

from pathlib import Path

from tests.support.live_wiki import LiveWiki, eventually, make_repository

PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\n## Our [[Garden|beds]]\n\nThe beds lie behind the house.\n",
    "garden.md": "# Garden\n\nTomatoes, and beans.\n",
}


def test_the_order_of_wikilinks_can_be_changed_at_any_time(tmp_path: Path) -> None:
    with LiveWiki(make_repository(tmp_path / "repository", PAGES), tmp_path / "index") as wiki:

        def links() -> tuple[list[str], str]:
            page = wiki.api("GET", "/semantic-search/pages/home").json
            return page["links_to"], page["sections"][1]["heading"]

        wiki.wait_until_indexed()
        assert links() == ([], "Our Garden")
        wiki.log_in()
        preferences = "/-/admin/content_and_editing"
        wiki.post_form(preferences, preferences, wikilink_style="LINKTITLE")
        eventually(lambda: links() == (["garden"], "Our beds") or None, why="the pages are read again")
        assert wiki.api("GET", "/semantic-search/health", kind="broken_link").json["findings"] == []
        assert wiki.search("where are the beds")[0]["section"] == "Our beds"
        wiki.restart()
        wiki.wait_until_indexed()
        assert links() == (["garden"], "Our beds")
        wiki.post_form(preferences, preferences, wikilink_style="")
        eventually(lambda: links() == ([], "Our Garden") or None, why="the pages are read again")
        (wiki.data_dir / "notation").write_text("wiki-page-first")  # by another worker, with a newer configuration
        assert wiki.request("POST", preferences).status == 400
        assert (wiki.data_dir / "notation").read_text() == "wiki-page-first"
