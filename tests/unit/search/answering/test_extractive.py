"""Which units of the results make an answer without a model, and how they read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from otterwiki_semantic.core.records import Hit, HitUnit, UnitKind
from otterwiki_semantic.search.answering import extract_answer, find_lead
from tests.support.hits import make_hit

FAR, NEAR = 0.2, 0.6


def units(
    text: str, *scored: tuple[str, float], kind: UnitKind = UnitKind.SENTENCE, items: Sequence[str] = (), header: str = ""
) -> tuple[HitUnit, ...]:
    def place(part: str) -> tuple[int, int]:
        return text.index(part), text.index(part) + len(part)

    return tuple(
        HitUnit(
            range=place(part),
            kind=kind,
            section="Retention",
            section_path=("Backups", "Retention"),
            anchor="retention",
            start_line=1,
            end_line=1,
            score=score,
            similarity=NEAR,
            coverage=1.0,
            header=place(header) if header else None,
            items=tuple(map(place, items)),
        )
        for part, score in scored
    )


def hit(text: str, *scored: tuple[str, float], score: float = 20.0, relevant: bool = True, **more: object) -> Hit:
    return make_hit(path="backups", snippet=text, score=score, relevant=relevant, units=units(text, *scored, **more))  # type: ignore[arg-type]


def answered(question: str, *hits: Hit) -> list[tuple[str, ...]]:
    return [each.texts for each in extract_answer(question, hits, ["en"])]


KEPT = "Backups are kept 14 nights."
TESTED = "Ana tests them each month."
HOPE = "A backup that nobody reads is a hope."


def test_the_best_unit_leads_and_others_follow_while_they_are_nearly_as_good() -> None:
    page = hit(f"{HOPE} {KEPT} {TESTED}", (KEPT, 9.0), (TESTED, 8.0), (HOPE, 4.0))
    assert answered("backups", page) == [(KEPT,), (TESTED,)]


def test_the_lead_has_the_type_of_answer_that_is_asked_for() -> None:
    assert answered("how long are backups kept", hit(f"{HOPE} {KEPT}", (HOPE, 9.0), (KEPT, 8.0))) == [(KEPT,), (HOPE,)]
    assert answered("who keeps backups", hit(f"{HOPE}", (HOPE, 9.0))) == []


def test_a_better_passage_counts_for_its_units() -> None:
    other = "Backups are kept 30 nights at home."
    pages = [hit(KEPT, (KEPT, 9.0), score=20.0), hit(other, (other, 9.5), score=10.0)]
    assert answered("how long are backups kept", *pages)[0] == (KEPT,)


def test_a_sentence_that_begins_with_a_pronoun_brings_the_previous_one() -> None:
    it = "It stays for 14 nights."
    assert answered("backups", hit(f"[Backups] {TESTED} {HOPE} {it}", (it, 9.0))) == [(f"{HOPE} {it}",)]
    assert answered("backups", hit(f"[Backups] {HOPE}\n\n{it}", (it, 9.0))) == [(it,)]
    assert answered("backups", hit(f"[Backups] {HOPE} {it}", (HOPE, 9.0), (it, 8.0))) == [(HOPE,), (it,)]


def test_a_question_is_quoted_with_its_reply_and_suffices_if_it_is_near() -> None:
    for said, score, found in (("Lost?", 9.0, [(f"Lost? {KEPT}",)]), ("Lost?", 0.5, []), ("Lost.", 9.0, [])):
        page = hit(f"{said} {KEPT} {HOPE} {TESTED}", (said, score), (HOPE, 1.0), (TESTED, 1.0))
        units = (page.units[0], *(structs.replace(each, similarity=FAR) for each in page.units[1:]))
        assert answered("backups", structs.replace(page, units=units)) == found
    assert answered("how long are they kept", hit("Is it 14 nights? Ask Ana.", ("Is it 14 nights?", 9.0))) == []


def test_code_that_follows_an_answer_is_part_of_it() -> None:
    text = f"{KEPT}\n\nRun this:\n\nrestic forget --keep 14"
    (unit,) = units(text, (KEPT, 9.0))
    page = make_hit(snippet=text, units=(structs.replace(unit, code=(text.index("restic"), len(text))),))
    (extract,) = extract_answer("which command forgets backups", [page], ["en"])
    assert [each for each, _ in extract.statements] == [KEPT, "Run this:", "restic forget --keep 14"]
    assert extract_answer("who keeps backups", [page], ["en"]) == []


@pytest.mark.parametrize("similarity", [FAR, None])
def test_units_that_are_not_near_the_question_are_no_answer(similarity: float | None) -> None:
    page = hit(KEPT, (KEPT, 9.0))
    far = structs.replace(page.units[0], similarity=similarity, coverage=0.3)
    assert answered("backups", structs.replace(page, units=(far,))) == []
    assert find_lead("backups?", [structs.replace(page, units=(far,))], ["en"]) is None


def test_words_decide_where_nothing_is_embedded() -> None:
    page = hit(KEPT, (KEPT, 9.0))
    by_words = structs.replace(page.units[0], similarity=None, coverage=0.9)
    assert answered("backups", structs.replace(page, units=(by_words,))) == [(KEPT,)]


def test_what_is_not_relevant_is_no_answer() -> None:
    assert answered("backups", hit(KEPT, (KEPT, 9.0), relevant=False)) == []
    assert answered("backups") == []


def test_steps_and_several_things_are_the_whole_list() -> None:
    steps = ["1. List the nights.", "2. Fetch the folder.", "3. Compare it."]
    text = "Nothing easier:\n\n" + "\n".join(steps)
    page = hit(text, (steps[1], 9.0), (steps[2], 8.9), ("Nothing easier:", 8.0), kind=UnitKind.ITEM, items=steps)
    for question in ("how do I get a folder back", "what are the steps", "which steps must I take"):
        assert answered(question, page)[0] == ("List the nights.", "Fetch the folder.", "Compare it.")
    lead = find_lead("how do I get a folder back", [page], ["en"])
    assert lead is not None
    assert lead.text == "List the nights.\nFetch the folder.\nCompare it."
    assert answered("folder fetch", page) == [("Fetch the folder.",)], "a short item adds nothing on its own"
    assert answered("which ports do the steps use", page) == [], "there is no number"
    long = hit("- One.\n- Two.", ("- One.", 9.0), kind=UnitKind.ITEM, items=["- One."] * 200)
    assert answered("which steps are listed", long) == [("One.",)]


@pytest.mark.parametrize(
    ("header", "row", "text"),
    [
        ("kind | kept", "nightly | 14", "Nightly – kept: 14"),
        ("kind | kept", "nightly | ", "Nightly"),
        (" | kept", "`nightly` | 14 days", "`nightly` – kept: 14 days"),
        ("service | runs on | since", "photos | otter | 2024", "Photos – runs on: otter · since: 2024"),
    ],
)
def test_a_row_reads_by_itself(header: str, row: str, text: str) -> None:
    page = hit(f"{header}\n{row}", (row, 9.0), kind=UnitKind.ROW, header=header)
    assert answered("retention", page) == [(text,)]
    lead = find_lead("retention?", [page], ["en"])
    assert lead is not None
    assert (lead.text, lead.result, lead.unit.range) == (text, 0, page.units[0].range)


def test_the_name_of_a_column_tells_what_a_row_answers() -> None:
    page = hit("service | owner\nphotos | Bert", ("photos | Bert", 9.0), kind=UnitKind.ROW, header="service | owner")
    assert answered("who looks after the photos", page) == [("Photos – owner: Bert",)]


def test_rows_that_the_question_does_not_tell_apart_answer_together_in_the_order_of_their_table() -> None:
    header, *rows = table = ["kind | kept", "nightly | 14", "weekly | 8"]
    page = hit("\n".join(table), (rows[1], 9.0), (rows[0], 8.0), kind=UnitKind.ROW, header=header)
    assert answered("how long are backups kept", page) == [("Nightly – kept: 14",), ("Weekly – kept: 8",)]
    lead = find_lead("how long are backups kept", [page], ["en"])
    assert lead is not None
    assert (lead.text, lead.unit) == ("Nightly – kept: 14\nWeekly – kept: 8", page.units[0])
    both = [("Nightly – kept: 14",), ("Weekly – kept: 8",)]
    odd = ["~~monthly~~ | ~~9~~", "yearly |", "| 1", "", "Done. | Not a row"]
    for more, shown in ((odd, [*both, ("Yearly",), ("kept: 1",)]), (["hourly | 1"] * 9, both)):
        longer = hit("\n".join([*table, *more]), (rows[1], 9.0), (rows[0], 8.0), kind=UnitKind.ROW, header=header)
        assert answered("how long are backups kept", longer) == shown
    cut = structs.replace(page, units=tuple(structs.replace(each, header=None) for each in page.units))
    assert answered("how long are backups kept", cut) == [("Nightly · 14",), ("Weekly · 8",)]
    weekly = structs.replace(page, units=(page.units[0], structs.replace(page.units[1], coverage=0.5)))
    lead = find_lead("how long are weekly backups kept", [weekly], ["en"])
    assert lead is not None
    assert lead.text == "Weekly – kept: 8"
    assert answered("how long are weekly backups kept", weekly) == [("Weekly – kept: 8",)]


def test_only_a_question_has_a_lead() -> None:
    assert find_lead("nightly backups", [hit(KEPT, (KEPT, 9.0))], ["en"]) is None


def test_a_unit_that_needs_what_follows_does_not_lead() -> None:
    assert answered("backups", hit(f"Mind this: {KEPT}", ("Mind this:", 9.0), (KEPT, 8.0))) == [(KEPT,)]


def test_what_is_struck_out_answers_nothing_and_open_tasks_are_seen_to_be_open() -> None:
    struck, task, done = "~~Backups are kept 9 nights.~~", "- [ ] Backups are painted", "- [x] Backups ~~never~~ fly"
    page = hit(f"{struck} {KEPT}\n{task}\n{done}", (struck, 9.0), (KEPT, 8.9), (task, 8.8), (done, 8.7))
    assert answered("backups", page) == [(KEPT,), ("☐ Backups are painted",), ("Backups fly",)]


def test_a_run_that_is_struck_out_answers_nothing_in_any_of_its_sentences_or_cells() -> None:
    page = hit(f"~~{HOPE} {TESTED}~~ {KEPT}", (TESTED, 9.0), (HOPE, 8.9), (KEPT, 8.8))
    assert answered("backups", page) == [(KEPT,)]
    row = "~~nightly~~ | ~~9~~"
    assert answered("retention", hit(f"kind | kept\n{row}", (row, 9.0), kind=UnitKind.ROW, header="kind | kept")) == []


def test_an_answer_has_up_to_sixty_words_and_says_nothing_twice() -> None:
    long = " ".join(["many"] * 40) + "."
    longer = " ".join(["more"] * 40) + "."
    page = hit(f"{long} {longer} {KEPT}", (long, 9.0), (longer, 8.9), (KEPT, 8.8))
    assert answered("backups", page, page) == [(long,), (KEPT,)]


def test_a_source_is_named_after_the_section_of_its_unit_and_marks_it() -> None:
    page = structs.replace(hit(KEPT, (KEPT, 9.0)), url="/backups#top")
    source = extract_answer("backups", [page], ["en"])[0].source
    assert (source.section, source.breadcrumb, source.url) == ("Retention", "Backups > Retention", "/backups#retention")
    assert source.snippet[slice(*(source.best_sentence or (0, 0)))] == KEPT
