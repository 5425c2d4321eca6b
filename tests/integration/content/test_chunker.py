from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking.chunker import count_words
from otterwiki_semantic.content.chunking.profiles import Profile
from otterwiki_semantic.content.markdown.parser import parse
from otterwiki_semantic.core.records import Chunk
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chunks import PROFILE, body, chunks_of, is_subsequence, new_text, page_words, sentences
from tests.support.markdown_strategies import PAGES, RAW, WORDS


@given(source=PAGES | RAW)
def test_every_word_stands_in_a_chunk_in_order(model: BundledModel, source: str) -> None:
    """The words of all chunks, prefixes included, contain those of the page in order, but for words no window can hold."""
    chunks = chunks_of(source, model)
    found = [word for chunk in chunks for word in (*_prefix_words(chunk), *new_text(chunk).split())]
    wanted = [word for word in page_words(parse(source)) if len(word) < 50]
    assert is_subsequence(wanted, found)


def test_a_heading_that_comes_again_at_once_is_kept(model: BundledModel) -> None:
    (chunk,) = chunks_of("# A\n\n## B\n\n## B\n\ntext\n", model)
    assert chunk.text.split("] ", 1)[1].split() == ["B", "text"]
    (chunk,) = chunks_of("# A\n\n## B\n\n# A\n\n## B\n\ntext\n", model)
    assert chunk.text.split("] ", 1)[1].split() == ["A", "B", "text"]


def _prefix_words(chunk: Chunk) -> list[str]:
    return chunk.text[: chunk.prefix_length].strip()[1:-1].split()


@given(source=PAGES)
def test_the_new_text_of_the_chunks_is_the_page(model: BundledModel, source: str) -> None:
    """Without prefixes and overlaps the chunks are the page, but for the headings that prefixes show."""
    found = [word for chunk in chunks_of(source, model) for word in new_text(chunk).split()]
    document = parse(source)
    assert is_subsequence(found, page_words(document))
    text_words = [word for s in document.sections for block in s.blocks for line in block.lines for word in line.text.split()]
    assert is_subsequence(text_words, found)


@given(source=PAGES | RAW)
def test_no_chunk_is_empty_or_larger_than_the_window(model: BundledModel, source: str) -> None:
    chunks = chunks_of(source, model)
    assert all(body(chunk).strip() for chunk in chunks)
    assert all(tokens <= PROFILE.window for tokens in model.count_tokens([chunk.text for chunk in chunks]))


@given(source=PAGES)
def test_the_same_page_gives_the_same_chunks(model: BundledModel, source: str) -> None:
    assert chunks_of(source, model) == chunks_of(source, model)


@given(title=st.lists(WORDS, max_size=400).map(" ".join), heading=st.lists(WORDS, min_size=1, max_size=400).map(" ".join))
def test_a_long_heading_path_gives_way_and_loses_no_word(model: BundledModel, title: str, heading: str) -> None:
    chunks = chunks_of(f"# {heading}\n\n{sentences(30)}", model, title)
    assert all(tokens <= PROFILE.window for tokens in model.count_tokens([chunk.text for chunk in chunks]))
    shown = " ".join(chunk.text for chunk in chunks).split()
    assert all(any(word in found for found in shown) for word in heading.split())


@pytest.mark.parametrize("profile", [Profile("small", window=64, target=40, least=10, overlap=8), PROFILE])
@given(source=PAGES)
def test_every_profile_keeps_its_window(model: BundledModel, profile: Profile, source: str) -> None:
    chunks = chunks_of(source, model, profile=profile)
    assert all(tokens <= profile.window for tokens in model.count_tokens([chunk.text for chunk in chunks]))


def test_a_section_ends_a_chunk(model: BundledModel) -> None:
    chunks = chunks_of(f"## First\n\n{sentences(8, 'alpha')}\n\n## Second\n\n{sentences(8, 'beta')}\n", model)
    assert [chunk.section for chunk in chunks] == ["First", "Second"]
    assert "Beta" not in chunks[0].text
    assert "Alpha" not in chunks[1].text


def test_a_stub_merges_with_the_next_section_and_keeps_its_heading(model: BundledModel) -> None:
    chunks = chunks_of(f"## Stub\n\nA few words.\n\n### Below\n\n{sentences(8)}\n\n## Other\n\n{sentences(8)}\n", model)
    assert [chunk.headings for chunk in chunks] == [("Stub", "Below"), ("Other",)]
    assert "Below" in body(chunks[0])
    assert chunks[0].text.startswith("[Title > Stub] A few words.")


