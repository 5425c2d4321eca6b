"""What each chunk profile makes of a page. What holds for `minilm` alone stands in `test_chunker`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.content.chunking.profiles import AUTO, PROFILES, profile_named
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.settings import CHUNKS
from tests.support.chunks import body, chunks_of, new_text, sentences

LONG, HEADING2, FIXED = (profile_named(name, 2046) for name in ("long", "heading2", "fixed"))


# Which profile


def test_the_settings_name_every_profile() -> None:
    assert set(CHUNKS) == {AUTO, *PROFILES}


@pytest.mark.parametrize(("window", "name"), [(510, "minilm"), (999, "minilm"), (1000, "long"), (8190, "long")])
def test_the_profile_follows_the_model(window: int, name: str) -> None:
    assert profile_named(AUTO, window) == replace(PROFILES[name], window=window)


def test_no_two_profiles_make_one_index() -> None:
    profiles = [profile_named(name, window) for name in PROFILES for window in (254, 510)]
    assert len({profile.fingerprint for profile in profiles}) == len(profiles)
    assert len({replace(profile, name="x").fingerprint for profile in profiles}) == len(profiles)


def test_the_error_for_an_unknown_profile_lists_the_others() -> None:
    with pytest.raises(ConfigError, match="no chunk profile 'short'; there are: auto, minilm, long, heading2, fixed"):
        profile_named("short", 254)


# Long


def test_long_keeps_a_page_of_less_than_600_words_whole() -> None:
    source = "".join(f"## Part {number}\n\n{sentences(8)}\n\n" for number in range(6))
    (chunk,) = chunks_of(source, profile=LONG)
    assert count_words(body(chunk)) > 500
    assert chunk.headings == tuple(f"Part {number}" for number in range(6))
    assert len(chunks_of(source, profile=replace(LONG, window=254))) > 2, "the window does not hold it"


def test_long_repeats_whole_paragraphs() -> None:
    paragraphs = [sentences(4, f"word{number}") for number in range(40)]
    chunks = chunks_of("## S\n\n" + "\n\n".join(paragraphs), profile=LONG)
    assert len(chunks) > 2
    assert all(400 <= count_words(body(chunk)) <= 500 for chunk in chunks[:-1])
    for chunk in chunks[1:]:
        repeated = body(chunk)[: chunk.overlap_length].split("\n\n")
        assert len(repeated) == 2
        assert set(repeated) < set(paragraphs)


def test_long_repeats_nothing_of_a_paragraph_that_is_too_long() -> None:
    chunks = chunks_of("## S\n\n" + "\n\n".join(sentences(30) for _ in range(5)), profile=LONG)
    assert len(chunks) == 5
    assert [chunk.overlap_length for chunk in chunks] == [0] * 5


def test_long_repeats_sentences_where_it_divides_a_paragraph() -> None:
    chunks = chunks_of(sentences(120), profile=LONG)
    assert len(chunks) > 2
    assert all(80 <= count_words(body(chunk)[: chunk.overlap_length]) <= 100 for chunk in chunks[1:])


# Heading 2


def test_heading2_keeps_a_section_with_its_subsections() -> None:
    source = "".join(f"## Part {i}\n\n{sentences(8)}\n\n### Detail {i}\n\n{sentences(8)}\n\n" for i in range(3))
    chunks = chunks_of(source, profile=HEADING2)
    assert [chunk.headings for chunk in chunks] == [(f"Part {i}", f"Detail {i}") for i in range(3)]
    assert [chunk.anchor for chunk in chunks] == ["part-0", "part-1", "part-2"]


def test_heading2_divides_a_large_section_at_its_subsections() -> None:
    details = "".join(f"### Detail {i}\n\n{sentences(12)}\n\n#### Deep {i}\n\n{sentences(12)}\n\n" for i in range(3))
    chunks = chunks_of(f"## Part\n\n{sentences(12)}\n\n{details}## Other\n\n{sentences(12)}", profile=HEADING2)
    deep = [(f"Detail {i}", f"Deep {i}") for i in range(3)]
    assert [chunk.headings for chunk in chunks] == [("Part",), *deep, ("Other",)]


def test_heading2_divides_by_size_at_last() -> None:
    chunks = chunks_of(f"## Part\n\n### Detail\n\n{sentences(100)}", profile=HEADING2)
    assert len(chunks) > 2
    assert all(1500 <= len(body(chunk)) <= 2000 for chunk in chunks[:-1])
    assert {chunk.anchor for chunk in chunks} == {"detail"}


def test_heading2_keeps_a_page_of_less_than_1000_characters_whole() -> None:
    source = "".join(f"## Part {i}\n\n{sentences(6)}\n\n" for i in range(3))
    (chunk,) = chunks_of(source, profile=HEADING2)
    assert 900 < len(body(chunk)) <= 1000
    assert len(chunks_of(source * 2, profile=HEADING2)) == 6


# Fixed


def test_fixed_divides_by_size_alone() -> None:
    source = "".join(f"## Part {i}\n\n{sentences(5)}\n\n" for i in range(12))
    chunks = chunks_of(source, profile=FIXED)
    assert all(700 <= len(body(chunk)) <= 1000 for chunk in chunks[:-1])
    assert all(len(chunk.headings) > 1 for chunk in chunks[:-1])
    assert all(0 < chunk.overlap_length <= 200 for chunk in chunks[1:])


def test_fixed_names_the_section_that_a_chunk_begins_in() -> None:
    source = "# Page\n\n" + "".join(f"## Part {i}\n\n{sentences(5)}\n\n" for i in range(12))
    lines = source.split("\n")
    for chunk in chunks_of(source, profile=FIXED)[1:]:
        heading = next(line for line in reversed(lines[: chunk.start_line]) if line.startswith("## "))
        following = next((line for line in lines[chunk.start_line - 1 :] if line.startswith("## ")), "")
        assert f"## {chunk.section}" in {heading, following if lines[chunk.start_line - 1] == following else heading}
        assert chunk.section_path == ("Page", chunk.section)
        assert chunk.anchor == chunk.section.lower().replace(" ", "-")


def test_fixed_joins_an_end_of_less_than_100_characters() -> None:
    for count in range(10, 40):
        last = chunks_of(sentences(count), profile=FIXED)[-1]
        assert len(new_text(last)) >= 100


@pytest.mark.parametrize("separator", ["", " "])
def test_fixed_repeats_200_characters_at_most(separator: str) -> None:
    chunks = chunks_of(separator.join(f"word{number}" for number in range(1000)), profile=FIXED)
    assert len(chunks) > 5
    assert all(150 <= chunk.overlap_length <= 200 for chunk in chunks[1:])
    assert separator == "" or all(body(chunk).startswith("word") for chunk in chunks)
