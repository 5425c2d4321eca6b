"""Suggestions while somebody types: what is found, in which order, and what is marked."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.markdown import slug
from otterwiki_semantic.core.records import Chunk, Filters, LastChange, Page, SuggestedLabel, SuggestRequest
from otterwiki_semantic.embedding import vector_id
from otterwiki_semantic.search.suggest import marked_ranges, suggest
from otterwiki_semantic.storage import Catalog


class Wiki:
    """A catalog whose pages have nothing but names."""

    def __init__(self, place: Path) -> None:
        self.catalog = Catalog(place / "catalog.sqlite3")

    def put(
        self,
        path: str,
        title: str,
        *headings: str,
        aliases: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
        category: str | None = None,
        links: tuple[str, ...] = (),
        updated: int | None = None,
    ) -> None:
        """Add or replace a page, each of whose headings has a chunk of its own."""
        chunks = tuple(
            Chunk(
                f"[{title}] {number}", len(title) + 3, 0, heading, (title, heading), (heading,), slug(heading), number, number
            )
            for number, heading in enumerate(headings or ("",), 1)
        )
        change = None if updated is None else LastChange(updated, "a commit")
        page = Page(path, "blob", title, category, tags, 10, chunks, aliases=aliases, links_to=links, last_change=change)
        self.catalog.put_pages([(page, [vector_id(chunk.text) for chunk in chunks])])

    def suggested(self, query: str, n: int = 8, filters: Filters = Filters()) -> tuple[SuggestedLabel, ...]:  # noqa: B008
        return suggest(self.catalog, SuggestRequest(query, n, filters))

    def names(self, query: str, n: int = 8, filters: Filters = Filters()) -> list[str]:  # noqa: B008
        return [f"{each.path}#{each.anchor}" if each.anchor else each.path for each in self.suggested(query, n, filters)]


@pytest.fixture
def wiki(tmp_path: Path) -> Wiki:
    return Wiki(tmp_path)


def test_names_come_in_the_order_of_how_well_they_fit(wiki: Wiki) -> None:
    wiki.put("h", "Notes", "Backup", "Backup of photos", "The backup")
    wiki.put("backup/tools", "Tools")
    wiki.put("d", "The old backups")
    wiki.put("c", "Backups of the server")
    wiki.put("b", "Backup plan")
    wiki.put("alias", "Safety copy", aliases=("Backup",))
    wiki.put("a", "Backup")
    names = wiki.names("backup", 20)
    assert names[:6] == ["a", "alias", "b", "c", "d", "backup/tools"]
    assert names[6:] == ["h#backup", "h#backup-of-photos", "h#the-backup"]
    assert wiki.names("backup", 3) == ["a", "alias", "b"]


def test_equal_names_come_by_links_and_then_by_path(wiki: Wiki) -> None:
    wiki.put("x/one", "Meeting")
    wiki.put("x/three", "Meeting")
    wiki.put("x/two", "Meeting")
    wiki.put("linking", "Minutes", links=("x/two",))
    assert wiki.names("meet") == ["x/two", "x/one", "x/three"]


def test_each_typed_word_begins_a_word_in_any_order(wiki: Wiki) -> None:
    wiki.put("tools", "Sharpening garden tools", "Saws and axes")
    assert wiki.names("tool gar") == wiki.names("garden sh") == ["tools"]
    assert wiki.names("tool saw") == ["tools#saws-and-axes"]
    assert wiki.names("tool house") == wiki.names("buy garden tools") == []
    assert wiki.names("buy sharpening garden tools") == wiki.names("sharpening garden tools saw", 1) == ["tools"]
    (found,) = wiki.suggested("tool gar")
    assert [found.title[start:end] for start, end in found.ranges] == ["gar", "tool"]


@pytest.mark.parametrize(
    ("typed", "marked"),
    [
        ("ZURICH", "Zürich"),
        ("zuri", "Züri"),
        (unicodedata.normalize("NFD", "zür"), "Zür"),
        ("strasse", "Straße"),
        ("stras", "Straß"),
        ("firewall", "Firewall"),
        ("fire wall", "Firewall"),
        ("words", "Words"),
        ("targetw", "TargetW"),
        ("c++", "C++"),
        ("京都", "京都"),
        ("都", "都"),
        ("москв", "Москв"),
        ("서울", "서울"),
        ("กรุง", "กรุง"),
    ],
)
def test_case_accents_and_scripts_make_no_difference(wiki: Wiki, typed: str, marked: str) -> None:
    titles = ("Zürich", "Straße", "Firewall", "TargetWords", "C++", "新京都計画", "Москва", "서울특별시", "กรุงเทพมหานคร")
    for number, title in enumerate(titles):
        wiki.put(str(number), title)
    (found,) = wiki.suggested(typed)
    assert [found.title[start:end] for start, end in found.ranges] == [marked]


def test_accents_that_are_characters_of_their_own_are_marked_with_their_letter() -> None:
    assert marked_ranges(unicodedata.normalize("NFD", "Café au lait"), ["cafe"], "cafe") == ((0, 5),)


def test_an_alias_is_found_by_its_words_and_nothing_is_marked(wiki: Wiki) -> None:
    wiki.put("wifi", "WLAN", aliases=("Wireless network access",))
    for typed in ("wireless network access", "wireless net", "network", "access"):
        (found,) = wiki.suggested(typed)
        assert (found.path, found.title, found.ranges) == ("wifi", "WLAN", ())


def test_the_path_is_found(wiki: Wiki) -> None:
    wiki.put("house/heating/boiler", "Pressure")
    assert wiki.names("heating") == wiki.names("house/hea") == wiki.names("boiler press") == ["house/heating/boiler"]


@pytest.mark.parametrize("typed", ["irigation", "irrigatoin", "iirrigation", "ririgation", "iriga", "iriggation plna"])
def test_misspelled_words_are_corrected_if_little_is_found(wiki: Wiki, typed: str) -> None:
    wiki.put("irrigation", "Irrigation plan")
    wiki.put("other", "Irritating noises")
    (found,) = wiki.suggested(typed)
    assert found.path == "irrigation"
    assert found.ranges


def test_short_words_are_not_corrected(wiki: Wiki) -> None:
    wiki.put("cat", "Cat")
    assert wiki.names("cas") == []


def test_corrections_come_after_what_is_spelled_so_and_only_if_that_is_little(wiki: Wiki) -> None:
    wiki.put("wall", "Fire wall")
    wiki.put("typo", "Firewalk", "Ashes")
    assert wiki.names("firewall") == ["wall", "typo"]
    for number in range(2):
        wiki.put(f"wall{number}", f"Fire wall {number}")
    assert wiki.names("firewall") == ["wall", "wall0", "wall1"]


def test_a_heading_is_suggested_once_for_each_place(wiki: Wiki) -> None:
    wiki.put("a", "Tomatoes", "Winter", "Summer")
    wiki.put("b", "Roses", "Winter", "Winter")
    assert wiki.names("winter") == ["a#winter", "b#winter"]
    (found, _) = wiki.suggested("winter")
    assert (found.kind, found.title, found.section, found.section_path) == (
        "section",
        "Tomatoes",
        "Winter",
        ("Tomatoes", "Winter"),
    )


def test_a_heading_that_is_the_title_is_not_a_section(wiki: Wiki) -> None:
    wiki.put("a", "Tomatoes", "Tomatoes", "Watering")
    assert wiki.names("tomatoes") == ["a"]
    assert wiki.names("tomatoes wat") == ["a#watering"]


def test_merged_sections_have_their_own_anchors(wiki: Wiki) -> None:
    chunk = Chunk("[Garden] text", 9, 0, "Beds", ("Garden", "Beds"), ("Beds", "Tools & Saws"), "beds-1", 1, 9)
    wiki.catalog.put_pages([(Page("garden", "blob", "Garden", None, (), 10, (chunk,)), [vector_id(chunk.text)])])
    assert [(each.anchor, each.section_path) for each in wiki.suggested("beds") + wiki.suggested("saws")] == [
        ("beds-1", ("Garden", "Beds")),
        ("tools-saws", ("Garden", "Tools & Saws")),
    ]


def test_without_a_query_the_pages_changed_last_are_suggested(wiki: Wiki) -> None:
    for path, updated in (("old", 1), ("new", 3), ("unknown", None), ("middle", 2)):
        wiki.put(path, path, "Heading", updated=updated)
    assert wiki.names("") == ["new", "middle", "old", "unknown"]
    assert wiki.names("", 2) == ["new", "middle"]
    assert wiki.suggested("")[0].updated == "1970-01-01T00:00:03+00:00"


def test_filters_hold_for_pages_and_sections(wiki: Wiki) -> None:
    wiki.put("garden/pump", "Pump", "Pump oil", tags=("Water",), category="Tools", updated=2)
    wiki.put("house/pump", "Pump", "Pump oil", updated=1)
    for filters in (Filters(path="garden/"), Filters(tags=("water",)), Filters(category="tools")):
        assert wiki.names("pump", filters=filters) == ["garden/pump", "garden/pump#pump-oil"]
        assert wiki.names("", filters=filters) == ["garden/pump"]
    assert wiki.names("pump", filters=Filters(path="cellar/")) == []
    wiki.put("garden/pump-2", "Pump 2")
    assert "garden/pump-2" in wiki.names("pump", filters=Filters(path="garden/"))


def test_changes_are_seen_at_once(wiki: Wiki) -> None:
    for number in range(100):
        wiki.put(f"p{number:03}", f"Page {number:03}", f"Part {number:03}")
        assert wiki.names(f"page {number:03}") == [f"p{number:03}", f"p{number:03}#part-{number:03}"]
    wiki.put("p007", "Renamed")
    assert wiki.names("page 007", 1) != ["p007"]
    assert wiki.names("part 007") != ["p007#part-007"]
    assert wiki.names("renamed") == ["p007"]
    wiki.catalog.remove_pages(["p007", "p008"])
    assert wiki.names("renamed") == []
    assert "p008" not in wiki.names("page 008")
    before = {query: wiki.names(query, 50) for query in ("p", "page 0", "part 01", "0")}
    again = Catalog(wiki.catalog.path)
    for query, names in before.items():
        found = suggest(again, SuggestRequest(query, 50))
        assert [f"{each.path}#{each.anchor}" if each.anchor else each.path for each in found] == names


def test_a_snapshot_does_not_see_what_comes_later(wiki: Wiki) -> None:
    wiki.put("first", "First")
    reader = Catalog(wiki.catalog.path)
    with wiki.catalog.snapshot():
        assert wiki.names("first") == ["first"]
        wiki.put("second", "First and second")
        reader.remove_pages(["first"])
        assert wiki.names("first") == ["first"]
    assert wiki.names("first") == ["second"]


def test_an_older_snapshot_is_answered_after_several_changes(wiki: Wiki) -> None:
    wiki.put("first", "First")
    with wiki.catalog.snapshot():
        assert wiki.catalog.counts().pages == 1
        wiki.put("second", "First and second")
        assert [each.path for each in suggest(Catalog(wiki.catalog.path), SuggestRequest("first"))] == ["first", "second"]
        assert wiki.names("first") == ["first"]


def test_nothing_is_found_in_an_empty_wiki(wiki: Wiki) -> None:
    assert wiki.names("") == wiki.names("a") == []


def test_a_long_text_is_answered(wiki: Wiki) -> None:
    wiki.put("a", "Long story")
    assert wiki.names("long " * 2000) == ["a"]
    assert wiki.names("x" * 10_000) == wiki.names("日" * 10_000) == wiki.names(" ".join(map(str, range(2_000)))) == []


def test_signs_alone_are_a_name_too(wiki: Wiki) -> None:
    wiki.put("what", "???")
    wiki.put("emoji", "🦦")
    assert wiki.names("??") == ["what"]
    assert wiki.names("🦦") == ["emoji"]
    assert wiki.names("!!!") == wiki.names("\u0301") == []


@given(titles=st.lists(st.text(min_size=1, max_size=30), max_size=4), query=st.text(max_size=30))
def test_odd_characters_raise_no_error(tmp_path_factory: pytest.TempPathFactory, titles: list[str], query: str) -> None:
    wiki = Wiki(tmp_path_factory.mktemp("odd"))
    for number, title in enumerate(titles):
        wiki.put(f"p{number}", title, title + "!", title[::-1], aliases=(title[1:],))
    for text in (query.strip(), *(title.strip() for title in titles)):
        for found in wiki.suggested(text, 50):
            label = found.section or found.title
            flat = [place for each in found.ranges for place in each]
            assert flat == sorted(set(flat))
            assert all(0 <= place <= len(label) for place in flat)