def test_a_stub_does_not_merge_with_a_higher_section(model: BundledModel) -> None:
    source = f"## A\n\n{sentences(8)}\n\n### Stub\n\nA few words.\n\n## B\n\n{sentences(8)}\n"
    assert [chunk.headings for chunk in chunks_of(source, model)] == [("A", "Stub"), ("B",)]


def test_a_trailing_stub_merges_backwards(model: BundledModel) -> None:
    chunks = chunks_of(f"## Long\n\n{sentences(8)}\n\n## Stub\n\nA few words.\n", model)
    assert [chunk.headings for chunk in chunks] == [("Long", "Stub")]
    assert body(chunks[0]).endswith("Stub\n\nA few words.")


def test_an_empty_heading_is_shown_by_the_path_of_the_one_below(model: BundledModel) -> None:
    (chunk,) = chunks_of(f"## Setup\n\n### Linux\n\n{sentences(6)}\n", model)
    assert chunk.text.startswith("[Title > Setup > Linux] Word")
    assert chunk.headings == ("Setup", "Linux")
    assert chunk.anchor == "linux"


def test_a_page_of_one_heading_is_one_chunk(model: BundledModel) -> None:
    (chunk,) = chunks_of("# Only this\n", model, title="Only this")
    assert chunk.text == "[Only this] Only this"


def test_a_page_without_words_has_no_chunk(model: BundledModel) -> None:
    assert chunks_of("", model) == ()
    assert chunks_of("---\ntitle: x\n---\n\n", model) == ()


def test_paragraphs_accumulate_to_about_the_target(model: BundledModel) -> None:
    chunks = chunks_of("## S\n\n" + "\n\n".join(sentences(3) for _ in range(20)), model)
    assert len(chunks) > 3
    assert all(90 <= count_words(body(chunk)) <= 160 for chunk in chunks[:-1])


def test_chunks_of_one_section_overlap_by_about_35_words(model: BundledModel) -> None:
    chunks = chunks_of(f"## S\n\n{sentences(60)}", model)
    for before, following in pairwise(chunks):
        overlap = body(following)[: following.overlap_length]
        assert 20 <= count_words(overlap) <= 40
        assert body(before).endswith(overlap)


def test_code_is_divided_only_between_lines(model: BundledModel) -> None:
    lines = [f"call_number_{i}(argument, other_argument, third_argument)" for i in range(80)]
    chunks = chunks_of("## S\n\n```\n" + "\n".join(lines) + "\n```\n", model)
    assert len(chunks) > 2
    assert {line for chunk in chunks for line in body(chunk).split("\n")} == set(lines)


def test_a_word_larger_than_the_window_is_divided(model: BundledModel) -> None:
    word = "漢字" * 1000
    chunks = chunks_of(word, model)
    assert "".join(new_text(chunk) for chunk in chunks).replace(" ", "") == word


def test_an_endless_run_of_letters_makes_chunks_of_bounded_size(model: BundledModel) -> None:
    chunks = chunks_of("x" * 100_000, model)
    assert max(len(chunk.text) for chunk in chunks) < 15_000
    assert sum(len(new_text(chunk)) for chunk in chunks) == 100_000


def test_chunks_know_their_lines(model: BundledModel) -> None:
    source = "# T\n\n" + "\n".join(f"Line {i} is a sentence of several words." for i in range(100)) + "\n"
    lines = source.split("\n")
    for chunk in chunks_of(source, model):
        first = new_text(chunk).strip().split(".")[0]
        assert any(first in line for line in lines[chunk.start_line - 1 : chunk.end_line])
    assert chunks_of(source, model)[-1].end_line == 102


def test_links_do_not_count(model: BundledModel) -> None:
    (chunk,) = chunks_of("See [the manual](https://example.org/a/very/long/target) and ![a map](map.png).", model)
    assert chunk.text == "[Title] See the manual and a map."


def test_a_heading_as_long_as_a_text_is_named_in_short_and_kept_in_full(model: BundledModel) -> None:
    heading = " ".join(f"giraffe{i}" for i in range(2_000))
    chunks = chunks_of(f"# {heading}\n\ntext\n", model)
    assert max(len(part) for chunk in chunks for part in (chunk.section, *chunk.section_path, *chunk.headings)) <= 301
    assert is_subsequence(heading.split(), " ".join(new_text(chunk) for chunk in chunks).split())


@pytest.mark.parametrize("space", ["\u00a0", "\t", "\u3000", "\u2009", "\x1c"])
def test_words_between_odd_spaces_stay_whole(model: BundledModel, space: str) -> None:
    words = [f"word{number}word" for number in range(200)]
    shown = {word for chunk in chunks_of(space.join(words), model) for word in chunk.text.split()}
    assert [word for word in words if word not in shown] == []
