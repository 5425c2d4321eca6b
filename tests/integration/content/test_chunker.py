"""What holds for chunks whatever a real tokenizer makes of their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.content.chunking import chunk_document
from otterwiki_semantic.content.markdown.parser import parse_markdown
from otterwiki_semantic.core.chunk_profiles import AUTO, PROFILES, Profile, profile_named
from otterwiki_semantic.core.records import Chunk, Document, UnitKind
from otterwiki_semantic.embedding.local.bundled import BundledModel
from tests.support.chunks import MINILM, body, chunks_of, is_subsequence, new_text, page_words, sentences, shown_path
from tests.support.markdown_strategies import PAGES, RAW, WORDS


def shrunk(profile: Profile, by: int) -> Profile:
    """Return a profile whose sizes are small enough to divide generated pages."""
    sizes = {
        name: getattr(profile, name) // by for name in ("window", "target", "min_size", "overlap", "whole_page", "max_size")
    }
    return replace(profile, **sizes)


SIZES = ("minilm:min=0,overlap=0", "fixed:target=100,overlap=99,max=100", "heading2:page=9000")


@given(name=st.sampled_from([*PROFILES, *SIZES]), source=PAGES | RAW, scale=st.sampled_from([1, 4]))
def test_every_profile_keeps_the_promises_of_chunks(model: BundledModel, name: str, source: str, scale: int) -> None:
    profile = shrunk(profile_named(name, PROFILES[name.partition(":")[0]].window), 1 if name in SIZES else scale)
    document = parse_markdown(source)
    chunks = chunk_document(document, "Title", model, profile)
    assert chunks == chunk_document(document, "Title", model, profile)
    assert all(body(chunk).strip() for chunk in chunks)
    assert all(tokens <= profile.window for tokens in model.count_tokens([chunk.text for chunk in chunks]))
    found = [word for chunk in chunks for text in (shown_path(chunk), new_text(chunk)) for word in text.split()]
    assert is_subsequence([word for word in page_words(document) if len(word) < 50], found)
    assert all(stands_where_it_says(chunk, document) for chunk in chunks)
    assert all(repeats_whole_units_of(chunks[:number], chunk) for number, chunk in enumerate(chunks))
    assert not profile.max_size or all(len(body(chunk)) <= profile.max_size for chunk in chunks)


def stands_where_it_says(chunk: Chunk, document: Document) -> bool:
    """Whether the section that a chunk names is there, and the chunk stands on lines of it."""
    named = [section for section in document.sections if section.anchor == chunk.anchor]
    return any(section.start_line <= chunk.end_line and chunk.start_line <= section.end_line for section in named)


def repeats_whole_units_of(before: Sequence[Chunk], following: Chunk) -> bool:
    """Whether a chunk's overlap is the end of the one before it, from the beginning of a unit or heading on.

    The headings that only its path shows are included. Before a row or an item it may also be a single earlier unit.
    """
    repeated = letters(body(following)[: following.overlap_length])
    if not repeated:
        return True
    units = {letters(part.text[unit.start : unit.end]) for part in before for unit in part.units}
    headings = {letters(heading) for part in before for heading in part.headings}
    is_end = letters(before[-1].text).endswith(repeated) and any(map(repeated.startswith, units | headings))
    return is_end or (following.units[0].kind in {UnitKind.ROW, UnitKind.ITEM} and repeated in units)


def letters(text: str) -> str:
    return "".join(character for character in text if not character.isspace() and character not in "[]>")


def test_the_fingerprint_of_the_bundled_model_is_unchanged(model: BundledModel) -> None:
    """Another fingerprint would build every index of the bundled model again."""
    for name in (AUTO, "minilm"):
        profile = profile_named(name, model.window - 2)
        assert profile == Profile()
        assert profile.fingerprint == "3/minilm/254/150/50/35/0.2"


@given(title=st.lists(WORDS, max_size=400).map(" ".join), heading=st.lists(WORDS, min_size=1, max_size=400).map(" ".join))
def test_a_long_heading_path_is_shortened_and_loses_no_word(model: BundledModel, title: str, heading: str) -> None:
    chunks = chunks_of(f"# {heading}\n\n{sentences(30)}", title, counter=model)
    assert all(tokens <= MINILM.window for tokens in model.count_tokens([chunk.text for chunk in chunks]))
    shown = " ".join(chunk.text for chunk in chunks).split()
    assert all(any(word in found for found in shown) for word in heading.split())


def test_a_word_larger_than_the_window_is_divided(model: BundledModel) -> None:
    word = "漢字" * 1000
    chunks = chunks_of(word, counter=model)
    assert "".join(new_text(chunk) for chunk in chunks).replace(" ", "") == word


def test_an_endless_run_of_letters_makes_chunks_of_bounded_size(model: BundledModel) -> None:
    chunks = chunks_of("x" * 100_000, counter=model)
    assert max(len(chunk.text) for chunk in chunks) < 15_000
    assert sum(len(new_text(chunk)) for chunk in chunks) == 100_000


@pytest.mark.parametrize("space", ["\u00a0", "\t", "\u3000", "\u2009", "\x1c"])
def test_words_between_odd_spaces_stay_whole(model: BundledModel, space: str) -> None:
    words = [f"word{number}word" for number in range(200)]
    shown = {word for chunk in chunks_of(space.join(words), counter=model) for word in chunk.text.split()}
    assert [word for word in words if word not in shown] == []
