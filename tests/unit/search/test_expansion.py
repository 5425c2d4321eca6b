from __future__ import annotations

from dataclasses import replace

from otterwiki_semantic.core.records.search import Hit
from otterwiki_semantic.search.expansion import join_neighbours

HIT = Hit(
    name="p",
    path="p",
    title="P",
    category=None,
    tags=(),
    snippet="",
    prefix_length=4,
    overlap_length=0,
    distance=0.1,
    section="S",
    section_path=("S",),
    headings=("S",),
    anchor="s",
    start_line=1,
    end_line=1,
    chunk_index=0,
    total_chunks=9,
    page_word_count=100,
    text="",
    text_start_line=1,
    text_end_line=1,
)


def hit(index: int, body: str, *, overlap: int = 0, path: str = "p", section: str = "S") -> Hit:
    snippet = f"[P] {body}"
    return replace(
        HIT,
        path=path,
        chunk_index=index,
        snippet=snippet,
        text=snippet,
        overlap_length=overlap,
        section_path=(section,),
        start_line=10 * index,
        end_line=10 * index + 9,
        text_start_line=10 * index,
        text_end_line=10 * index + 9,
    )


def test_a_neighbour_is_joined_without_its_overlap() -> None:
    first, second = hit(1, "One. Two."), hit(2, "Two. Three.", overlap=4)
    (joined,) = join_neighbours([first], [first, second])
    assert joined.text == "[P] One. Two. Three."
    assert joined.snippet == first.snippet
    assert (joined.text_start_line, joined.text_end_line) == (10, 29)


def test_a_neighbour_before_is_joined_in_front() -> None:
    first, second = hit(1, "One. Two."), hit(2, "Two. Three.", overlap=4)
    (joined,) = join_neighbours([second], [second, first])
    assert joined.text == "[P] One. Two. Three."


def test_a_neighbour_of_another_section_brings_its_heading_path() -> None:
    first, second = hit(1, "One."), replace(hit(2, "Two.", section="T"), headings=("T",))
    (joined,) = join_neighbours([first], [first, second])
    assert joined.text == "[P] One.\n\n[P] Two."
    assert joined.headings == ("S", "T")
    assert joined.section == "S"


def test_a_result_is_not_joined_to_another_one() -> None:
    first, second = hit(1, "One."), hit(2, "Two.")
    assert join_neighbours([first, second], [first, second]) == [first, second]


def test_what_is_no_neighbour_stays_apart() -> None:
    first = hit(1, "One.")
    assert join_neighbours([first], [first, hit(3, "Three."), hit(2, "Two.", path="q")]) == [first]


def test_at_most_three_chunks_make_a_text() -> None:
    hits = [hit(index, f"Number {index}.") for index in (4, 5, 3, 6, 2)]
    (joined,) = join_neighbours(hits[:1], hits)
    assert joined.text == "[P] Number 3.\n\nNumber 4.\n\nNumber 5."
