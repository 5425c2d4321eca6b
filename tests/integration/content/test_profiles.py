"""What each chunk profile makes of a page. What holds for `minilm` alone stands in `test_chunking`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking.chunker import BytesAsTokens, chunk_document, count_words
from otterwiki_semantic.content.chunking.profiles import AUTO, PROFILES, Profile, profile_named
from otterwiki_semantic.content.markdown.parser import parse
from otterwiki_semantic.core.errors import ConfigError
from otterwiki_semantic.core.records import Chunk, Document
from otterwiki_semantic.core.settings import CHUNKS
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chunks import body, chunks_of, is_subsequence, new_text, page_words, sentences
from tests.support.markdown_strategies import PAGES, RAW

LONG, HEADING2, FIXED = (profile_named(name, 2046) for name in ("long", "heading2", "fixed"))
every_profile = pytest.mark.parametrize("name", PROFILES)


def shrunk(profile: Profile, by: int) -> Profile:
    """Give a profile whose numbers are so small that generated pages are divided, too."""
    sizes = {name: getattr(profile, name) // by for name in ("window", "target", "least", "overlap", "whole_page")}
    return replace(profile, **sizes)


@every_profile
@settings(max_examples=80)
@given(source=PAGES | RAW, scale=st.sampled_from([1, 4]))
def test_every_profile_keeps_the_promises_of_chunks(model: BundledModel, name: str, source: str, scale: int) -> None:
    profile = shrunk(PROFILES[name], scale)
    document = parse(source)
    chunks = chunk_document(document, "Title", model, profile)
    assert chunks == chunk_document(document, "Title", model, profile)
    assert all(body(chunk).strip() for chunk in chunks)
    assert all(tokens <= profile.window for tokens in model.count_tokens([chunk.text for chunk in chunks]))
    found = [word for chunk in chunks for text in (shown_path(chunk), new_text(chunk)) for word in text.split()]
    assert is_subsequence([word for word in page_words(document) if len(word) < 50], found)
    assert all(stands_where_it_says(chunk, document) for chunk in chunks)
    assert all(repeats_the_end_of(before, following) for before, following in pairwise(chunks))


def shown_path(chunk: Chunk) -> str:
    return chunk.text[: chunk.prefix_length].strip()[1:-1]


def stands_where_it_says(chunk: Chunk, document: Document) -> bool:
    """Whether the section that a chunk names is there, and the chunk stands on lines of it."""
    named = [section for section in document.sections if section.anchor == chunk.anchor]
    return any(section.start_line <= chunk.end_line and chunk.start_line <= section.end_line for section in named)


def repeats_the_end_of(before: Chunk, following: Chunk) -> bool:
    """Whether a chunk's overlap is the end of the one before it, the headings that only its path shows included."""

    def letters(text: str) -> str:
        return "".join(character for character in text if not character.isspace() and character not in "[]>")

    repeated = letters(body(following)[: following.overlap_length])
    return letters(before.text).endswith(repeated)


@every_profile
@pytest.mark.parametrize(
    "part",
    ["## Heading {}\n\nA few words.\n\n", "# {}\n\n", "###### {}\n\nword\n\n## {}\n\n", "Sentence {} has its words. ", "a\n\n"],
)
def test_the_work_grows_as_the_page_does(name: str, part: str) -> None:
    assert work(part, 800, PROFILES[name]) < 2.3 * work(part, 400, PROFILES[name])


class _Counted(BytesAsTokens):
    """Notes how many characters were counted, and in how many texts."""

    def __init__(self) -> None:
        self.work = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.work += len(texts) + sum(map(len, texts))
        return super().count_tokens(texts)


def work(part: str, count: int, profile: Profile) -> int:
    counter = _Counted()
    chunk_document(
        parse("".join(part.replace("{}", str(number)) for number in range(1000, 1000 + count))), "T", counter, profile
    )
    return counter.work


# Which profile


def test_the_settings_name_every_profile() -> None:
    assert set(CHUNKS) == {AUTO, *PROFILES}


def test_the_bundled_model_is_indexed_as_ever(model: BundledModel) -> None:
    """Another fingerprint would build every index of the bundled model again."""
    for name in (AUTO, "minilm"):
        profile = profile_named(name, model.window - 2)
        assert profile == Profile()
        assert profile.fingerprint == "2/minilm/254/150/50/35/0.2"


@pytest.mark.parametrize(("window", "name"), [(510, "minilm"), (999, "minilm"), (1000, "long"), (8190, "long")])
def test_the_profile_follows_the_model(window: int, name: str) -> None:
    assert profile_named(AUTO, window) == replace(PROFILES[name], window=window)


def test_no_two_profiles_make_one_index() -> None:
    profiles = [profile_named(name, window) for name in PROFILES for window in (254, 510)]
    assert len({profile.fingerprint for profile in profiles}) == len(profiles)
    assert len({replace(profile, name="x").fingerprint for profile in profiles}) == len(profiles)


def test_an_unknown_profile_is_told_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match="no chunk profile 'short'; there are: auto, minilm, long, heading2, fixed"):
        profile_named("short", 254)


# Long


def test_long_keeps_a_page_of_less_than_600_words_whole(model: BundledModel) -> None:
    source = "".join(f"## Part {number}\n\n{sentences(8)}\n\n" for number in range(6))
    (chunk,) = chunks_of(source, model, profile=LONG)
    assert count_words(body(chunk)) > 500
    assert chunk.headings == tuple(f"Part {number}" for number in range(6))
    assert len(chunks_of(source, model, profile=replace(LONG, window=254))) > 2, "the window does not hold it"


