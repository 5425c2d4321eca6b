"""What is shown of a passage, and the address that leads to it."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otterwiki_semantic.web.pages.excerpts import Span, excerpt, text_fragment


def spans(*asked: Any) -> list[Span]:
    """Return the spans of all lines of an excerpt."""
    return [span for line in excerpt(*asked) for span in line.spans]


CUT, CUT_OFF = "…\N{NO-BREAK SPACE}", "\N{NO-BREAK SPACE}…"
LONG = " ".join(f"word{number}" for number in range(200))


@st.composite
def passages(draw: st.DrawFn) -> tuple[str, int, list[tuple[int, int]]]:
    """A text, where its own part begins, and ranges in order that do not overlap."""
    text = draw(st.text(st.sampled_from("ab é-,&|\n\t漢"), max_size=900))
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=40)))
    ranges = [(begin, end) for begin, end in zip(places[::2], places[1::2], strict=False) if begin < end]
    return text, draw(st.integers(0, len(text))), ranges


@given(passages())
def test_an_excerpt_is_a_part_of_the_text_with_the_matches_in_it(passage: tuple[str, int, list[tuple[int, int]]]) -> None:
    text, start, highlights = passage
    text = text.replace("|", "a")  # a row of a table has the names of its columns, too
    pieces = spans(text, start, highlights)
    shown = "".join(piece.text for piece in pieces).removeprefix(CUT).removesuffix(CUT_OFF)
    plain = str.maketrans("", "", "-|:;., \n\t")
    assert shown.translate(plain) in text[start:].translate(plain)
    matches = "".join(piece.text for piece in pieces if piece.is_match).translate(plain)
    assert matches in "".join(text[begin:end] for begin, end in highlights).translate(plain)
    assert len(shown) <= 160


def test_an_excerpt_shows_where_most_of_the_matches_are() -> None:
    wanted = [LONG.index(f"word{number}") for number in (5, 120, 121, 122)]
    highlights = [(place, place + 6) for place in wanted]
    pieces = spans(LONG, 0, highlights)
    assert [piece.text for piece in pieces if piece.is_match] == ["word12"[:6] for _ in range(3)]
    assert pieces[0] == Span(CUT)
    assert pieces[-1].text.endswith(CUT_OFF)
    assert "word121" in "".join(piece.text for piece in pieces)


def test_a_match_at_the_cut_leaves_no_ellipsis_alone() -> None:
    text = f"{'a word ' * 22}backups, {LONG}"
    assert "".join(span.text for span in spans(text, 0, [(154, 161)], (0, len(text)))).endswith(f"word{CUT_OFF}")


def test_a_short_passage_is_shown_whole() -> None:
    assert "".join(span.text for span in spans("[Title] One.\n\nTwo.", 8, [])) == "One. Two."


@pytest.mark.parametrize("best", [(0, 40), (300, 420), (1_000, 1_060)])
def test_an_excerpt_without_matches_shows_the_best_sentence(best: tuple[int, int]) -> None:
    pieces = spans(LONG, 0, [], best)
    (piece,) = [piece for piece in pieces if LONG[slice(*best)] in piece.text]
    assert not piece.is_match


def test_an_excerpt_begins_with_the_best_sentence_though_matches_stand_elsewhere() -> None:
    place = LONG.index("word9 ")
    assert spans(LONG, 0, [(place, place + 5)], (600, 700))[1].text.startswith(LONG[600:700])


def test_an_excerpt_of_the_end_begins_with_a_sentence_if_it_fills_a_line() -> None:
    best = "A backup that has never been read is a hope, not a backup."
    text = f"{LONG}. The report goes to all of us. {best}"
    shown = "".join(span.text for span in spans(text, 0, [], (text.index(best), len(text))))
    assert shown == f"{CUT}The report goes to all of us. {best}"
    text = f"{LONG} {best}"
    assert "".join(span.text for span in spans(text, 0, [], (text.index(best), len(text)))) == f"{CUT}{best}"


def test_an_excerpt_of_the_end_begins_earlier_to_fill_two_lines_and_with_a_whole_row_of_a_table() -> None:
    end = "The end is short."
    text = f"{LONG} {end}"
    shown = "".join(span.text for span in spans(text, 0, [], (text.index(end), len(text))))
    assert shown.endswith(f"word{LONG.rsplit('word')[-1]} {end}")
    assert 80 < len(shown) <= 110
    rows = "service | on\n" + "\n".join(f"service {number} | its machine {number}" for number in range(20))
    shown = "".join(span.text for span in spans(rows, 0, [], (rows.index("service 19"), len(rows))))
    assert shown == CUT + "; ".join(f"service {number} – on: its machine {number}" for number in range(17, 20))


@pytest.mark.parametrize(
    ("unit", "fragment"),
    [
        ("The valve is closed.", ":~:text=The%20valve%20is%20closed."),
        ("- Close both valves - now.", ":~:text=Close%20both%20valves%20%2D%20now."),
        ("nightly | kept | 14", ":~:text=nightly,14"),
        ("One two three four five six seven eight nine ten.", ":~:text=One%20two%20three%20four,seven%20eight%20nine%20ten."),
    ],
)
def test_a_fragment_marks_the_whole_best_sentence(unit: str, fragment: str) -> None:
    text = f"[Page] Before.\n{unit}\nAfter."
    start = text.index(unit)
    assert text_fragment(text, 7, [(7, 13)], (start, start + len(unit))) == fragment


@given(passages())
def test_a_fragment_quotes_words_that_stand_together_in_one_block(passage: tuple[str, int, list[tuple[int, int]]]) -> None:
    text, start, highlights = passage
    directive = text_fragment(text, start, highlights)
    if not directive:
        return
    assert directive.startswith(":~:text=")
    quoted = directive.removeprefix(":~:text=")
    assert not set(quoted) & set("-,& \n#")
    words = unquote(quoted).split(" ")
    blocks = [block.split() for line in text[start:].split("\n") for block in line.split(" | ")]
    assert any(block[at : at + len(words)] == words for block in blocks for at in range(len(block)))


@pytest.mark.parametrize(
    ("text", "start", "highlights", "phrase"),
    [
        ("[T] Open the valve by a quarter. Then close it.", 4, [], "Open the valve by a quarter. Then close"),
        ("[T] a b c d e f g h i VALVE j k l", 4, [(22, 27)], "f g h i VALVE j k l"),
        ("[T] one\nname | who | band\nthree four", 4, [(15, 18)], "who"),
        ("[VALVE] the long way", 8, [(1, 6)], "the long way"),
        ("[T] ", 4, [], ""),
    ],
)
def test_a_fragment_is_around_the_first_match(text: str, start: int, highlights: list[tuple[int, int]], phrase: str) -> None:
    assert unquote(text_fragment(text, start, highlights).removeprefix(":~:text=")) == phrase


@pytest.mark.parametrize(
    ("text", "needle"),
    [
        ("暖房の手引き。 " + "部屋の温度を下げる。" * 60 + "凍結" + "水道管を守る。" * 60, "凍結"),
        ("https://example.org/" + "a" * 900 + "NEEDLE" + "b" * 900 + " end", "NEEDLE"),
        ("A " + "x" * 800, "xxx"),
    ],
)
def test_a_match_in_a_text_without_spaces_is_shown(text: str, needle: str) -> None:
    place = text.index(needle)
    pieces = spans(text, 0, [(place, place + len(needle))])
    assert [piece.text for piece in pieces if piece.is_match] == [needle]
    assert len("".join(piece.text for piece in pieces)) > 100


def test_an_excerpt_that_begins_with_a_later_item_says_so() -> None:
    items = "\n".join(f"- {LONG[:100]}" for _ in range(5))
    line = excerpt(items, 0, [], (206, 308))[0]
    assert (line.kind, line.marker, line.spans[0]) == ("item", "•", Span(CUT))


def test_lists_rows_and_code_are_shown_as_such() -> None:
    table = "kind | kept | at\nnightly | 14 | one\nweekly |  | two\nyearly | 6 |"
    rows = ("text", "", "nightly – kept: 14 · at: one; weekly – at: two; yearly – kept: 6. All of it.")
    for text, expected in (
        ("- nights\n2. weeks", [("item", "•", "nights"), ("item", "2.", "weeks")]),
        (f"{table}\n\nAll of it.\n\n- nights", [rows, ("item", "•", "nights")]),
        ("kind | kept", [("text", "", "kind · kept")]),
        ("[Title] kind | kept\nnightly | 14", [("text", "", "nightly – kept: 14")]),
        ("if a:\nset b", [("code", "", "if a:"), ("code", "", "set b")]),
        ("Set it like this:\nset b", [("text", "", "Set it like this:"), ("code", "", "set b")]),
        ("import A from 'a';\n\nAbout <A />.", [("text", "", "About <A />.")]),
        ("<b>More</b>\n- one", [("text", "", "<b>More</b>"), ("item", "•", "one")]),
        ("<A of={b} />", [("text", "", "<A of={b} />")]),
        ("Set it like this:\n\nset:\n- b", [("text", "", "Set it like this:"), ("code", "", "set:\xa0…")]),
    ):
        lines = excerpt(text, text.find("]") + 1, [])
        assert [(line.kind, line.marker, "".join(span.text for span in line.spans)) for line in lines] == expected


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("Compare it.\n\n- one\n- two\n- three", f"one{CUT_OFF}"),
        (f"- one\n- two {LONG}", f"word11{CUT_OFF}"),
        ("One sentence fits here. " * 9, f"sentence{CUT_OFF}"),
        ("All of it fits.\n\n", "All of it fits."),
    ],
)
def test_an_excerpt_ends_after_two_lines_at_a_word(text: str, end: str) -> None:
    lines = ["".join(span.text for span in line.spans) for line in excerpt(text, 0, [])]
    assert lines[-1].endswith(end)
    assert sum(-(-len(line) // 80) for line in lines) <= 2
