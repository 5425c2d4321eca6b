"""The profile `minilm`: every word of a page is in a chunk that fits the model's window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given

from otterwiki_semantic.content.chunking import ByteCounter, chunk_document, count_words
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.chunk_profiles import PROFILES, Profile
from otterwiki_semantic.core.records import Chunk, ChunkSection, UnitKind
from tests.support.chunks import body, chunks_of, is_subsequence, new_text, page_words, sentences, shown_path
from tests.support.markdown_strategies import PAGES, RAW


@given(source=PAGES | RAW)
def test_chunks_have_every_word_in_order_name_the_units_of_their_new_text_and_fit(source: str) -> None:
    """The words of all chunks, prefixes included, contain those of the page in order, but for words no window can hold."""
    chunks = chunks_of(source)
    found = [word for chunk in chunks for word in (*shown_path(chunk).split(), *new_text(chunk).split())]
    wanted = [word for word in page_words(parse_markdown(source)) if len(word) < 50]
    assert is_subsequence(wanted, found)
    for chunk in chunks:
        place = chunk.prefix_length + chunk.overlap_length
        for unit in chunk.units:
            assert not chunk.text[place : unit.start].strip()
            assert chunk.text[unit.start : unit.end].strip() == chunk.text[unit.start : unit.end] != ""
            assert chunk.start_line <= unit.start_line <= unit.end_line <= chunk.end_line
            place = unit.end
        assert not chunk.text[place:].strip()
        assert {unit.section for unit in chunk.units} <= set(range(len(chunk.sections)))
        assert ChunkSection(chunk.section_path, chunk.anchor) in chunk.sections
    small = Profile("small", window=64, target=40, min_size=10, overlap=8)  # joining segments adds tokens
    chunks = chunks_of(source, profile=small, counter=ByteCounter())
    assert all(new_text(chunk).strip() for chunk in chunks)
    assert all(len(chunk.text.encode()) <= small.window for chunk in chunks)


def test_a_heading_repeated_at_once_is_kept() -> None:
    (chunk,) = chunks_of("# A\n\n## B\n\n## B\n\ntext\n")
    assert chunk.text.split("] ", 1)[1].split() == ["B", "text"]
    (chunk,) = chunks_of("# A\n\n## B\n\n# A\n\n## B\n\ntext\n")
    assert chunk.text.split("] ", 1)[1].split() == ["A", "B", "text"]


@given(source=PAGES)
def test_the_new_text_of_the_chunks_is_the_page(source: str) -> None:
    """Without prefixes and overlaps the chunks are the page, but for the headings that prefixes show."""
    found = [word for chunk in chunks_of(source) for word in new_text(chunk).split()]
    document = parse_markdown(source)
    assert is_subsequence(found, page_words(document))
    text_words = [word for s in document.sections for block in s.blocks for line in block.lines for word in line.text.split()]
    assert is_subsequence(text_words, found)


def test_nothing_is_repeated_where_the_window_has_no_room_for_it() -> None:
    source = "One two three four five six.\n\nSeven eight. Nine ten. Eleven twelve thirteen.\n"
    profile = Profile("small", window=64, target=40, min_size=1, overlap=8)
    assert [body(chunk) for chunk in chunks_of(source, profile=profile, counter=ByteCounter())] == source.strip().split("\n\n")


def test_a_section_ends_a_chunk() -> None:
    chunks = chunks_of(f"## First\n\n{sentences(8, 'alpha')}\n\n## Second\n\n{sentences(8, 'beta')}\n")
    assert [chunk.section for chunk in chunks] == ["First", "Second"]
    assert "Beta" not in chunks[0].text
    assert "Alpha" not in chunks[1].text


def test_a_stub_merges_with_the_next_section_which_names_the_chunk() -> None:
    chunks = chunks_of(f"## Stub\n\nA few words.\n\n### Below\n\n{sentences(8)}\n\n## Other\n\n{sentences(8)}\n")
    assert [chunk.headings for chunk in chunks] == [("Stub", "Below"), ("Other",)]
    assert "Below" in body(chunks[0])
    assert chunks[0].text.startswith("[Title > Stub > Below] A few words.")
    assert (chunks[0].section, chunks[0].section_path, chunks[0].anchor) == ("Below", ("Stub", "Below"), "below")
    assert chunks[0].sections == (ChunkSection(("Stub",), "stub"), ChunkSection(("Stub", "Below"), "below"))


def test_the_heading_of_a_stub_that_the_path_does_not_show_is_kept() -> None:
    (chunk,) = chunks_of(f"## Stub\n\nA few words.\n\n## Next\n\n{sentences(8)}\n")
    assert chunk.text.startswith("[Title > Next] Stub\n\nA few words.\n\nNext\n\nWord")


def test_a_stub_does_not_merge_with_a_section_before_it_or_a_higher_one() -> None:
    source = f"## A\n\n{sentences(8)}\n\n### Stub\n\nA few words.\n\n## B\n\n{sentences(8)}\n\n## End\n\nA few words."
    assert [chunk.headings for chunk in chunks_of(source)] == [("A",), ("Stub",), ("B",), ("End",)]


def test_a_short_end_of_a_section_is_merged_with_its_beginning() -> None:
    (chunk,) = chunks_of(f"## S\n\n{sentences(15)}\n\nA few more words.")
    assert chunk.text.endswith("here.\n\nA few more words.")


def block_of(kind: str, rows: int) -> str:
    """Return a block with rows of eight words."""
    words = "this row has eight words of its own"
    match kind:
        case "table":
            return "| first | second |\n|---|---|\n" + "\n".join(f"| {n} | {words} |" for n in range(rows))
        case "list":
            return "\n".join(f"- {words}" for _ in range(rows))
    return "```\n" + "\n".join(words for _ in range(rows)) + "\n```"


@pytest.mark.parametrize("kind", ["table", "list", "code"])
@pytest.mark.parametrize("before", range(1, 16))
def test_a_block_that_fits_a_chunk_is_not_divided_and_stands_with_what_announces_it(kind: str, before: int) -> None:
    chunks = chunks_of(f"## S\n\n{sentences(before)} These are all of them:\n\n{block_of(kind, 14)}\n\n{sentences(3)}")
    (with_block,) = (chunk for chunk in chunks if "row" in new_text(chunk))
    assert new_text(with_block).count("row") == 14
    assert "These are all of them:\n\n" in body(with_block)


def test_a_stub_exceeds_the_target_rather_than_standing_alone() -> None:
    (chunk,) = chunks_of(f"## S\n\n{sentences(3)}\n\n{block_of('code', 15)}")
    assert count_words(body(chunk)) == 153
    (chunk,) = chunks_of(f"## S\n\n{sentences(3)}\n\n{block_of('code', 18)}")
    assert count_words(body(chunk)) == 177
    assert len(chunks_of(f"## S\n\n{sentences(6)}\n\n{block_of('code', 18)}")) == 2


@pytest.mark.parametrize(("kind", "repeated"), [("table", "first | second"), ("list", "These are all of them:")])
def test_later_parts_of_a_block_repeat_its_beginning(kind: str, repeated: str) -> None:
    chunks = chunks_of(f"## S\n\nThese are all of them:\n\n{block_of(kind, 60)}")
    assert len(chunks) > 2
    for chunk in chunks[1:]:
        assert body(chunk)[: chunk.overlap_length] == repeated
        assert chunk.start_line > chunks[0].end_line
        assert {unit.kind for unit in chunk.units} == {UnitKind.ROW if kind == "table" else UnitKind.ITEM}
    assert sum(new_text(chunk).count("row") for chunk in chunks) == 60


def units_of(chunk: Chunk) -> list[tuple[str, str, int]]:
    return [(unit.kind, chunk.text[unit.start : unit.end], unit.start_line) for unit in chunk.units]


def test_every_part_of_a_chunk_knows_where_it_stands() -> None:
    source = """\