def test_long_repeats_whole_paragraphs(model: BundledModel) -> None:
    paragraphs = [sentences(4, f"word{number}") for number in range(40)]
    chunks = chunks_of("## S\n\n" + "\n\n".join(paragraphs), model, profile=LONG)
    assert len(chunks) > 2
    assert all(400 <= count_words(body(chunk)) <= 500 for chunk in chunks[:-1])
    for chunk in chunks[1:]:
        repeated = body(chunk)[: chunk.overlap_length].split("\n\n")
        assert len(repeated) == 2
        assert set(repeated) < set(paragraphs)


def test_long_repeats_nothing_of_a_paragraph_that_is_too_long(model: BundledModel) -> None:
    chunks = chunks_of("## S\n\n" + "\n\n".join(sentences(30) for _ in range(5)), model, profile=LONG)
    assert len(chunks) == 5
    assert [chunk.overlap_length for chunk in chunks] == [0] * 5


def test_long_repeats_sentences_where_it_divides_a_paragraph(model: BundledModel) -> None:
    chunks = chunks_of(sentences(120), model, profile=LONG)
    assert len(chunks) > 2
    assert all(80 <= count_words(body(chunk)[: chunk.overlap_length]) <= 100 for chunk in chunks[1:])


# Heading 2


def test_heading2_keeps_a_section_with_its_subsections(model: BundledModel) -> None:
    source = "".join(f"## Part {i}\n\n{sentences(8)}\n\n### Detail {i}\n\n{sentences(8)}\n\n" for i in range(3))
    chunks = chunks_of(source, model, profile=HEADING2)
    assert [chunk.headings for chunk in chunks] == [(f"Part {i}", f"Detail {i}") for i in range(3)]
    assert [chunk.anchor for chunk in chunks] == ["part-0", "part-1", "part-2"]


def test_heading2_divides_a_large_section_at_its_subsections(model: BundledModel) -> None:
    details = "".join(f"### Detail {i}\n\n{sentences(12)}\n\n#### Deep {i}\n\n{sentences(12)}\n\n" for i in range(3))
    chunks = chunks_of(f"## Part\n\n{sentences(12)}\n\n{details}## Other\n\n{sentences(12)}", model, profile=HEADING2)
    deep = [(f"Detail {i}", f"Deep {i}") for i in range(3)]
    assert [chunk.headings for chunk in chunks] == [("Part",), *deep, ("Other",)]


def test_heading2_divides_by_size_at_last(model: BundledModel) -> None:
    chunks = chunks_of(f"## Part\n\n### Detail\n\n{sentences(100)}", model, profile=HEADING2)
    assert len(chunks) > 2
    assert all(1500 <= len(body(chunk)) <= 2000 for chunk in chunks[:-1])
    assert {chunk.anchor for chunk in chunks} == {"detail"}


def test_heading2_keeps_a_page_of_less_than_1000_characters_whole(model: BundledModel) -> None:
    source = "".join(f"## Part {i}\n\n{sentences(6)}\n\n" for i in range(3))
    (chunk,) = chunks_of(source, model, profile=HEADING2)
    assert 900 < len(body(chunk)) <= 1000
    assert len(chunks_of(source * 2, model, profile=HEADING2)) == 6


# Fixed


def test_fixed_divides_by_size_alone(model: BundledModel) -> None:
    source = "".join(f"## Part {i}\n\n{sentences(5)}\n\n" for i in range(12))
    chunks = chunks_of(source, model, profile=FIXED)
    assert all(700 <= len(body(chunk)) <= 1000 for chunk in chunks[:-1])
    assert all(len(chunk.headings) > 1 for chunk in chunks[:-1])
    assert all(0 < chunk.overlap_length <= 200 for chunk in chunks[1:])


def test_fixed_names_the_section_that_a_chunk_begins_in(model: BundledModel) -> None:
    source = "# Page\n\n" + "".join(f"## Part {i}\n\n{sentences(5)}\n\n" for i in range(12))
    lines = source.split("\n")
    for chunk in chunks_of(source, model, profile=FIXED)[1:]:
        heading = next(line for line in reversed(lines[: chunk.start_line]) if line.startswith("## "))
        following = next((line for line in lines[chunk.start_line - 1 :] if line.startswith("## ")), "")
        assert f"## {chunk.section}" in {heading, following if lines[chunk.start_line - 1] == following else heading}
        assert chunk.section_path == ("Page", chunk.section)
        assert chunk.anchor == chunk.section.lower().replace(" ", "-")


def test_fixed_joins_an_end_of_less_than_100_characters(model: BundledModel) -> None:
    for count in range(10, 40):
        last = chunks_of(sentences(count), model, profile=FIXED)[-1]
        assert len(new_text(last)) >= 100


@pytest.mark.parametrize("separator", ["", " "])
def test_fixed_repeats_200_characters_at_most(model: BundledModel, separator: str) -> None:
    chunks = chunks_of(separator.join(f"word{number}" for number in range(1000)), model, profile=FIXED)
    assert len(chunks) > 5
    assert all(150 <= chunk.overlap_length <= 200 for chunk in chunks[1:])
    assert separator == "" or all(body(chunk).startswith("word") for chunk in chunks)
