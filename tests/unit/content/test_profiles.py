"""What each chunk profile makes of a page. What holds for `minilm` alone stands in `test_chunker`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from otterwiki_semantic.content.chunking import count_words
from otterwiki_semantic.core.chunk_profiles import AUTO, PROFILES, Profile, profile_named
from otterwiki_semantic.core.errors import ConfigError
from tests.support.chunks import body, chunks_of, new_text, sentences

LONG, SECTIONS, HEADING2, FIXED = (profile_named(name, 2046) for name in ("long", "sections", "heading2", "fixed"))


# Which profile


@pytest.mark.parametrize(("window", "name"), [(510, "minilm"), (999, "minilm"), (1000, "long"), (8190, "long")])
def test_the_profile_follows_the_model(window: int, name: str) -> None:
    assert profile_named(AUTO, window) == replace(PROFILES[name], window=window)


def test_the_error_for_an_unknown_profile_lists_the_others() -> None:
    with pytest.raises(ConfigError, match="no chunk profile 'short'; there are: auto, minilm, long, sections, heading2, fixed"):
        profile_named("short", 254)


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [
        ("minilm", "3/minilm/510/150/50/35/0.2"),
        ("long", "3/long/510/500/150/100/0.2/whole_page=600/repeats_paragraphs=True"),
        ("sections", "3/sections/510/1000/100/200/0.2/unit=characters/max_size=1500"),
        (
            "heading2",
            "3/heading2/510/2048/300/200/0.2/unit=characters/boundaries=(2, 3)/whole_page=1000/max_size=6000/alone_level=2",
        ),
        ("fixed", "3/fixed/510/1000/100/200/0.2/unit=characters/boundaries=()"),
    ],
)
def test_the_fingerprints_are_those_of_earlier_versions(name: str, fingerprint: str) -> None:
    """Another fingerprint would build every index with this profile again."""
    assert profile_named(name, 510).fingerprint == fingerprint


# Sizes


def test_sizes_replace_those_of_a_profile() -> None:
    profile = profile_named("minilm: target=200, overlap=40,min=0,max=300,page=250", 510)
    assert profile == Profile("minilm", 510, target=200, overlap=40, min_size=0, max_size=300, whole_page=250)
    assert profile.sizes == {"target": 200, "overlap": 40, "min": 0, "max": 300, "page": 250}


def test_a_maximum_that_is_not_given_follows_the_target() -> None:
    assert profile_named("sections:target=2000", 2046).max_size == 2000
    assert profile_named("sections:target=1200", 2046).max_size == 1500
    assert profile_named("fixed:target=2000", 2046).max_size == 0, "it has none"


def test_other_sizes_make_another_index() -> None:
    values = ("sections:target=1001", "sections:max=1501", "sections:overlap=201", "sections:min=101", "sections:page=1")
    profiles = [profile_named(value, 510) for value in ("sections", *values)]
    assert len({profile.fingerprint for profile in profiles}) == len(profiles)
    assert profile_named("sections:target=1000,overlap=200", 510).fingerprint == profiles[0].fingerprint


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ("sections:size=1000", "'size' is no size; the sizes are target, overlap, min, max, page, as in sections:target=1000"),
        ("sections:", "'' is no size; the sizes are"),
        ("sections:target=900,target=1000", "'target' is given twice"),
        ("sections:target=big", "target is 'big'; allowed: a whole number of characters, 100 to 100000"),
        ("sections:overlap=-1", "overlap is '-1'; allowed: a whole number of characters, 0 to 100000"),
        ("sections:target=99", "target is '99'; allowed: a whole number of characters, 100 to"),
        ("long:target=19", "target is '19'; allowed: a whole number of words, 20 to"),
        ("sections:overlap=1000", "overlap is 1000 with a target of 1000; allowed: less than the target"),
        ("sections:target=150", "overlap is 200 with a target of 150; allowed: less than the target"),
        ("sections:max=900", "max is 900 with a target of 1000; allowed: at least the target"),
        ("sections:min=1001", "min is 1001 with a target of 1000; allowed: at most the target"),
        ("auto:target=1000", "auto takes no sizes, because it stands for several profiles; name one of: minilm, long"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(value: str, part: str) -> None:
    with pytest.raises(ConfigError) as refused:
        profile_named(value, 510)
    assert part in str(refused.value)


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


# Heading 2


def test_heading2_keeps_a_section_with_its_subsections() -> None:
    source = "".join(f"## Part {i}\n\n{sentences(8)}\n\n### Detail {i}\n\n{sentences(8)}\n\n" for i in range(3))
    chunks = chunks_of(source, profile=HEADING2)
    assert [chunk.headings for chunk in chunks] == [(f"Part {i}", f"Detail {i}") for i in range(3)]
    assert [chunk.anchor for chunk in chunks] == ["part-0", "part-1", "part-2"]


def test_heading2_divides_a_large_section_at_its_subsections() -> None:
    details = "".join(f"### Detail {i}\n\n{sentences(25)}\n\n#### Deep {i}\n\n{sentences(25)}\n\n" for i in range(3))
    chunks = chunks_of(f"## Part\n\n{sentences(25)}\n\n{details}## Other\n\n{sentences(25)}", profile=HEADING2)
    deep = [(f"Detail {i}", f"Deep {i}") for i in range(3)]
    assert [chunk.headings for chunk in chunks] == [("Part",), *deep, ("Other",)]


def test_heading2_divides_by_size_at_last() -> None:
    chunks = chunks_of(f"## Part\n\n### Detail\n\n{sentences(140)}", profile=HEADING2)
    assert len(chunks) > 2
    assert all(1800 <= len(body(chunk)) <= 2048 for chunk in chunks[:-1])
    assert all(150 <= chunk.overlap_length <= 200 for chunk in chunks[1:])
    assert {chunk.anchor for chunk in chunks} == {"detail"}


def test_heading2_keeps_a_page_without_headings_whole() -> None:
    (chunk,) = chunks_of(sentences(105), profile=HEADING2)
    assert 5500 < len(body(chunk)) <= 6000
    assert len(chunks_of(sentences(120), profile=HEADING2)) == 4, "it has more than 6,000 characters"
    assert len(chunks_of(sentences(105), profile=replace(HEADING2, window=510))) > 2, "the window does not hold it"


def test_heading2_merges_no_second_level_section_however_short() -> None:
    source = f"# Page\n\nA few words.\n\n## Stub\n\nA few words.\n\n## Long\n\n{sentences(30)}\n\n## End\n\nA few words."
    assert [chunk.section for chunk in chunks_of(source, profile=HEADING2)] == ["Page", "Stub", "Long", "End"]
    assert [chunk.headings for chunk in chunks_of(f"# Page\n\n## Long\n\n{sentences(30)}", profile=HEADING2)] == [
        ("Page", "Long")
    ]


def test_heading2_keeps_a_page_of_less_than_1000_characters_whole() -> None:
    source = "".join(f"## Part {number}\n\n{sentences(5)}\n\n" for number in range(3))
    (chunk,) = chunks_of(source, profile=HEADING2)
    assert chunk.headings == ("Part 0", "Part 1", "Part 2")
    assert len(chunks_of(source + sentences(5), profile=HEADING2)) == 3


# Sections


def test_sections_end_at_every_heading() -> None:
    source = "".join(f"{'#' * level} Part {level}\n\n{sentences(4)}\n\n" for level in range(1, 7))
    assert [chunk.headings for chunk in chunks_of(source, profile=SECTIONS)] == [(f"Part {level}",) for level in range(1, 7)]


def test_a_section_of_1500_characters_is_not_divided() -> None:
    (chunk,) = chunks_of(f"## Part\n\n{sentences(26)}", profile=SECTIONS)
    assert 1400 < len(body(chunk)) <= 1500
    chunks = chunks_of(f"## Part\n\n{sentences(60)}", profile=SECTIONS)
    assert len(chunks) > 3
    assert all(850 <= len(body(chunk)) <= 1000 for chunk in chunks[:-1])
    assert all(150 <= chunk.overlap_length <= 200 for chunk in chunks[1:])


@pytest.mark.parametrize("source", [sentences(50), sentences(52), " ".join("X" * size + "." for size in range(300, 1000, 50))])
def test_no_chunk_exceeds_the_maximum(source: str) -> None:
    profile = replace(SECTIONS, overlap=600, min_size=500, max_size=1000)
    unlimited = chunks_of(source, profile=replace(profile, max_size=0))
    assert max(len(body(chunk)) for chunk in unlimited) > 1000, "an overlap or a merged end makes one larger"
    assert all(len(body(chunk)) <= 1000 for chunk in chunks_of(source, profile=profile))


def test_nothing_is_repeated_without_an_overlap() -> None:
    for profile in (replace(LONG, overlap=0), replace(FIXED, overlap=0)):
        chunks = chunks_of(sentences(300), profile=profile)
        assert len(chunks) > 5
        assert not any(chunk.overlap_length for chunk in chunks)


# Fixed


def test_fixed_divides_by_size_alone() -> None:
    source = "".join(f"## Part {i}\n\n{sentences(5)}\n\n" for i in range(12))
    chunks = chunks_of(source, profile=FIXED)
    assert all(700 <= len(body(chunk)) <= 1000 for chunk in chunks[:-1])
    assert all(len(chunk.headings) > 1 for chunk in chunks[:-1])
    assert all(0 < chunk.overlap_length <= 200 for chunk in chunks[1:])


def test_fixed_names_the_section_that_most_of_a_chunk_is_of() -> None:
    source = "# Page\n\n" + "".join(f"## Part {i}\n\n{sentences(5, f'part{i}')}\n\n" for i in range(12))
    for chunk in chunks_of(source, profile=FIXED):
        counts = Counter(re.findall(r"Part(\d+)", new_text(chunk)))
        number = chunk.anchor.removeprefix("part-")
        assert counts[number] == max(counts.values())
        assert chunk.section_path == ("Page", f"Part {number}")


@pytest.mark.parametrize("separator", ["", " "])
def test_fixed_repeats_nothing_of_a_sentence_that_it_divides(separator: str) -> None:
    chunks = chunks_of(separator.join(f"word{number}" for number in range(1000)), profile=FIXED)
    assert len(chunks) > 5
    assert not any(chunk.overlap_length for chunk in chunks)
    assert separator == "" or all(body(chunk).startswith("word") for chunk in chunks)
