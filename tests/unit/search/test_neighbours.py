"""Joining a passage with its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from otterwiki_semantic.core.records import StoredChunk
from otterwiki_semantic.search.results import chunk_runs, context_around, joined_text
from tests.support.hits import CHUNK


def chunk(index: int, body: str, *, overlap: int = 0, path: str = "p", section: str = "S") -> StoredChunk:
    return replace(
        CHUNK,
        path=path,
        prefix_length=4,
        chunk_index=index,
        text=f"[P] {body}",
        overlap_length=overlap,
        section_path=(section,),
        start_line=10 * index,
        end_line=10 * index + 9,
    )


def test_a_neighbour_is_joined_without_its_overlap() -> None:
    first, second = chunk(1, "One. Two."), chunk(2, "Two. Three.", overlap=4)
    (run,) = chunk_runs([first], [first, second], set())
    assert run == [first, second]
    assert joined_text(run) == "[P] One. Two. Three."


def test_a_neighbour_before_is_joined_in_front() -> None:
    first, second = chunk(1, "One. Two."), chunk(2, "Two. Three.", overlap=4)
    (run,) = chunk_runs([second], [second, first], set())
    assert joined_text(run) == "[P] One. Two. Three."


def test_a_neighbour_of_another_section_brings_its_heading_path() -> None:
    first, second = chunk(1, "One."), chunk(2, "Two.", section="T")
    (run,) = chunk_runs([first], [first, second], set())
    assert joined_text(run) == "[P] One.\n\n[P] Two."


def test_a_result_is_not_joined_to_another_one() -> None:
    first, second = chunk(1, "One."), chunk(2, "Two.")
    assert chunk_runs([first, second], [first, second], set()) == [[first], [second]]


def test_what_is_no_neighbour_stays_apart() -> None:
    first = chunk(1, "One.")
    assert chunk_runs([first], [first, chunk(3, "Three."), chunk(2, "Two.", path="q")], set()) == [[first]]


def test_at_most_three_chunks_make_a_text() -> None:
    chunks = [chunk(index, f"Number {index}.") for index in (4, 5, 3, 6, 2)]
    (run,) = chunk_runs(chunks[:1], chunks, set())
    assert joined_text(run) == "[P] Number 3.\n\nNumber 4.\n\nNumber 5."


def test_the_context_is_what_stands_around_a_chunk() -> None:
    page = [chunk(index, f"Number {index}.") for index in range(4)]

    def read(path: str, first: int, last: int) -> Sequence[StoredChunk]:
        assert path == "p"
        return page[max(first, 0) : last + 1]

    assert context_around(page[1], 1, read) == ("[P] Number 0.", "[P] Number 2.")
    assert context_around(page[0], 2, read) == (None, "[P] Number 1.\n\nNumber 2.")
    assert context_around(page[1], 0, read) == (None, None)
