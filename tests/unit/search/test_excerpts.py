"""Excerpts with marked words."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.core.records import Answer, Freshness, Highlight, Hit, SearchOptions, TotalHits
from otterwiki_semantic.search import with_excerpts
from tests.support.hits import make_hit

PREFIX = "[Page > Part] "
LONG = " ".join(f"word{number}" for number in range(200))


def hit(text: str, highlights: tuple[tuple[int, int], ...] = (), best: tuple[int, int] | None = None, overlap: int = 0) -> Hit:
    """A result whose own text begins after the prefix and `overlap` characters; ranges count from the end of the prefix."""
    shift = len(PREFIX)
    return make_hit(
        text=text,
        snippet=PREFIX + text,
        prefix_length=shift,
        overlap_length=overlap,
        highlights=((1, 5), *((begin + shift, end + shift) for begin, end in highlights)),
        best_sentence=(best[0] + shift, best[1] + shift) if best else None,
    )


def shown(result: Hit, **options: object) -> Hit:
    index = Freshness(None, None, 0)
    answer = Answer(query="q", total=1, total_hits=TotalHits(1, "eq"), confident=True, index=index, results=(result,))
    return with_excerpts(answer, SearchOptions(**options)).results[0]  # type: ignore[arg-type]


def places(text: str, *words: str) -> tuple[tuple[int, int], ...]:
    return tuple((text.index(word), text.index(word) + len(word)) for word in words)


def test_nothing_is_excerpted_unless_it_is_asked_for() -> None:
    assert shown(hit("Text.")) == hit("Text.")


def test_html_marks_words_and_escapes_all_else() -> None:
    text = 'a <b onclick="x">boiler</b> & a <script>pump</script>'
    found = shown(hit(text, places(text, "boiler", "pump")), highlight=Highlight.HTML)
    assert found.excerpt == text
    assert found.excerpt_highlights is None
    assert found.excerpt_html == (
        "a &lt;b onclick=&quot;x&quot;&gt;<mark>boiler</mark>&lt;/b&gt; &amp; a &lt;script&gt;<mark>pump</mark>&lt;/script&gt;"
    )


def test_ranges_are_those_of_the_excerpt_in_code_points() -> None:
    text = "\N{OTTER}\N{OTTER} the boiler. " + LONG
    found = shown(hit(text, places(text, "boiler", "word7 ")), highlight=Highlight.RANGES)
    assert found.excerpt == text
    assert found.excerpt_html is None
    assert found.excerpt_highlights is not None
    assert [found.excerpt[begin:end] for begin, end in found.excerpt_highlights] == ["boiler", "word7 "]


def test_what_repeats_the_passage_before_is_left_out() -> None:
    found = shown(hit("Old end. New text.", places("Old end. New text.", "Old", "New"), overlap=9), highlight=Highlight.RANGES)
    assert (found.excerpt, found.excerpt_highlights) == ("New text.", ((0, 3),))


@pytest.mark.parametrize("words", [5, 10, 30, 100])
def test_a_crop_has_about_so_many_words_around_the_matches(words: int) -> None:
    found = shown(hit(LONG, places(LONG, "word150")), crop=words, highlight=Highlight.HTML)
    assert found.excerpt is not None
    assert 0.9 * words - 1 <= len(found.excerpt.split()) - 2 <= max(10, words + 4)
    assert re.fullmatch(r"… word\d+ .*word150.* word\d+( …)?", found.excerpt)
    assert "<mark>word150</mark>" in (found.excerpt_html or "")


def test_a_crop_without_matches_begins_with_the_best_sentence() -> None:
    found = shown(hit(LONG, best=places(LONG, "word120 word121")[0]), crop=10)
    assert found.excerpt is not None
    assert found.excerpt.startswith("… word120 word121 ")
    assert found.best_sentence is None, "it was not asked for"
    assert shown(hit(LONG, best=(3, 9)), crop=10, best_sentence=True).best_sentence is not None


def test_text_without_spaces_is_cropped() -> None:
    text = "部屋の温度を下げる。" * 60 + "凍結" + "水道管を守る。" * 60
    found = shown(hit(text, places(text, "凍結")), crop=10, highlight=Highlight.HTML)
    assert found.excerpt is not None
    assert len(found.excerpt) < 110
    assert "<mark>凍結</mark>" in (found.excerpt_html or "")


@st.composite
def passages(draw: st.DrawFn) -> tuple[str, tuple[tuple[int, int], ...], tuple[int, int] | None, int]:
    text = draw(st.text(st.sampled_from("ab<>&\"' \n漢…"), min_size=1, max_size=400))
    at = sorted(draw(st.sets(st.integers(0, len(text)), max_size=20)))
    ranges = tuple((begin, end) for begin, end in zip(at[::2], at[1::2], strict=False))
    best = draw(st.none() | st.just((len(text) // 2, len(text))))
    return text, ranges, best, draw(st.integers(0, len(text)))


@given(passages(), st.none() | st.integers(5, 500))
def test_an_excerpt_is_a_part_of_the_passage_whose_marks_match(
    passage: tuple[str, tuple[tuple[int, int], ...], tuple[int, int] | None, int], words: int | None
) -> None:
    result = hit(*passage)
    by_range = shown(result, crop=words, highlight=Highlight.RANGES)
    as_html = shown(result, crop=words, highlight=Highlight.HTML)
    assert by_range.excerpt is not None
    assert as_html.excerpt_html is not None
    assert by_range.excerpt_highlights is not None
    plain = by_range.excerpt.removeprefix("… ").removesuffix(" …")
    assert plain in result.snippet[result.prefix_length + result.overlap_length :]
    marked = [by_range.excerpt[begin:end] for begin, end in by_range.excerpt_highlights]
    assert [html.unescape(each) for each in re.findall("<mark>(.*?)</mark>", as_html.excerpt_html, re.DOTALL)] == marked
    assert html.unescape(re.sub("</?mark>", "", as_html.excerpt_html)) == as_html.excerpt == by_range.excerpt
    assert all(begin < end for begin, end in by_range.excerpt_highlights)
    wanted = [result.snippet[begin:end] for begin, end in result.highlights]
    assert all(any(each in whole for whole in wanted) for each in marked)
