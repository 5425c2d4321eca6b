"""Files attached to pages are found, and follow their page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from otterwiki_semantic.content.attachments import file_to_markdown, kinds
from otterwiki_semantic.content.git import Repository
from otterwiki_semantic.core.errors import PageExcludedError
from otterwiki_semantic.core.parameter_parsing import parse_parameters
from otterwiki_semantic.core.records import FileKind, Filters, Hit, PageListRequest, PageRequest, PageUrls, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from otterwiki_semantic.daemon.page_reader import PageReader
from tests.support.attachments import image, needs_tesseract, pdf, word
from tests.support.engines import follow, opened, restarting
from tests.support.live_wiki import commit, git, make_repository

CONTRACT = pdf(
    ["# Parties", "The landlord is Ann Lee, and the tenant is Bo Hill."],
    ["# Termination", "The tenant may terminate the lease with a notice period of three months."],
    ["The landlord may terminate the lease only if she needs the flat for herself or her parents."],
)
HANDBOOK = word(
    "# Holidays", "Every employee has thirty days of paid leave.", "## Carry over", "Five days may be carried over."
)
PAGES: dict[str, str | bytes] = {
    "home.md": "# Home\n\nThe house and its people.\n",
    "house.md": "# House\n\nWhat belongs to the house.\n",
    "house/Contract.pdf": CONTRACT,
    "house/staff/Handbook.docx": b"of no page",
    "people.md": "# People\n\nWho works here.\n",
    "people/Handbook.docx": HANDBOOK,
    "people/notes.txt": "The locksmith keeps a spare key in the shed.\n",
    "people/photo.jpg": b"\xff\xd8",
}
Start = Callable[..., IndexEngine]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", sync_interval=3600, pages=())


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    with restarting(settings) as restart:
        yield restart


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[IndexEngine, Settings]]:
    """An index that is only asked."""
    place = tmp_path_factory.mktemp("shared")
    settings = Settings(make_repository(place / "repository", PAGES), place / "index", sync_interval=3600, pages=())
    index = opened(settings)
    yield index, settings
    index.close()


@pytest.fixture
def index(shared: tuple[IndexEngine, Settings]) -> IndexEngine:
    return shared[0]


def best(index: IndexEngine, query: str, **options: Any) -> Hit:
    return index.search([query], SearchOptions(n=1, **options), urls=PageUrls("/"))[0].results[0]


def test_a_passage_of_a_file_names_its_page_and_links_to_it(index: IndexEngine) -> None:
    hit = best(index, "how long is the notice period to terminate the lease")
    assert (hit.path, hit.title, hit.kind, hit.attached_to) == ("house/Contract.pdf", "Contract.pdf", "pdf", "house")
    assert (hit.section, hit.page_number, hit.url) == ("Termination", 2, "/house/Contract.pdf#page=2")
    assert hit.breadcrumb == "Contract.pdf, page 2 > Termination"


def found(index: IndexEngine, phrase: str, **options: Any) -> set[str]:
    """Return the paths of what has a phrase."""
    hits = index.search([f'"{phrase}"'], SearchOptions(n=20, max_chunks_per_page=1, **options))[0].results
    return {path for hit in hits for path in (hit.path, *hit.also_on)}


def test_only_files_in_a_folder_named_as_a_page_are_indexed(index: IndexEngine) -> None:
    paths = {page.path for page in index.pages(PageListRequest()).pages}
    assert paths == {"home", "house", "people", "house/Contract.pdf", "people/Handbook.docx", "people/notes.txt"}


def test_files_are_indexed_as_the_setting_says(start: Start) -> None:
    assert found(start(attachments=False), "notice period") == set()
    only_people = start(attachments=("people/**",))
    assert found(only_people, "notice period") == set()
    assert found(only_people, "paid leave") == {"people/Handbook.docx"}
    assert found(start(exclude=("people/*.docx",)), "paid leave") == set()
    assert found(start(), "notice period") == {"house/Contract.pdf"}


def test_a_file_that_changes_or_goes_is_followed(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"people/notes.txt": "The plumber keeps a wrench.\n", "house/Contract.pdf": None})
    assert found(index, "spare key") == set() == found(index, "notice period")
    assert found(index, "plumber keeps") == {"people/notes.txt"}


def test_an_edit_is_found_before_files_are_read(start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    index, edits_found = start(), list[bool]()

    def read(*arguments: Any) -> tuple[str, str | None]:
        edits_found.append(found(index, "an urgent edit") == {"home"})
        if len(edits_found) == 1:
            commit(settings.repository, {"home.md": "# Home\n\nThis is an urgent edit.\n"})
        return file_to_markdown(*arguments)

    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader.file_to_markdown", read)
    follow(index, settings, {f"house/{number}.txt": f"Note number {number}.\n" for number in range(4)})
    assert edits_found == [False, True, True, True]
    assert found(index, "note number 3") == {"house/3.txt"}


def test_files_come_and_go_with_their_page(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"house.md": None})
    assert found(index, "notice period") == set()
    follow(index, settings, {"house.md": "# House\n\nAgain.\n"})
    assert found(index, "notice period") == {"house/Contract.pdf"}


def test_a_renamed_or_copied_file_is_neither_read_nor_embedded_again(
    start: Start, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = start()
    before = index.status().embedded_texts
    monkeypatch.setattr("otterwiki_semantic.indexing.page_loader.file_to_markdown", None)
    git(settings.repository, "mv", "house/Contract.pdf", "house/Lease.pdf")
    follow(index, settings, {"people/Copy.pdf": CONTRACT})
    assert found(index, "notice period", filters=Filters(path="people/")) == {"people/Copy.pdf"}
    hit = best(index, "notice period", filters=Filters(path="house/"))
    assert (hit.path, hit.page_number) == ("house/Lease.pdf", 2)
    assert index.status().embedded_texts == before


def test_a_file_may_be_searched_as_its_page_may(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"house.md": "---\nsearch: false\n---\n# House\n"})
    assert found(index, "notice period") == set()
    follow(index, settings, {"house.md": "---\nsearch: words\n---\n# House\n"})
    assert best(index, "notice period terminate lease").similarity is None
    follow(index, settings, {"house.md": "# House\n"})
    assert best(index, "notice period terminate lease").similarity is not None


def test_a_page_of_the_same_path_wins(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"house/Contract.pdf.md": "# Summary\n\nThree months of notice.\n"})
    assert best(index, "notice").kind is None
    follow(index, settings, {"house/Contract.pdf.md": None})
    assert best(index, "notice period").kind == "pdf"


def test_a_file_that_cannot_be_read_is_named_and_costs_nothing_else(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"house/Broken.pdf": b"%PDF-1.7 truncated", "people/notes.txt": "Still followed.\n"})
    assert found(index, "still followed") == {"people/notes.txt"}
    (problem,) = index.status().problems
    assert problem.message.endswith("house/Broken.pdf: it is damaged, or no PDF")


def test_equal_files_have_equal_passages_whatever_they_are_called(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"people/Copy.pdf": CONTRACT})
    hit = best(index, "notice period terminate lease")
    assert hit.also_on == ("people/Copy.pdf",) or hit.also_on == ("house/Contract.pdf",)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"type": "pdf"}, {"house/Contract.pdf"}),
        ({"type": "page"}, {"home", "house", "people"}),
        ({"scope": "pages"}, {"home", "house", "people"}),
        ({"scope": "attachments"}, {"house/Contract.pdf", "people/Handbook.docx", "people/notes.txt"}),
        ({"filter": "type:word OR type:text"}, {"people/Handbook.docx", "people/notes.txt"}),
        ({"filter": "in:attachments AND NOT type:pdf"}, {"people/Handbook.docx", "people/notes.txt"}),
    ],
)
def test_filters_select_files_by_kind(index: IndexEngine, filters: dict[str, str], expected: set[str]) -> None:
    assert {page.path for page in index.pages(parse_parameters(PageListRequest, filters)).pages} == expected
    hits = index.search(["the house and its people"], parse_parameters(SearchOptions, {"n": 20, **filters}))[0].results
    assert {hit.path for hit in hits} <= expected


def test_facets_count_kinds_if_there_are_files(index: IndexEngine) -> None:
    options = SearchOptions(n=20, max_chunks_per_page=1, facets=True)
    facets = index.search(["people and house"], options)[0].facets
    assert facets is not None
    assert facets.type == {"page": 3, "pdf": 1, "text": 1, "word": 1}
    only_pages = index.search(["people and house"], structs.replace(options, filters=Filters(type="page")))[0].facets
    assert only_pages is not None
    assert only_pages.type == {}


def test_a_file_is_read_like_a_page(shared: tuple[IndexEngine, Settings]) -> None:
    index, settings = shared
    reader = PageReader(index, Repository.of(settings))
    shown = ("Contract.pdf", "pdf", "/house/Contract.pdf")
    whole = reader.page("house/contract.pdf", PageRequest(), PageUrls("/"))
    assert (whole.path, whole.title, whole.kind, whole.url) == ("house/Contract.pdf", *shown)
    assert [entry.name for entry in whole.sections] == ["Parties", "Termination"]
    assert "<!-- page 3 -->" in whole.content
    (page,) = reader.page("house/Contract.pdf", PageRequest(section=("page 3",))).parts or ()
    assert (page.anchor, page.content.split()[-3:]) == ("page=3", ["or", "her", "parents."])
    (section,) = reader.page("house/Contract.pdf", PageRequest(section=("termination",))).parts or ()
    assert (section.anchor, "herself" in section.content) == ("page=2", True)
    assert reader.history("house/Contract.pdf", 5).commits[0].message == "change"


def test_a_file_of_an_excluded_page_cannot_be_read(start: Start, settings: Settings) -> None:
    index = start()
    follow(index, settings, {"house.md": "---\nsearch: false\n---\n# House\n"})
    with pytest.raises(PageExcludedError):
        PageReader(index, Repository.of(settings)).page("house/Contract.pdf", PageRequest())


def test_the_markdown_of_a_passage_is_that_of_the_file(index: IndexEngine) -> None:
    hit = best(index, "how many days of paid leave", markdown=True)
    assert hit.path == "people/Handbook.docx"
    assert str(hit.markdown).startswith("# Holidays\n\nEvery employee has thirty days of paid leave.\n")


def test_the_status_counts_files_and_those_that_an_extra_would_add(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "missing_kinds", lambda: frozenset({FileKind.PDF}))
    status = start().status()
    assert (status.pages, status.attachments, status.unread_attachments) == (3, 2, {"pdf": 1})


@needs_tesseract
def test_scans_are_read_again_when_ocr_is_switched_on(start: Start, settings: Settings) -> None:
    commit(
        settings.repository,
        {"people/photo.jpg": None, "house/Scan.pdf": image("The boiler is under warranty.", file_format="PDF")},
    )
    index = start()
    assert (found(index, "under warranty"), len(index.status().problems)) == (set(), 1)
    index = start(ocr="eng")
    assert (found(index, "under warranty"), index.status().problems) == ({"house/Scan.pdf"}, ())
    assert best(index, "notice period").page_number == 2