## Ports

All of them. See also
the manual:

| port | used by |
|---|---|
| 80 | the web. All of it |

- One. Two.
  Three.
  - nested

### Code

```
first

  second
```
"""
    (chunk,) = chunks_of(source)
    assert units_of(chunk) == [
        ("sentence", "All of them.", 3),
        ("sentence", "See also the manual:", 3),
        ("header", "port | used by", 6),
        ("row", "80 | the web. All of it", 8),
        ("item", "- One. Two.\n  Three.", 10),
        ("item", "- nested", 12),
        ("heading", "Code", 14),
        ("code", "first", 17),
        ("code", "second", 19),
    ]
    assert [chunk.sections[unit.section].heading for unit in chunk.units] == ["Ports"] * 6 + ["Code"] * 3
    assert [(unit.start_line, unit.end_line) for unit in chunk.units][1:5] == [(3, 4), (6, 6), (8, 8), (10, 11)]
    assert chunk.sections == (ChunkSection(("Ports",), "ports"), ChunkSection(("Ports", "Code"), "code"))


def test_a_long_item_is_several_units() -> None:
    (chunk,) = chunks_of(f"1. {sentences(5)}\n2. {sentences(8)}")
    texts = [text for kind, text, _ in units_of(chunk) if kind == "item"]
    assert [count_words(text) for text in texts] == [56, 12, *[11] * 7]
    assert texts[1].startswith("2. Word number 0")


def test_a_page_of_one_heading_is_one_chunk() -> None:
    (chunk,) = chunks_of("# Only this\n", title="Only this")
    assert chunk.text == "[Only this] Only this"


def test_a_page_without_words_has_no_chunk() -> None:
    assert chunks_of("") == ()
    assert chunks_of("---\ntitle: x\n---\n\n") == ()


def test_chunks_of_one_section_overlap_by_about_35_words() -> None:
    for before, following in pairwise(chunks_of(f"## S\n\n{sentences(60)}")):
        overlap = body(following)[: following.overlap_length]
        assert 20 <= count_words(overlap) <= 40
        assert body(before).endswith(overlap)


def test_a_heading_as_long_as_a_text_is_cut_in_names_and_kept_in_full() -> None:
    heading = " ".join(f"giraffe{i}" for i in range(2_000))
    chunks = chunks_of(f"# {heading}\n\ntext\n")
    assert max(len(part) for chunk in chunks for part in (chunk.section, *chunk.section_path, *chunk.headings)) <= 301
    assert is_subsequence(heading.split(), " ".join(new_text(chunk) for chunk in chunks).split())


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(
    "part", ["## Heading {}\n\nFew words.\n\n", "# {}\n\n", "###### {}\n\nx\n\n## {}\n\n", "A sentence {}. ", "a\n\nb\n\n"]
)
def test_the_work_grows_linearly_with_the_page(name: str, part: str) -> None:
    assert work(part, 400, PROFILES[name]) < 2.3 * work(part, 200, PROFILES[name])


class _Counted(ByteCounter):
    """Notes how many characters were counted, and in how many texts."""

    def __init__(self) -> None:
        self.work = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.work += len(texts) + sum(map(len, texts))
        return super().count_tokens(texts)


def work(part: str, count: int, profile: Profile) -> int:
    counter = _Counted()
    chunk_document(
        parse_markdown("".join(part.replace("{}", str(number)) for number in range(1000, 1000 + count))), "T", counter, profile
    )
    return counter.work
