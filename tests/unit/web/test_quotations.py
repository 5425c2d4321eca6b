"""An answer without a model shows what it quotes as the page has it: paragraphs, lists, tables, code."""

from __future__ import annotations

from msgspec import convert, structs

from otterwiki_semantic.core.records import AnswerSentence, Hit, HitUnit, UnitKind
from otterwiki_semantic.web.pages.quotations import item_parts, quotations, with_code
from tests.support.hits import make_hit

TEXT = "Use rsync. Wait. Then run make.\n\nDone.\n\n- one\n- two\n\nkind | kept\nnightly | 14\nweekly | ~~8~~"


def quoted(text: str, kind: UnitKind, header: tuple[int, int] | None = None) -> tuple[AnswerSentence, Hit]:
    place = (TEXT.index(text), TEXT.index(text) + len(text))
    at = {"section": "", "section_path": ["Page"], "anchor": "", "start_line": 1, "end_line": 1}
    unit = convert({"range": place, "kind": kind, "score": 1.0, "coverage": 1.0, "header": header, **at}, HitUnit)
    return AnswerSentence(text, (0,), True), make_hit(snippet=TEXT, markdown="Then run `make`.").at(unit)


def test_quotations_are_shown_as_their_page_has_them() -> None:
    header = (TEXT.index("kind"), TEXT.index("\nnightly"))
    sentences = [quoted(text, UnitKind.SENTENCE) for text in ("Use rsync.", "Then run make.", "Done.")]
    rows = [quoted(text, UnitKind.ROW, header) for text in ("nightly | 14", "weekly | ~~8~~")]
    items = [quoted(text, UnitKind.ITEM) for text in ("- one", "- two")]
    announcing = AnswerSentence("Run this:", (0,), True), items[1][1]  # what follows it
    assert [tuple(each) for each in quotations([*sentences, *items, announcing, *rows, items[0]])] == [
        ("text", ["Use rsync.", "…", "Then run <code>make</code>."], ()),
        ("text", ["Done."], ()),
        ("items", ["- one", "- two"], ()),
        ("text", ["Run this:"], ()),
        ("rows", [["nightly", "14"]], ["kind", "kept"]),
        ("text", ["weekly | ~~8~~"], ()),  # of which a part no longer holds
        ("text", ["- one"], ()),  # alone
    ]
    for snippet, kind in (("1. one\n2. two", "steps"), ("- one\n- two", "items")):
        listed = structs.replace(items[0][1].units[0], items=((0, 6), (7, 13)))
        hit = structs.replace(items[0][1], snippet=snippet, units=(listed,))
        assert [each.kind for each in quotations([(structs.replace(items[0][0], kind="item"), hit)] * 2)] == [kind]


def test_an_item_has_the_code_of_its_page_on_lines_of_its_own() -> None:
    text = "1. Look.\n2. Then run\n   make  all\n   make it\n   and wait for\n   it.\n3. Look."
    items = tuple(
        (text.index(begin), text.index(end) + len(end))
        for begin, end in (("1.", "Look."), ("2.", "   it."), ("3.", "3. Look."))
    )
    listed = structs.replace(quoted("Done.", UnitKind.ITEM)[1].units[0], items=items)
    fenced = "2. ~~~sh\n   make  all\n   make it\n   ~~~\n\n   and wait for\n   it.\n\n   ```\nnever closed"
    hit = make_hit(snippet=text, units=(listed,), markdown=f"2. Then run\n\n{fenced}")
    said = "Then run make all make it and wait for it."
    assert item_parts(said, hit) == [("Then run", False), ("make all", True), ("make it", True), ("and wait for it.", False)]
    assert item_parts("Look.", hit) == [("Look.", False)]
    (shown,) = quotations([(AnswerSentence(said, (0,), True, kind="item"), hit)])
    assert shown.parts == ["Then run<br><code>make all</code><br><code>make it</code><br>and wait for it."]


def test_code_is_what_its_source_has_as_code() -> None:
    shown = with_code("<b> sets a-b and a1, not a12, x.", "Use ``a1`` or `a-b`, `x`, ` `, `unclosed.")
    assert shown == "&lt;b&gt; sets <code>a-b</code> and <code>a1</code>, not a12, x."
