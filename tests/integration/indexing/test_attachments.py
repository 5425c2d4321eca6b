"""Files attached to pages are found, and follow their page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otterwiki_semantic.core.records import Filters, Hit, PageListRequest, PageUrls, SearchOptions
from otterwiki_semantic.core.settings import Settings
from otterwiki_semantic.daemon.engine import IndexEngine
from tests.support.attachments import pdf, word
from tests.support.engines import opened, wait_until_equal
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
    return Settings(make_repository(tmp_path / "repository", PAGES), tmp_path / "index", sync_interval=3600)


@pytest.fixture
def start(settings: Settings) -> Iterator[Start]:
    """Restarts the index with some settings, and waits until it equals HEAD."""
    made: list[IndexEngine] = []

    def restart(**changes: Any) -> IndexEngine:
        close()
        made.append(opened(replace(settings, **changes)))
        return made[0]

    def close() -> None:
        while made:
            made.pop().close()

    yield restart
    close()


def best(index: IndexEngine, query: str, **options: Any) -> Hit:
    return index.search([query], SearchOptions(n=1, **options), urls=PageUrls("/"))[0].results[0]


def test_a_passage_of_a_file_names_its_page_and_links_to_it(start: Start) -> None:
    index = start()
    hit = best(index, "how long is the notice period to terminate the lease")
    assert (hit.path, hit.title, hit.kind, hit.attached_to) == ("house/Contract.pdf", "Contract.pdf", "pdf", "house")
    assert (hit.section, hit.page_number, hit.url) == ("Termination", 2, "/house/Contract.pdf#page=2")
    assert hit.breadcrumb == "Contract.pdf > Termination"


def follow(index: IndexEngine, settings: Settings, files: dict[str, str | bytes | None]) -> None:
    commit(settings.repository, files)
    index.notify()
    wait_until_equal(index)


def found(index: IndexEngine, phrase: str, **options: Any) -> set[str]:
    """Return the paths of what has a phrase."""
    hits = index.search([f'"{phrase}"'], SearchOptions(n=20, max_chunks_per_page=1, **options))[0].results
    return {path for hit in hits for path in (hit.path, *hit.also_on)}


def test_only_files_in_a_folder_named_as_a_page_are_indexed(start: Start) -> None:
    paths = {page.path for page in start().pages(PageListRequest()).pages}
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
